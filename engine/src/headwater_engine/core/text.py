"""From a backend's steps to the text a client may see: guard, then stop matcher, token by token.

The answer depends only on the tokens, never on how many come in a step. Usage ends at the token that completes
the match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from headwater_engine.core.stops import StopMatcher, StopSet
from headwater_engine.core.utf8 import Utf8Guard, well_formed
from headwater_engine.ports import FinishReason, Step


@dataclass(frozen=True, slots=True)
class TextRules:
    """What ends the text, and how."""

    stops: tuple[str, ...] = ()
    include_stop: bool = False
    """The stop string itself is part of the answer."""
    min_tokens: int = 0
    """A stop string that completes before this many tokens is ordinary text."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What one step adds to the answer; ``tokens`` of it count as completion tokens."""

    text: str
    tokens: int
    finish: FinishReason | None = None


class TextStream:
    """One request's text. After a Delta with ``finish`` it takes no further step."""

    def __init__(self, rules: TextRules) -> None:
        self._rules = rules
        self._guard = Utf8Guard()
        self._matcher = StopMatcher(StopSet(rules.stops)) if rules.stops else None
        self.tokens = 0
        """Completion tokens so far."""

    def feed(self, step: Step) -> Delta:
        """Takes one step."""
        before = self.tokens
        released: list[str] = []
        finish: FinishReason | Literal["stop"] | None = step.finish
        for count, piece in self._pieces(step):
            self.tokens += count
            text, stopped = self._match(piece)
            released.append(text)
            if stopped:
                return Delta("".join(released), self.tokens - before, "stop")
        if finish is not None:
            released.append(self._matcher.flush() if self._matcher else "")
        return Delta("".join(released), self.tokens - before, finish)

    def _match(self, piece: str) -> tuple[str, bool]:
        if self._matcher is None:
            return piece, False
        text, stop = self._matcher.feed(piece, armed=self.tokens >= self._rules.min_tokens)
        if stop is not None and self._rules.include_stop:
            text += stop
        return text, stop is not None

    def _pieces(self, step: Step) -> Iterator[tuple[int, str]]:
        """(tokens, the text they complete); one token each where the backend tells them apart."""
        if step.raw is None:
            yield len(step.token_ids), well_formed(step.text)
        else:
            yield from self._decoded(step.raw)
        if step.finish is not None:
            yield 0, self._guard.flush()

    def _decoded(self, raw: Sequence[bytes]) -> Iterator[tuple[int, str]]:
        for data in raw:
            yield 1, self._guard.feed(data)
