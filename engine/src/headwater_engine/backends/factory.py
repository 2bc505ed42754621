"""Chooses the backend. Imports are lazy: the sim image has no vLLM, and vLLM takes 16 s to import."""

from __future__ import annotations

from headwater_engine.ports import Backend
from headwater_engine.settings import EngineSettings


def create_backend(settings: EngineSettings) -> Backend:
    """The configured backend, not started yet. Raises ValueError for settings that it cannot serve."""
    if settings.backend == "sim":
        from headwater_engine.backends import sim

        return sim.create_backend(settings)
    from headwater_engine.backends import vllm

    return vllm.create_backend(settings)
