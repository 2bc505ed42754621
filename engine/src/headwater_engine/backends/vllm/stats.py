"""The scheduler's figures, as of its last step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Figures:
    """What vLLM reports with each step. Written and read in the event loop alone.

    vLLM steps once more after the last request has ended, however it ended, so the figures of an idle engine
    are those of an empty scheduler and not stale.
    """

    now: Callable[[], float]
    step: int = 0
    running: int = 0
    waiting: int = 0
    kv_usage_ratio: float = 0.0
    last_step_monotonic: float | None = None

    def observe(self, *, running: int, waiting: int, kv_usage_ratio: float) -> None:
        """Takes the figures of one step."""
        self.step += 1
        self.running = running
        self.waiting = waiting
        self.kv_usage_ratio = kv_usage_ratio
        self.last_step_monotonic = self.now()

    def clear(self) -> None:
        """Nothing runs any more: the engine is dead."""
        self.running, self.waiting, self.kv_usage_ratio = 0, 0, 0.0


@dataclass(slots=True)
class Flight:
    """One request between submit and its end."""

    id: str
    """Unique among all that were ever submitted: vLLM knows the request by it."""
    submitted_at_step: int
    started: bool = False
    aborted: bool = False

    def unseen(self, step: int) -> bool:
        """True until the scheduler must have counted it: the step under way at submit may not have."""
        return not self.started and step < self.submitted_at_step + 2


def count_waiting(figures: Figures, flights: list[Flight]) -> int:
    """Waiting requests, with those that are on their way to the scheduler.

    ========  =======  ======  =======  ================================
    running   waiting  unseen  flights  result
    ========  =======  ======  =======  ================================
    0         0        1       1        1: handed over, no step since
    1         0        1       1        0: the scheduler runs it already
    1         0        0       2        0: the other one has finished, its reader is slow
    1         3        0       4        3
    ========  =======  ======  =======  ================================
    """
    unseen = sum(flight.unseen(figures.step) for flight in flights)
    return max(figures.waiting, min(unseen, len(flights) - figures.running))
