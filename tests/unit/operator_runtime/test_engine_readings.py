"""What is kept of an engine's answers."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_contracts.admin import EnginePhase, EngineState, Histogram, RankState
from headwater_operator.adapters.readings import WINDOW_SECONDS, EngineHistory, beyond_dead_band, facts, load


def state(step: int = 1, **fields: Any) -> EngineState:
    values: dict[str, Any] = {"phase": EnginePhase.READY, "step": step, "running": 0, "waiting": 0} | fields
    return EngineState(**values)


def test_there_is_no_reading_before_the_first_probe_has_ended() -> None:
    assert EngineHistory().reading(5.0) is None


def test_a_failed_probe_leaves_the_state_unknown_and_says_for_how_long_the_engine_was_silent() -> None:
    history = EngineHistory()
    history.answered(state(), 10.0)
    history.failed("refused", 14.0)
    got = history.reading(15.0)
    assert got is not None
    assert (got.state, got.error, got.age_seconds, got.silent_seconds) == (None, "refused", 1.0, 5.0)


def test_an_engine_that_never_answered_is_silent_since_it_was_first_asked() -> None:
    history = EngineHistory()
    history.asked(12.0)
    history.failed("refused", 14.0)
    history.asked(16.0)
    history.failed("refused", 18.0)
    got = history.reading(20.0)
    assert got is not None
    assert got.silent_seconds == 8.0


def test_the_window_starts_with_the_oldest_answer_of_about_a_minute() -> None:
    history = EngineHistory()
    for second in range(0, 201, 2):
        history.answered(state(step=second), float(second))
    got = history.reading(200.0)
    assert got is not None
    assert got.window_start is not None
    assert WINDOW_SECONDS <= 200 - got.window_start.step <= WINDOW_SECONDS + 10


def test_one_answer_alone_is_no_window() -> None:
    history = EngineHistory()
    history.answered(state(), 0.0)
    got = history.reading(0.0)
    assert got is not None
    assert got.window_start is None


def test_counters_that_went_back_start_a_new_window() -> None:
    history = EngineHistory()
    history.answered(state(step=500), 0.0)
    history.answered(state(step=600), 12.0)
    history.answered(state(step=3), 14.0)
    history.answered(state(step=4), 26.0)
    got = history.reading(26.0)
    assert got is not None
    assert got.window_start is not None
    assert got.window_start.step == 3


def test_equal_bucket_edges_are_kept_once() -> None:
    history = EngineHistory()
    history.answered(state(ttft=Histogram((0.1, 0.2), (0, 0, 0), 0.0)), 0.0)
    first = history.last
    history.answered(state(ttft=Histogram((0.1, 0.2), (1, 0, 0), 0.1)), 12.0)
    assert first is not None
    assert first.ttft is not None
    assert history.last is not None
    assert history.last.ttft is not None
    assert history.last.ttft.edges is first.ttft.edges
    assert history.last.ttft.counts == (1, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"phase": EnginePhase.FAILED},
        {"healthy": False},
        {"admitting": True},
        {"drained": True},
        {"failure_reason": "x"},
        {"running": 1},
        {"waiting": 1},
        {"ranks": (RankState(0, alive=False),)},
    ],
)
def test_what_a_decision_reads_at_once_is_a_fact(change: dict[str, Any]) -> None:
    before, after = EngineHistory(), EngineHistory()
    before.answered(state(ranks=(RankState(0, alive=True),)), 0.0)
    after.answered(state(**({"ranks": (RankState(0, alive=True),)} | change)), 0.0)
    assert facts(before.reading(0.0)) != facts(after.reading(0.0))


def test_progress_and_age_alone_are_no_fact() -> None:
    before, after = EngineHistory(), EngineHistory()
    before.answered(state(step=1, last_progress_age_seconds=0.1), 0.0)
    after.answered(state(step=9, last_progress_age_seconds=0.3), 5.0)
    assert facts(before.reading(0.0)) == facts(after.reading(6.0))


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [(100, 104, False), (100, 110, False), (100, 111, True), (2, 7, False), (2, 8, True), (200, 180, False)],
)
def test_load_counts_as_changed_beyond_the_dead_band(old: int, new: int, want: bool) -> None:
    assert beyond_dead_band((float(new), 0.0, 10.0), (float(old), 0.0, 10.0)) is want


def test_kv_use_is_unknown_without_its_figures_and_not_zero() -> None:
    history = EngineHistory()
    history.answered(state(kv_used_blocks=None, kv_total_blocks=None), 0.0)
    assert load(history.reading(0.0))[2] == -1.0
