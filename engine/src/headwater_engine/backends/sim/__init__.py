"""The simulated engine: steps, KV and text without a model. Faults exist here alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater_engine.backends.sim.backend import SimBackend
    from headwater_engine.settings import EngineSettings

_EXTRA_ARGS = {"kv-blocks", "max-num-seqs", "load-seconds", "load-error"}


def create_backend(settings: EngineSettings) -> SimBackend:
    """The simulated engine that the settings describe. Raises ValueError."""
    import os
    import random

    from headwater_engine.backends.sim.backend import SimBackend, SimOptions
    from headwater_engine.backends.sim.faults import Faults
    from headwater_engine.backends.sim.profile import PROFILES
    from headwater_engine.clock import MonotonicClock

    profile = PROFILES.get(settings.sim_profile)
    if profile is None:
        raise ValueError(f"unknown simulation profile {settings.sim_profile!r}; known: {', '.join(PROFILES)}")
    extra = settings.extra_args
    unknown = sorted(set(extra) - _EXTRA_ARGS)
    if unknown:
        raise ValueError(f"the backend sim has no engine argument {', '.join(unknown)}")
    options = SimOptions(
        profile,
        time_scale=settings.sim_time_scale,
        block_size=settings.block_size or 16,
        kv_blocks=int(extra["kv-blocks"]) if "kv-blocks" in extra else None,
        max_model_len=settings.max_model_len,
        max_num_seqs=int(extra["max-num-seqs"]) if "max-num-seqs" in extra else None,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        prefix_caching=settings.prefix_caching,
        ranks=settings.tensor_parallel_size * settings.pipeline_parallel_size,
        load_seconds=float(extra["load-seconds"]) if "load-seconds" in extra else None,
        load_error=extra.get("load-error"),
    )
    # A simulated crash is the whole point of this exit: nothing may be cleaned up.
    return SimBackend(options, clock=MonotonicClock(), chance=random.Random(), faults=Faults(os._exit))
