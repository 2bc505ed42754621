"""Records of streams and the figures made from them.

Percentiles are nearest-rank: the smallest sample that at least p percent of all samples do not exceed, so each
reported figure was really measured. Of 1..10 the p50 is 5, the p90 9 and the p99 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil

from headwater_client.core.chunks import Chunk, Usage
from headwater_client.core.failures import Failure


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile of a non-empty ascending sequence; ``percent`` in (0, 100]."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True, slots=True)
class Summary:
    """Spread of one quantity in seconds. All figures are None when nothing was measured."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None


def summarize(values: Iterable[float]) -> Summary:
    """Mean, percentiles and maximum of ``values``, in any order."""
    ordered = sorted(values)
    if not ordered:
        return Summary(0, None, None, None, None, None)
    at = [percentile(ordered, percent) for percent in (50, 90, 99)]
    return Summary(len(ordered), sum(ordered) / len(ordered), at[0], at[1], at[2], ordered[-1])


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One stream as the client saw it. Times are readings of one monotonic clock, in seconds."""

    started: float
    ended: float
    arrivals: tuple[float, ...] = ()
    """When each chunk with text was received."""
    usage: Usage | None = None
    finish_reason: str | None = None
    failure: Failure | None = None

    @property
    def ttft_seconds(self) -> float | None:
        """From sending the request to the first text."""
        return self.arrivals[0] - self.started if self.arrivals else None

    @property
    def gaps_seconds(self) -> tuple[float, ...]:
        """Inter-token latencies: the time between one chunk with text and the next."""
        return tuple(later - earlier for earlier, later in pairwise(self.arrivals))

    @property
    def e2e_seconds(self) -> float:
        """From sending the request to ``[DONE]``, or to the failure."""
        return self.ended - self.started

    @property
    def output_tokens(self) -> int:
        """By the server's usage where it reports one, else the number of chunks with text."""
        return self.usage.completion_tokens if self.usage else len(self.arrivals)

    @property
    def tpot_seconds(self) -> float | None:
        """Mean time of a token after the first; None below two tokens."""
        if self.output_tokens < 2 or len(self.arrivals) < 2:
            return None
        return (self.arrivals[-1] - self.arrivals[0]) / (self.output_tokens - 1)


@dataclass(slots=True)
class Recorder:
    """Gathers a StreamRecord chunk by chunk."""

    started: float
    _arrivals: list[float] = field(default_factory=list)
    _usage: Usage | None = None
    _finish_reason: str | None = None

    def add(self, chunk: Chunk) -> None:
        """Takes the next chunk of the stream."""
        if chunk.text:
            self._arrivals.append(chunk.at_seconds)
        self._usage = chunk.usage or self._usage
        self._finish_reason = chunk.finish_reason or self._finish_reason

    def finish(self, ended: float, failure: Failure | None = None) -> StreamRecord:
        """The finished record."""
        return StreamRecord(self.started, ended, tuple(self._arrivals), self._usage, self._finish_reason, failure)
