"""How fast new groups come after failures."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_contracts.reasons import Reason
from headwater_operator.api.policy import MOST_REPLACEMENTS
from headwater_operator.core.actions import FailureNote, Plan
from support.operator_snapshots import (
    OLD_REVISION,
    REVISION,
    ago,
    created,
    exited_pod,
    group,
    loading,
    plan_for,
    pod,
    pool_spec,
    quarantined,
    stamp,
    told,
)


def failures(*seconds_ago: float, revision: str = REVISION, reason: str = "LoadFailed") -> dict[str, Any]:
    """A status that lists failures so long ago."""
    return {
        "currentRevision": revision,
        "updateRevision": REVISION,
        "failures": [
            {"at": stamp(ago), "group": f"f{number}", "revision": revision, "reason": reason}
            for number, ago in enumerate(seconds_ago)
        ],
    }


def after(*seconds_ago: float, groups: tuple[Any, ...] = (), **fields: Any) -> Plan:
    return plan_for(*groups, status=failures(*seconds_ago, **fields))


@pytest.mark.parametrize(
    ("seconds_ago", "want", "requeue"),
    [
        ((), 2, None),
        ((1,), 2, None),
        ((30, 4), 0, 1.0),
        ((30, 5), 2, None),
        ((30, 20, 9), 0, 1.0),
        ((90, 60, 45, 30, 41), 0, 10.0),
        ((3700, 3650, 1), 2, None),
    ],
    ids=["none", "one", "two: 5 s", "two: over", "three: 10 s", "five: 40 s", "out of the window"],
)
def test_each_further_failure_doubles_the_wait(
    seconds_ago: tuple[float, ...], want: int, requeue: float | None
) -> None:
    plan = after(*seconds_ago)
    assert created(plan) == want
    assert plan.requeue_after_seconds == (None if requeue is None else pytest.approx(requeue))
    assert plan.hold is None


def test_beyond_max_replacements_the_pool_holds_and_tries_one_at_a_time() -> None:
    six = (70, 69, 68, 67, 66, 59)
    held = after(*six)
    assert created(held) == 0
    assert held.hold is not None
    assert "6 groups failed within 1h (failure.maxReplacements is 5)" in held.hold.message
    assert held.requeue_after_seconds == pytest.approx(1.0)
    assert created(after(*six[:5], 60)) == 1
    assert created(after(*six[:5], 60, groups=(loading("s"),))) == 0


def test_the_hold_waits_twice_as_long_after_each_further_failure_up_to_half_an_hour() -> None:
    waits = [created(after(*[200] * count, 119.0)) for count in (6,)]
    assert waits == [0]
    assert created(after(*[200] * 6, 120.0)) == 1
    assert after(*[200] * 30, 0.0).requeue_after_seconds == pytest.approx(1800.0)


def test_the_highest_limit_that_the_api_takes_is_reached() -> None:
    spec = pool_spec(failure={"maxReplacements": MOST_REPLACEMENTS})
    known = failures(*[100] * MOST_REPLACEMENTS)
    assert plan_for(status=known, spec=spec).hold is None
    failed = loading("a", pods=[exited_pod("a", code=1)])
    assert plan_for(failed, status=known, spec=spec).hold is not None


def test_failures_of_another_revision_hold_nothing_up() -> None:
    assert created(after(*[10] * 8, revision=OLD_REVISION)) == 2


def test_a_new_failure_is_noted_with_its_group_and_a_known_one_only_once() -> None:
    plan = plan_for(group("a", pods=[exited_pod("a")]), group("b"), quarantined("q", since=60))
    assert plan.failures == (
        FailureNote(ago(60), "q", REVISION, "EngineExited"),
        FailureNote(ago(0), "a", REVISION, "EngineExited"),
    )
    known = {"failures": [{"at": stamp(60), "group": "q", "revision": REVISION, "reason": "EngineExited"}]}
    assert len(plan_for(group("a"), group("b"), quarantined("q", since=60), status=known).failures) == 1


def test_what_a_node_or_a_user_took_away_is_no_crash() -> None:
    taken = group("a", pods=[pod("a", None, terminating=True)])
    assert plan_for(taken, group("b"), quarantined("q", reason="NodeLost")).failures == ()


def test_the_hold_is_told_with_each_new_failure_and_names_the_last() -> None:
    status = failures(*[100] * 5)
    dead = loading("a", pods=[exited_pod("a", code=1, exit_message="no CUDA device")])
    plan = plan_for(dead, status=status)
    assert "the last was a: engine exited (code 1) before it had loaded: no CUDA device" in told(plan)["CrashLoopHold"]
    assert plan.hold is not None
    assert plan.hold.cause is Reason.LOAD_FAILED
    assert "CrashLoopHold" not in told(after(*[100] * 6))


def test_promotion_is_never_held() -> None:
    from support.operator_snapshots import roles, standby

    plan = plan_for(group("a", pods=[exited_pod("a")]), group("b"), standby("s"), status=failures(*[10] * 9))
    assert roles(plan)["s"] == "active"


def test_a_broken_entry_stops_no_decision() -> None:
    broken = {"failures": [{"at": "yesterday", "group": "x", "revision": REVISION, "reason": "LoadFailed"}]}
    assert created(plan_for(status=broken, spec=pool_spec(replicas=1))) == 1


def test_the_last_failure_of_a_hold_is_told_by_the_decision_on_it_not_by_the_one_that_made_the_group() -> None:
    status = failures(50, 40, 30, 20, 10, 5) | {
        "decisions": [
            {"action": "WarmPoolRefill", "message": "group f5 is made: 0 of 1 standby groups are there"},
            {"action": "Quarantined", "message": "standby group f5: engine exited (code 7)"},
        ]
    }
    plan = plan_for(status=status)
    assert plan.hold is not None
    assert "the last was f5: standby group f5: engine exited (code 7)." in plan.hold.message
