"""What the engines of a pool report, as figures for people. No data is None, never zero.

Latencies are percentiles of the samples between the oldest and the newest state of each engine within the signal
window: histograms count since the engine's start, so the difference of two readings is what happened between them.
With the counts [1, 4] then [3, 9] over the edges [0.1]: 2 samples up to 0.1 s and 5 above.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headwater_contracts.admin import EngineState, Histogram
from headwater_contracts.reasons import Role
from headwater_operator.core.facts import fresh_state
from headwater_operator.core.snapshot import EngineReading, GroupObservation


@dataclass(frozen=True, slots=True)
class PoolSignals:
    """Figures over all active groups. Latencies in seconds."""

    kv_percent: int | None
    ttft_p90_seconds: float | None
    itl_p99_seconds: float | None
    running: int | None
    waiting: int | None
    groups_reporting: int
    groups_expected: int


def pool_signals(groups: Iterable[GroupObservation]) -> PoolSignals:
    """Signals of the active groups among ``groups``."""
    active = [group for group in groups if group.role is Role.ACTIVE and not group.terminating]
    states = [state for group in active if (state := fresh_state(group)) is not None]
    readings = [group.engine for group in active if group.engine is not None and fresh_state(group) is not None]
    return PoolSignals(
        kv_percent=kv_percent(states),
        ttft_p90_seconds=percentile(_window(readings, lambda state: state.ttft), 0.90),
        itl_p99_seconds=percentile(_window(readings, lambda state: state.itl), 0.99),
        running=sum(state.running for state in states) if states else None,
        waiting=sum(state.waiting for state in states) if states else None,
        groups_reporting=len(states),
        groups_expected=len(active),
    )


def kv_percent(states: Iterable[EngineState]) -> int | None:
    """Used share of all KV blocks in percent, None if no engine says."""
    used = total = 0
    for state in states:
        if state.kv_used_blocks is not None and state.kv_total_blocks:
            used, total = used + state.kv_used_blocks, total + state.kv_total_blocks
    return min(100, round(100 * used / total)) if total else None


def _window(
    readings: Iterable[EngineReading], pick: Callable[[EngineState], Histogram | None]
) -> tuple[tuple[float, ...], list[int]] | None:
    """Samples of the window by bucket. Engines with other edges than most are left out."""
    by_edges: dict[tuple[float, ...], list[list[int]]] = defaultdict(list)
    for reading in readings:
        if reading.state is None or reading.window_start is None:
            continue
        new, old = pick(reading.state), pick(reading.window_start)
        if new is not None and old is not None and new.edges == old.edges:
            by_edges[new.edges].append([max(0, b - a) for a, b in zip(old.counts, new.counts, strict=True)])
    if not by_edges:
        return None
    edges, counts = max(by_edges.items(), key=lambda item: sum(map(sum, item[1])))
    return edges, [sum(column) for column in zip(*counts, strict=True)]


def percentile(samples: tuple[Sequence[float], Sequence[int]] | None, share: float) -> float | None:
    """Time that this share of the samples stayed under, interpolated within its bucket; None without samples.

    Above all edges the last edge is the answer: at least that much.
    """
    if samples is None or sum(samples[1]) == 0:
        return None
    edges, counts = samples
    rank, below = share * sum(counts), 0
    for index, count in enumerate(counts):
        if count and below + count >= rank:
            if index == len(edges):
                break
            low = edges[index - 1] if index else 0.0
            return low + (edges[index] - low) * (rank - below) / count
        below += count
    return edges[-1] if edges else None


def format_seconds(seconds: float | None) -> str | None:
    """``412ms``, or ``12.4s`` from ten seconds on; None stays None."""
    if seconds is None:
        return None
    milliseconds = math.ceil(seconds * 1000 - 1e-6)
    return f"{milliseconds}ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.1f}s"
