"""One request from admission to finish: backend steps in, answer text out, measured on the way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from headwater_engine.clock import Clock
from headwater_engine.core.inflight import InFlight
from headwater_engine.core.meters import Meters
from headwater_engine.core.text import Delta, TextRules, TextStream
from headwater_engine.errors import EngineError
from headwater_engine.ports import Backend, GenerateRequest, Step


@dataclass(slots=True)
class Usage:
    """Token counts of one request, up to date at each delta."""

    prompt: int
    completion: int = 0


class Generation:
    """Iterate ``deltas`` once; closing it aborts the request in the backend."""

    def __init__(
        self,
        backend: Backend,
        request: GenerateRequest,
        rules: TextRules,
        inflight: InFlight,
        meters: Meters,
        clock: Clock,
    ) -> None:
        self._backend = backend
        self._request = request
        self._text = TextStream(rules)
        self._inflight = inflight
        self._meters = meters
        self._clock = clock
        self._begun = clock.now()
        self.usage = Usage(len(request.prompt_token_ids))
        self.first_token_seconds: float | None = None
        self.last_step = self._begun
        """Monotonic time of the last step, or of the start."""

    @property
    def seconds(self) -> float:
        """Age of the request."""
        return self._clock.now() - self._begun

    async def deltas(self) -> AsyncIterator[Delta]:
        """Ends after a Delta with ``finish``. Raises what the backend raises."""
        self._meters.prompt_tokens += self.usage.prompt
        steps = cast("AsyncGenerator[Step]", self._backend.submit(self._request))
        async with aclosing(steps):
            async for step in steps:
                self._measure(step)
                delta = self._text.feed(step)
                self.usage.completion += delta.tokens
                self._meters.generation_tokens += delta.tokens
                yield delta
                if delta.finish is not None:
                    self._meters.finished[delta.finish] += 1
                    self._meters.e2e_coarse.observe(self.seconds)
                    return
        raise EngineError("the backend ended the request without a finish")

    def _measure(self, step: Step) -> None:
        now = self._clock.now()
        if not step.token_ids:
            return
        if not self._inflight.started:
            self._inflight.started = True
            self.first_token_seconds = now - self._begun
            self._meters.first_token(self.first_token_seconds)
        else:
            self._meters.next_tokens(now - self.last_step, len(step.token_ids))
        self.last_step = now
