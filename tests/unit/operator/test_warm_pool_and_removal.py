"""Refill and shrink of the warm pool; the end of drains and of failed groups; what is made good in passing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.actions import (
    ApplyService,
    CancelDrain,
    CreateGroup,
    CreatePod,
    DeleteGroup,
    DeleteRevision,
    LabelPod,
    SetRole,
    StartDrain,
)
from headwater_operator.core.snapshot import RevisionObservation
from support.operator_snapshots import (
    OLD_REVISION,
    actions,
    condition,
    created,
    deleted,
    draining,
    engine_state,
    exited_pod,
    group,
    loading,
    plan_for,
    pod,
    pool_spec,
    quarantined,
    reading,
    roles,
    stamp,
    standby,
    told,
)

WITH_WARM = pool_spec(warmPool={"size": 1})
DRAINED = engine_state(phase=EnginePhase.DRAINING, drained=True, admitting=False)


def waiting_pod(name: str) -> Any:
    return pod(name, Role.STANDBY, phase="Pending", ready=False, scheduled=False, node=None, started_at=None)


def test_a_pool_without_a_warm_pool_starts_its_groups_as_standbys() -> None:
    plan = plan_for(spec=pool_spec(replicas=1))
    assert [action.role for action in actions(plan, CreateGroup)] == [Role.STANDBY]


def test_a_refill_is_one_event_that_names_the_groups_made_and_why() -> None:
    plan = plan_for(group("a"), group("b"), spec=pool_spec(warmPool={"size": 2}))
    made = [action.name for action in actions(plan, CreateGroup)]
    want = f"groups {made[0]}, {made[1]} are made: 0 of 2 standby groups are there"
    assert [(event.reason, event.cause, event.message) for event in plan.events] == [
        (Reason.WARM_POOL_REFILL, Reason.WARM_POOL_REFILL, want)
    ]
    assert {action.message for action in actions(plan, CreateGroup)} == {want}


def test_groups_made_for_their_number_say_so_and_many_are_not_all_named() -> None:
    plan = plan_for(spec=pool_spec(replicas=5))
    made = [action.name for action in actions(plan, CreateGroup)]
    want = f"5 groups ({', '.join(made[:3])}, …) are made: 0 of 5 active groups are there"
    assert [(event.cause, event.message) for event in plan.events] == [(Reason.FIXED_REPLICAS, want)]


def test_where_nothing_is_made_no_refill_is_told() -> None:
    assert told(plan_for(group("a"), group("b"))) == {}


def test_a_standby_that_waits_for_a_vacancy_is_no_surplus() -> None:
    assert deleted(plan_for(group("a"), loading("s"))) == []
    assert deleted(plan_for(group("a"), group("b"), loading("s"))) == ["s"]


@pytest.mark.parametrize(
    ("standbys", "want"),
    [
        ([standby("s", age=100), loading("t", age=900)], ["t"]),
        ([standby("s", age=100), standby("t", age=50)], ["t"]),
    ],
    ids=["not loaded first", "then youngest"],
)
def test_the_warm_pool_shrinks_by_what_is_worth_least(standbys: list[Any], want: list[str]) -> None:
    assert deleted(plan_for(group("a"), group("b"), *standbys, spec=WITH_WARM)) == want


def test_a_surplus_standby_with_streams_drains_before_it_goes() -> None:
    plan = plan_for(group("a"), group("b"), standby("s", state=engine_state(running=1)))
    assert (roles(plan), deleted(plan)) == ({"s": "draining"}, [])


def test_a_drained_group_stays_as_a_standby_where_one_is_missing() -> None:
    plan = plan_for(group("a"), group("b"), draining("d", state=DRAINED), spec=WITH_WARM)
    assert roles(plan) == {"d": "standby"}
    assert (created(plan), deleted(plan)) == (0, [])


def test_a_drained_group_of_an_old_revision_or_without_a_place_is_deleted() -> None:
    assert deleted(plan_for(group("a"), group("b"), draining("d", state=DRAINED))) == ["d"]
    outdated = draining("d", state=DRAINED, revision=OLD_REVISION)
    assert deleted(plan_for(group("a"), group("b"), outdated, spec=WITH_WARM)) == ["d"]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (draining("d", state=DRAINED), Reason.DRAINED),
        (draining("d", pods=[]), Reason.DRAINED),
        (draining("d", pods=[exited_pod("d", Role.DRAINING, code=0)]), Reason.DRAINED),
        (draining("d", since=310.0), Reason.DRAIN_TIMED_OUT),
        (draining("d", state=engine_state(healthy=False, running=3)), Reason.QUARANTINED),
    ],
    ids=["engine drained", "pod gone", "engine exited", "out of time", "streams lost"],
)
def test_a_drain_ends_with_the_group(item: Any, reason: Reason) -> None:
    plan = plan_for(group("a"), group("b"), item)
    assert [action.reason for action in actions(plan, DeleteGroup)] == [reason]


def test_a_drain_goes_on_while_streams_run_and_wakes_at_its_deadline() -> None:
    plan = plan_for(group("a"), group("b"), draining("d", since=300.0))
    assert deleted(plan) == []
    assert plan.requeue_after_seconds == pytest.approx(10.0)
    assert actions(plan, StartDrain) == []


def test_an_engine_that_does_not_say_that_it_drains_is_told_again_with_the_time_left() -> None:
    deaf = replace(draining("d", since=65.0), engine=reading(error="timeout"))
    drain = actions(plan_for(group("a"), group("b"), deaf), StartDrain)[0]
    assert (drain.settle_seconds, drain.timeout_seconds) == (0.0, 240.0)


def test_a_drain_set_by_hand_gets_its_start_time() -> None:
    by_hand = replace(draining("d"), annotations={})
    change = actions(plan_for(group("a"), group("b"), by_hand), SetRole)[0]
    assert change.annotations["headwater.dev/draining-since"] == stamp(0)


def test_the_newest_ended_failure_is_kept_for_a_while_and_the_others_go() -> None:
    groups = (group("a"), group("b"))
    plan = plan_for(*groups, quarantined("new", since=10), quarantined("older", since=100))
    assert deleted(plan) == ["older"]
    assert plan.requeue_after_seconds == pytest.approx(890.0)
    assert deleted(plan_for(*groups, quarantined("new", since=901))) == ["new"]
    none_kept = pool_spec(failure={"retainFailed": "0s"})
    assert deleted(plan_for(*groups, quarantined("new"), spec=none_kept)) == ["new"]


def test_a_failed_group_whose_process_still_holds_accelerators_goes_at_once() -> None:
    alive = quarantined("q", pods=[pod("q", Role.QUARANTINED)])
    assert deleted(plan_for(group("a"), group("b"), alive)) == ["q"]


def test_a_failed_group_goes_at_once_when_a_pod_fits_nowhere() -> None:
    waiting = loading("s", pods=[waiting_pod("s")])
    assert deleted(plan_for(group("a"), group("b"), waiting, quarantined("q"), spec=WITH_WARM)) == ["q"]


def test_a_pod_that_was_deleted_by_hand_may_end_its_streams_before_its_group_goes() -> None:
    leaving = [pod("q", Role.QUARANTINED, terminating=True)]
    item = replace(
        quarantined("q", since=30.0, reason="PodLost", pods=leaving), engine=reading(engine_state(running=1))
    )
    assert deleted(plan_for(group("a"), group("b"), item)) == []
    late = replace(item, annotations={"headwater.dev/quarantined-since": stamp(330.0)})
    assert deleted(plan_for(group("a"), group("b"), late)) == ["q"]


def test_missing_pods_are_made_and_lagging_labels_mended() -> None:
    plan = plan_for(group("a"), group("b", pods=[pod("b", Role.STANDBY)]), loading("s", pods=[]), spec=WITH_WARM)
    assert actions(plan, CreatePod) == [CreatePod("s", 0)]
    assert actions(plan, LabelPod) == [LabelPod("b-0", "b", Role.ACTIVE)]


def test_an_engine_that_drains_although_its_group_shall_not_is_told_so() -> None:
    state = engine_state(phase=EnginePhase.DRAINING, admitting=False)
    plan = plan_for(group("a"), group("b", state=state))
    assert actions(plan, CancelDrain) == [CancelDrain("b")]
    going = group("b", state=state, pods=[pod("b", Role.ACTIVE, terminating=True)])
    assert actions(plan_for(group("a"), going), CancelDrain) == []


def test_a_missing_service_is_made() -> None:
    assert actions(plan_for(group("a"), group("b"), service_exists=False), ApplyService) == [ApplyService()]


def test_revisions_beyond_the_limit_go_unless_something_is_made_of_them() -> None:
    names = [f"{number:010d}" for number in range(8)]
    stored = [RevisionObservation(f"pool-{name}", name, number, {}) for number, name in enumerate(names)]
    plan = plan_for(
        group("a", revision=names[0]), group("b"), revisions=tuple(stored), spec=pool_spec(rollout={"paused": True})
    )
    assert [action.name for action in actions(plan, DeleteRevision)] == [f"pool-{name}" for name in names[1:4]]


def test_a_lack_of_capacity_is_told_once() -> None:
    waiting = loading("s", pods=[replace(waiting_pod("s"), unschedulable_message="0/1 nodes are available")])
    groups = (group("a"), group("b"), waiting)
    assert told(plan_for(*groups, spec=WITH_WARM))["CapacityShort"] == "pod s-0: 0/1 nodes are available"
    status = {"conditions": [condition("CapacityAvailable", "False")]}
    assert "CapacityShort" not in told(plan_for(*groups, spec=WITH_WARM, status=status))


def test_suspension_drains_active_groups_and_drops_the_rest() -> None:
    plan = plan_for(group("a"), standby("s"), quarantined("q"), spec=pool_spec(suspend=True))
    assert roles(plan) == {"a": "draining"}
    assert sorted(deleted(plan)) == ["q", "s"]
