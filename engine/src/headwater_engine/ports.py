"""The Backend port: what the server needs from whatever generates tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from headwater_contracts.admin import RankState

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters, already validated. Names and meanings are OpenAI's and vLLM's."""

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    min_tokens: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logit_bias: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One sequence to generate. ``id`` is unique among those in flight."""

    id: str
    prompt_token_ids: tuple[int, ...]
    sampling: Sampling
    cache_salt: str | None = None
    script: Sequence[Mapping[str, Any]] | None = None
    """Sim only: steps to play back instead of generating."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one engine step gave this request. ``text`` never ends inside a character."""

    token_ids: tuple[int, ...]
    text: str
    finish: FinishReason | None = None
    raw: tuple[bytes, ...] | None = None
    """UTF-8 of each token, in place of ``text``, from a backend without a detokenizer of its own."""


@dataclass(frozen=True, slots=True)
class BackendState:
    """Figures of the scheduler's last step; None where the backend does not know."""

    step: int
    running: int
    waiting: int
    suspended: int
    kv_used_blocks: int | None
    kv_total_blocks: int | None
    kv_block_size_tokens: int | None
    last_step_monotonic: float | None
    ranks: tuple[RankState, ...]


class Backend(Protocol):
    """Two implementations pass one contract suite (``tests/contract/engine``).

    ``submit`` yields steps until one has ``finish``; closing the iterator aborts. It raises PromptTooLong
    before the first step for a caller's fault, BackendDead when the engine beneath is gone. A token that
    stops generation (end of sequence, ``stop_token_ids``) is in ``token_ids`` and leaves no text.
    """

    async def start(self) -> None:
        """Loads the model. Raises LoadFailed."""

    async def stop(self) -> None:
        """Ends every process that ``start`` made. Safe to call twice, and after a failure."""

    def submit(self, request: GenerateRequest) -> AsyncIterator[Step]:
        """Starts one request."""

    async def abort(self, request_id: str) -> None:
        """Ends a request and frees its KV within one step; its iterator ends without a finish.

        Unknown ids are ignored.
        """

    async def tokenize(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Token ids of a plain prompt."""

    async def apply_chat_template(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """Token ids of a chat prompt. Raises ValueError when the template refuses the messages."""

    def state(self) -> BackendState:
        """Figures as of now, without waiting."""

    async def ping(self, deadline_seconds: float) -> None:
        """Round trip to the innermost process. Raises BackendDead or TimeoutError."""

    @property
    def max_model_len(self) -> int:
        """Most tokens of prompt and output together."""


@runtime_checkable
class Vocabulary(Protocol):
    """A backend that knows how many token ids it has; ids in requests are then checked before they reach it."""

    @property
    def vocab_size(self) -> int:
        """All token ids are below it."""


@runtime_checkable
class FaultInjection(Protocol):
    """A backend into which faults can be put: the simulated one."""

    def inject(self, body: Mapping[str, Any]) -> None:
        """Puts one fault in force. Raises ValueError for what it does not know."""
