"""What one engine has said: the last answer, and one from the start of the signal window."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from headwater_contracts.admin import EngineState, Histogram
from headwater_operator.core.snapshot import EngineReading

WINDOW_SECONDS = 60.0
SPACING_SECONDS = 10.0
"""States kept for the window are this far apart: six of them, not thirty, for each engine."""


@dataclass(slots=True)
class EngineHistory:
    """Of one engine process: a pod whose engine exits is never restarted, so a pod is a process."""

    last: EngineState | None = None
    last_at: float | None = None
    """When the last probe ended, answered or not."""
    answered_at: float | None = None
    asked_at: float | None = None
    """When the first probe of this operator process went out."""
    error: str | None = None
    token_refused: bool = False
    """The last probe was answered, but for its token."""
    _window: deque[tuple[float, EngineState]] = field(default_factory=deque)

    def asked(self, now: float) -> None:
        """A probe goes out."""
        self.asked_at = now if self.asked_at is None else self.asked_at

    def answered(self, state: EngineState, now: float) -> None:
        """Takes in an answer."""
        if self.last is not None and state.step < self.last.step:
            self._window.clear()  # counters went back: another process answers
        state = _share_edges(state, self.last)
        self.last, self.last_at, self.answered_at, self.error = state, now, now, None
        self.token_refused = False
        while len(self._window) > 1 and self._window[1][0] <= now - WINDOW_SECONDS:
            self._window.popleft()
        if not self._window or now - self._window[-1][0] >= SPACING_SECONDS:
            self._window.append((now, state))

    def failed(self, error: str, now: float, *, token_refused: bool = False) -> None:
        """Takes in a probe without a state for an answer."""
        self.last_at, self.error, self.token_refused = now, error, token_refused

    def silent_seconds(self, now: float) -> float | None:
        """Since the last answer, or since the first probe: an engine that hangs since before this process began would
        else never count as silent. None before the first probe."""
        heard = self.asked_at if self.answered_at is None else self.answered_at
        return None if heard is None else now - heard

    def reading(self, now: float) -> EngineReading | None:
        """For a snapshot; None before the first probe has ended."""
        if self.last_at is None:
            return None
        known = self.error is None
        start = self._window[0][1] if known and self._window and self._window[0][1] is not self.last else None
        return EngineReading(
            state=self.last if known else None,
            age_seconds=now - self.last_at,
            error=self.error,
            window_start=start,
            silent_seconds=self.silent_seconds(now),
            token_refused=self.token_refused,
        )


def _share_edges(state: EngineState, before: EngineState | None) -> EngineState:
    """The same state with the bucket edges of the one before: edges are most of a state's memory."""
    if before is None:
        return state
    return replace(state, ttft=_shared(state.ttft, before.ttft), itl=_shared(state.itl, before.itl))


def _shared(new: Histogram | None, old: Histogram | None) -> Histogram | None:
    if new is None or old is None or new.edges != old.edges:
        return new
    return replace(new, edges=old.edges)


def facts(reading: EngineReading | None) -> tuple[object, ...]:
    """What a decision reads at once, exactly: any change of it queues the pool."""
    if reading is None:
        return ()
    state = reading.state
    if state is None:
        return reading.error is not None, reading.token_refused
    return (
        state.phase,
        state.healthy,
        state.admitting,
        state.drained,
        state.failure_reason,
        state.running + state.waiting + state.suspended > 0,
        tuple((rank.rank, rank.alive) for rank in state.ranks),
    )


def load(reading: EngineReading | None) -> tuple[float, ...]:
    """What a decision reads roughly: running, waiting, KV use in percent of the whole."""
    state = None if reading is None else reading.state
    if state is None:
        return ()
    used, total = state.kv_used_blocks, state.kv_total_blocks
    percent = 100.0 * used / total if used is not None and total else -1.0
    return float(state.running), float(state.waiting), percent


def beyond_dead_band(new: tuple[float, ...], old: tuple[float, ...]) -> bool:
    """True if a load figure moved by more than 10% of the old one, and by more than 5."""
    if len(new) != len(old):
        return True
    return any(abs(a - b) > max(5.0, 0.1 * abs(b)) for a, b in zip(new, old, strict=True))
