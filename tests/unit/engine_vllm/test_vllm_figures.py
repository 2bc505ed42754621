"""The figures of an engine between its steps."""

from __future__ import annotations

import pytest

from headwater_engine.backends.vllm.stats import Figures, Flight, count_waiting


def figures(step: int, *, running: int = 0, waiting: int = 0) -> Figures:
    return Figures(lambda: 0.0, step=step, running=running, waiting=waiting)


def test_each_step_counts_and_is_timed() -> None:
    times = iter([5.0, 6.5])
    got = Figures(lambda: next(times))

    got.observe(running=1, waiting=2, kv_usage_ratio=0.25)
    got.observe(running=2, waiting=0, kv_usage_ratio=0.5)

    assert (got.step, got.running, got.waiting, got.kv_usage_ratio, got.last_step_monotonic) == (2, 2, 0, 0.5, 6.5)


def test_a_dead_engine_runs_nothing_and_keeps_its_step_count() -> None:
    got = figures(7, running=3, waiting=1)

    got.clear()

    assert (got.step, got.running, got.waiting, got.kv_usage_ratio) == (7, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("now", "flights", "want"),
    [
        (figures(4), [], 0),
        (figures(4), [Flight("a", 4)], 1),
        (figures(5), [Flight("a", 4)], 1),
        (figures(6), [Flight("a", 4)], 0),
        (figures(4), [Flight("a", 4, started=True)], 0),
        (figures(5, running=1), [Flight("a", 4)], 0),
        (figures(5, running=1), [Flight("a", 4), Flight("b", 5)], 1),
        (figures(9, running=1, waiting=3), [Flight(str(n), 0) for n in range(4)], 3),
    ],
    ids=[
        "idle",
        "just-handed-over",
        "not-in-the-step-under-way",
        "ended-with-a-slow-reader",
        "started",
        "already-counted",
        "one-counted-one-on-its-way",
        "as-reported",
    ],
)
def test_waiting_includes_what_is_on_its_way_to_the_scheduler(now: Figures, flights: list[Flight], want: int) -> None:
    assert count_waiting(now, flights) == want
