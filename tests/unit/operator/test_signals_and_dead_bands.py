"""Figures for people: percentiles of a window, unknown apart from zero, and when a change is worth a write."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_contracts.reasons import Role
from headwater_operator.core.deadband import status_needs_write
from headwater_operator.core.signals import PoolSignals, format_seconds, percentile, pool_signals
from headwater_operator.core.snapshot import GroupObservation
from support.operator_snapshots import engine_state, group, histogram, reading, standby


def measured(name: str, before: list[int] | None, after: list[int], **fields: Any) -> GroupObservation:
    """An active group whose TTFT histogram over 0.1, 0.2 and 0.4 s went from one to the other."""
    edges = (0.1, 0.2, 0.4)
    state = engine_state(ttft=histogram(edges, after), **fields)
    start = None if before is None else engine_state(ttft=histogram(edges, before))
    return replace(group(name), engine=reading(state, window_start=start))


@pytest.mark.parametrize(
    ("edges", "counts", "share", "want"),
    [
        ((0.1, 0.2), (10, 0, 0), 0.9, 0.09),
        ((0.1, 0.2), (5, 5, 0), 0.9, 0.18),
        ((0.1, 0.2), (0, 0, 3), 0.9, 0.2),
        ((0.1, 0.2), (0, 0, 0), 0.9, None),
        ((0.1, 0.2), (1, 0, 0), 1.0, 0.1),
        ((), (4,), 0.5, None),
    ],
)
def test_a_percentile_lies_within_its_bucket(
    edges: tuple[float, ...], counts: tuple[int, ...], share: float, want: float | None
) -> None:
    assert percentile((edges, counts), share) == (None if want is None else pytest.approx(want))


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.floats(0.01, 0.99))
def test_a_percentile_never_lies_outside_the_edges_and_grows_with_its_share(counts: list[int], share: float) -> None:
    got = percentile(((0.1, 0.2, 0.4), counts), share)
    more = percentile(((0.1, 0.2, 0.4), counts), min(1.0, share + 0.01))
    if sum(counts) == 0:
        assert got is None
    else:
        assert got is not None
        assert more is not None
        assert 0.0 <= got <= more <= 0.4


def test_only_the_samples_of_the_window_count_summed_over_the_groups() -> None:
    signals = pool_signals([measured("a", [100, 0, 0, 0], [100, 5, 0, 0]), measured("b", [0, 0, 0, 0], [0, 5, 0, 0])])
    assert signals.ttft_p90_seconds == pytest.approx(0.19)


def test_what_no_engine_says_is_not_known_and_no_traffic_is_a_real_zero() -> None:
    silent = replace(group("a"), engine=reading(error="timeout"))
    assert pool_signals([silent]) == PoolSignals(None, None, None, None, None, 0, 1)
    idle = pool_signals([measured("a", [7, 0, 0, 0], [7, 0, 0, 0])])
    assert (idle.kv_percent, idle.ttft_p90_seconds, idle.running) == (0, None, 0)
    assert pool_signals([measured("a", None, [7, 0, 0, 0])]).ttft_p90_seconds is None
    assert pool_signals([group("a", state=engine_state(kv_used_blocks=None))]).kv_percent is None


def test_figures_are_over_the_active_groups_alone() -> None:
    groups = [group("a", state=engine_state(kv_used_blocks=50)), group("b", state=engine_state(kv_used_blocks=92))]
    warm = standby("s", state=engine_state(kv_used_blocks=100))
    assert pool_signals([*groups, warm]).kv_percent == 71
    assert pool_signals([replace(groups[0], role=Role.DRAINING)]).groups_expected == 0


@pytest.mark.parametrize(
    ("seconds", "want"), [(0.412, "412ms"), (0.0121, "13ms"), (9.999, "9999ms"), (12.34, "12.3s"), (None, None)]
)
def test_latencies_are_written_as_people_read_them(seconds: float | None, want: str | None) -> None:
    assert format_seconds(seconds) == want


def status(**changes: Any) -> dict[str, Any]:
    """A stored pool status; dotted changes are made in its signals and summary."""
    whole: dict[str, Any] = {
        "replicas": 2,
        "signals": {"kvCacheUtilizationPercent": 50, "ttftP90": "400ms", "running": 20, "groupsReporting": 2},
        "summary": {"active": "2/2", "kv": "50%", "ttft": "400ms"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "a", "message": ""}],
        "decisions": [{"at": "a", "action": "Promoted"}],
    }
    for key, value in changes.items():
        section, _, name = key.partition("_")
        if name:
            whole[section][name] = value
        else:
            whole[section] = value
    return whole


@pytest.mark.parametrize(
    ("changes", "seconds", "want"),
    [
        ({}, 1000.0, False),
        ({"replicas": 3}, 0.0, True),
        ({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "b", "message": ""}]}, 0.0, True),
        ({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "b", "message": ""}]}, 1e6, False),
        ({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "a", "message": "x"}]}, 0.0, True),
        ({"decisions": [{"at": "b", "action": "Promoted"}]}, 1e6, False),
        ({"signals_kvCacheUtilizationPercent": 54, "summary_kv": "54%"}, 1000.0, False),
        ({"signals_kvCacheUtilizationPercent": 55, "summary_kv": "55%"}, 1000.0, True),
        ({"signals_kvCacheUtilizationPercent": 55, "summary_kv": "55%"}, 29.0, False),
        ({"signals_kvCacheUtilizationPercent": 55, "summary_kv": "55%"}, None, True),
        ({"signals_ttftP90": "440ms", "summary_ttft": "440ms"}, 1000.0, False),
        ({"signals_ttftP90": "441ms", "summary_ttft": "441ms"}, 1000.0, True),
        ({"signals_ttftP90": "12.0s", "summary_ttft": "12.0s"}, 1000.0, True),
        ({"signals_running": 22}, 1000.0, False),
        ({"signals_running": 23}, 1000.0, True),
        ({"signals": {"groupsReporting": 0}, "summary_kv": "-", "summary_ttft": "-"}, 1000.0, True),
        ({"signals": {"groupsReporting": 0}, "summary_kv": "-", "summary_ttft": "-"}, None, False),
    ],
)
def test_a_difference_is_written_by_the_table(changes: dict[str, Any], seconds: float | None, want: bool) -> None:
    assert status_needs_write(status(), status(**changes), seconds) is want


def test_a_first_status_is_written_and_an_equal_one_never() -> None:
    assert status_needs_write({}, status(), None)
    assert not status_needs_write(status(), copy.deepcopy(status()), None)


@given(st.integers(0, 100), st.integers(0, 100))
def test_percentages_have_a_band_of_five_points(old: int, new: int) -> None:
    before, after = ({"kvCacheUtilizationPercent": value} for value in (old, new))
    assert status_needs_write(before, after, 60.0) == (abs(old - new) >= 5)
