"""``spec.engine``: how the engine of each pod runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from headwater_operator.api.base import ApiModel, Cel, Rules
from headwater_operator.api.extra_args import RESERVED, RUNS_CODE, cel_no_prefix_of

ImageReference = Annotated[
    str,
    StringConstraints(max_length=512),
    Rules(
        Cel(
            "self == '' || self.matches('^[A-Za-z0-9][A-Za-z0-9._:/@-]*$')",
            "must be an image reference such as registry.example/engine:1.2, or empty for the operator's default",
        )
    ),
]
TimeScale = Annotated[
    str,
    StringConstraints(max_length=12),
    Rules(
        Cel(
            "self.matches('^[0-9]{1,4}([.][0-9]{1,4})?$') && double(self) >= 0.01 && double(self) <= 1000.0",
            'must be a decimal number in quotes from "0.01" to "1000", such as "1.0"',
        )
    ),
]
ExtraArgs = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=1024)]],
    Field(max_length=32),
    Rules(
        Cel(
            "self.all(k, k.matches('^[a-z0-9][a-z0-9-]{0,62}$'))",
            "names are written in lower case with dashes and without leading dashes, such as max-num-seqs",
        ),
        Cel(
            cel_no_prefix_of(RUNS_CODE),
            "arguments that run code or load files of the pool's choosing (trust-remote-code, worker-extension-cls, "
            "tool-parser-plugin and the like) are refused in every spelling: remove them",
            reason="FieldValueForbidden",
        ),
        Cel(
            cel_no_prefix_of(RESERVED),
            "arguments that have a field of their own (model, max-model-len, tensor-parallel-size, block-size, "
            "port, api-key and the like) are set by the operator: use the field and remove the argument",
            reason="FieldValueForbidden",
        ),
    ),
]


class Backend(StrEnum):
    """What computes the tokens."""

    VLLM = "vllm"
    SIM = "sim"


class Simulation(ApiModel):
    """How backend sim behaves."""

    profile: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=63)] = (
        "h100-llama70b-tp8"
    )
    """Timing profile."""
    time_scale: TimeScale = "1.0"
    """How many times faster than the profile it runs, as a decimal number in quotes."""


class Engine(ApiModel):
    """How the engine of each pod runs."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "!has(self.simulation) || self.backend == 'sim'",
            "is only for backend sim: remove simulation, or set backend to sim",
            at=".simulation",
        ),
        Cel(
            "self.tensorParallelSize * self.pipelineParallelSize <= 256",
            "tensorParallelSize times pipelineParallelSize, the accelerators of one group, must be at most 256",
            at=".pipelineParallelSize",
        ),
    )

    backend: Backend = Backend.VLLM
    """vllm, or sim for a simulated engine that needs no GPU."""
    image: ImageReference = ""
    """Engine image; it must match the operator's allow list. Empty: the operator's default for the backend."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=64)] = 8
    """Accelerators of one pod, over which each layer is split."""
    pipeline_parallel_size: Annotated[int, Field(ge=1, le=32)] = 1
    """Pods of one group, over which the layers are divided."""
    max_model_len: Annotated[int, Field(ge=16, le=16_777_216)] = 8192
    """Longest sequence, prompt and output together, in tokens."""
    block_size: Literal[16, 32, 64, 128, 256] = 16
    """Tokens of one KV cache block. On CPU 16 is rounded up to 32."""
    max_num_batched_tokens: Annotated[int, Field(ge=16, le=1_048_576)] = 512
    """Tokens that one engine step may take: a longer prompt is prefilled in chunks of this size."""
    prefix_caching: bool = True
    """Reuses the KV blocks of prompts that begin alike."""
    extra_args: ExtraArgs = Field(default_factory=dict)
    """Further vLLM engine arguments, name to value, in lower case with dashes. Only those on the operator's allow
    list."""
    simulation: Simulation | None = None
    """How backend sim behaves."""
