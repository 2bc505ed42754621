"""From the engine's settings to vLLM's arguments and environment. Pure: nothing here imports vLLM.

Arguments are vLLM's own command-line arguments, so that vLLM's own parser gives each text its type and names
what it refuses. On CPU three of them are adapted, each with a note for the log:

=====================  ==========================================================================
``block-size``         rounded up to a multiple of 32: the CPU attention refuses any other
``max-num-batched-…``  128 unless set: a chunk of 512 stalls running streams for over a second
``enforce-eager``      on: compiling costs minutes and gains nothing that a CPU would show
=====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from headwater_engine.settings import EngineSettings

CPU_BLOCK_MULTIPLE = 32
CPU_MAX_NUM_BATCHED_TOKENS = 128
CPU_KV_CACHE_GIB = 1

# What the pool's spec or the engine itself decides; an extra argument must not say otherwise.
RESERVED = frozenset(
    {
        "block-size",
        "config",
        "data-parallel-size",
        "disable-log-stats",
        "distributed-executor-backend",
        "enable-log-requests",
        "enable-prefix-caching",
        "max-model-len",
        "max-num-batched-tokens",
        "model",
        "pipeline-parallel-size",
        "revision",
        "scheduler-cls",
        "tensor-parallel-size",
    }
)


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """``arguments`` in vLLM's command-line form; ``environment`` applies where a variable is not set yet."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    notes: tuple[str, ...]


def plan_engine(settings: EngineSettings, *, cpu: bool, cores: int) -> EnginePlan:
    """What to start vLLM with, on ``cores`` usable cores. Raises ValueError for a reserved extra argument."""
    extra = dict(_extra_arguments(settings))
    arguments: dict[str, str] = {"model": settings.model_path}
    if settings.model_revision:
        arguments["revision"] = settings.model_revision
    arguments["tensor-parallel-size"] = str(settings.tensor_parallel_size)
    arguments["pipeline-parallel-size"] = str(settings.pipeline_parallel_size)
    if settings.max_model_len is not None:
        arguments["max-model-len"] = str(settings.max_model_len)
    if settings.block_size is not None:
        arguments["block-size"] = str(settings.block_size)
    if settings.max_num_batched_tokens is not None:
        arguments["max-num-batched-tokens"] = str(settings.max_num_batched_tokens)
    arguments["enable-prefix-caching"] = _flag(settings.prefix_caching)
    # vLLM's own Prometheus and log output: the engine's metrics come from the figures of each step.
    arguments["disable-log-stats"] = "true"
    notes = tuple(_adapt_to_cpu(arguments, extra)) if cpu else ()
    rendered = tuple(_render(name, value) for name, value in (arguments | extra).items())
    return EnginePlan(rendered, _cpu_environment(settings, cores) if cpu else {}, notes)


def check_extra_arguments(settings: EngineSettings) -> None:
    """Raises ValueError if an extra argument is one that Headwater sets itself."""
    for _ in _extra_arguments(settings):
        pass


def _extra_arguments(settings: EngineSettings) -> Iterator[tuple[str, str]]:
    for written, value in settings.extra_args.items():
        name = written.strip().lstrip("-").replace("_", "-").removeprefix("no-")
        if name in RESERVED:
            raise ValueError(f"engine argument {written!r} is not an extra: Headwater sets it from the pool's spec")
        negated = written.strip().lstrip("-").replace("_", "-").startswith("no-")
        yield name, "false" if negated else value.strip()


def _adapt_to_cpu(arguments: dict[str, str], extra: dict[str, str]) -> Iterator[str]:
    asked = int(arguments.get("block-size", CPU_BLOCK_MULTIPLE))
    block = -(-asked // CPU_BLOCK_MULTIPLE) * CPU_BLOCK_MULTIPLE
    if block != asked:
        yield f"block size {asked} raised to {block}: CPU attention needs a multiple of {CPU_BLOCK_MULTIPLE}"
    arguments["block-size"] = str(block)
    if "max-num-batched-tokens" not in arguments:
        arguments["max-num-batched-tokens"] = str(CPU_MAX_NUM_BATCHED_TOKENS)
        yield f"at most {CPU_MAX_NUM_BATCHED_TOKENS} tokens a step: larger chunks stall running streams on CPU"
    if "enforce-eager" not in extra:
        arguments["enforce-eager"] = "true"
        yield "eager mode: compiling for CPU takes minutes"


def base_environment(settings: EngineSettings) -> dict[str, str]:
    """What has to be set before vLLM is imported."""
    environment = {
        # The engine's process has threads; a forked child of it can deadlock.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": settings.log_level,
    }
    if PurePath(settings.model_path).is_absolute():
        environment["HF_HUB_OFFLINE"] = "1"
    return environment


def _cpu_environment(settings: EngineSettings, cores: int) -> dict[str, str]:
    ranks = settings.tensor_parallel_size * settings.pipeline_parallel_size
    return {
        "VLLM_CPU_KVCACHE_SPACE": str(CPU_KV_CACHE_GIB),
        # Binding would pin every engine of a node to the same cores, and asks for a NUMA node a rank.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(max(1, (cores - 1) // ranks)),
    }


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _render(name: str, value: str) -> str:
    if value == "true":
        return f"--{name}"
    if value == "false":
        return f"--no-{name}"
    return f"--{name}={value}"
