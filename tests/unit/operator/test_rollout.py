"""The next step of a rollout, derived from what exists."""

from __future__ import annotations

from typing import Any

from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.actions import CreateGroup, CreateRevision, SetRole
from headwater_operator.core.snapshot import GroupObservation, RevisionObservation
from support.operator_snapshots import (
    OLD_REVISION,
    REVISION,
    actions,
    created,
    deleted,
    draining,
    exited_pod,
    group,
    loading,
    plan_for,
    pod,
    pool_spec,
    roles,
    standby,
    told,
)

WITH_WARM = pool_spec(warmPool={"size": 1})


def old(name: str, **fields: Any) -> GroupObservation:
    return group(name, revision=OLD_REVISION, **fields)


def old_standby(name: str, **fields: Any) -> GroupObservation:
    return standby(name, revision=OLD_REVISION, **fields)


def stuck(name: str) -> GroupObservation:
    """A new standby whose pod fits on no node."""
    waiting = pod(name, Role.STANDBY, phase="Pending", ready=False, scheduled=False, node=None, started_at=None)
    return loading(name, pods=[waiting])


def test_a_change_makes_one_new_standby_and_takes_nothing_down() -> None:
    status = {"updateRevision": OLD_REVISION, "currentRevision": OLD_REVISION}
    plan = plan_for(old("a"), old("b"), old_standby("s"), spec=WITH_WARM, status=status)
    assert (created(plan), roles(plan), deleted(plan)) == (1, {}, [])
    assert told(plan)["RolloutStarted"] == f"from revision {OLD_REVISION} to {REVISION}"
    assert plan.rolling


def test_surge_is_the_most_that_may_exist_beside_and_draining_groups_count() -> None:
    three = pool_spec(rollout={"maxSurge": 3})
    assert created(plan_for(old("a"), old("b"), spec=three)) == 2
    assert created(plan_for(old("a"), old("b"), loading("n"), spec=pool_spec(rollout={"maxSurge": 2}))) == 1
    assert created(plan_for(old("b"), group("n"), draining("d", revision=OLD_REVISION))) == 0


def test_a_new_group_takes_traffic_only_once_it_is_loaded() -> None:
    assert roles(plan_for(old("a"), old("b"), loading("n"))) == {}
    assert roles(plan_for(old("a"), old("b"), standby("n"))) == {"n": "active"}


def test_the_old_group_drains_when_the_new_one_serves() -> None:
    fresh = group("n", status={"conditions": []})
    assert roles(plan_for(old("a"), old("b"), fresh)) == {}
    plan = plan_for(old("a", age=50.0), old("b"), group("n"))
    assert roles(plan) == {"a": "draining"}
    assert actions(plan, SetRole)[0].reason is Reason.RETIRED


def test_one_removal_is_in_flight_at_most() -> None:
    plan = plan_for(old("a"), group("n"), draining("d", revision=OLD_REVISION), standby("m"), spec=WITH_WARM)
    assert roles(plan) == {}


def test_old_standbys_go_last_and_only_after_a_loaded_successor() -> None:
    assert deleted(plan_for(group("a"), group("b"), old_standby("s"), loading("n"), spec=WITH_WARM)) == []
    plan = plan_for(group("a"), group("b"), old_standby("s"), standby("n"), spec=WITH_WARM)
    assert deleted(plan) == ["s"]
    assert told(plan)["Retired"] == "standby group s of an old revision has a loaded successor"
    assert deleted(plan_for(old("a"), group("b"), old_standby("s"), standby("n"), spec=WITH_WARM)) == []


def test_an_old_standby_that_never_loaded_gives_its_place_at_once() -> None:
    plan = plan_for(old("a"), old("b"), loading("s", revision=OLD_REVISION), spec=WITH_WARM)
    assert deleted(plan) == ["s"]
    assert created(plan) == 2
    assert told(plan)["Retired"] == "standby group s of an old revision has not loaded"


def test_without_room_an_old_standby_makes_some_but_not_while_something_leaves() -> None:
    groups = (old("a"), old("b"), old_standby("s"), stuck("n"))
    plan = plan_for(*groups, spec=WITH_WARM)
    assert deleted(plan) == ["s"]
    assert told(plan)["Retired"] == "standby group s makes room for the new revision"
    leaving = group("x", revision=OLD_REVISION, terminating=True)
    assert deleted(plan_for(*groups, leaving, spec=WITH_WARM)) == []


def test_without_room_or_standby_only_max_unavailable_may_take_an_active_group_down() -> None:
    groups = (old("a"), old("b"), stuck("n"))
    assert roles(plan_for(*groups)) == {}
    allowed = pool_spec(rollout={"maxUnavailable": 1})
    assert list(roles(plan_for(*groups, spec=allowed)).values()) == ["draining"]
    one_down = (old("a", status={"conditions": []}, pods=[pod("a", Role.ACTIVE, ready=False)]), old("b"), stuck("n"))
    assert roles(plan_for(*one_down, spec=allowed)) == {"a": "draining"}


def test_without_surge_a_step_begins_by_taking_one_down() -> None:
    spec = pool_spec(warmPool={"size": 1}, rollout={"maxSurge": 0, "maxUnavailable": 1})
    plan = plan_for(old("a"), old("b"), old_standby("s"), spec=spec)
    assert (deleted(plan), created(plan)) == (["s"], 1)
    missing = plan_for(old("a"), old("b"), spec=spec)
    assert (roles(missing), created(missing)) == ({}, 1)


def test_without_surge_old_standbys_go_one_after_the_other() -> None:
    spec = pool_spec(warmPool={"size": 2}, rollout={"maxSurge": 0, "maxUnavailable": 1})
    groups = (group("a"), group("b"), old_standby("s"))
    assert deleted(plan_for(*groups, standby("n"), spec=spec)) == ["s"]
    assert deleted(plan_for(*groups, loading("n"), spec=spec)) == []


def test_paused_stops_before_the_next_step_but_not_replacement() -> None:
    spec = pool_spec(rollout={"paused": True})
    assert roles(plan_for(old("a"), old("b"), spec=spec)) == {}
    assert created(plan_for(old("a"), spec=spec)) == 1


def test_partition_keeps_that_many_old_groups() -> None:
    spec = pool_spec(rollout={"partition": 1})
    assert plan_for(old("a"), old("b"), spec=spec).rolling
    done = plan_for(old("a"), group("n"), spec=spec)
    assert (done.rolling, roles(done), created(done)) == (False, {}, 0)


def test_a_kept_old_group_that_fails_is_replaced_at_the_new_revision() -> None:
    # As documented: SpecHonored says so of a pool with a partition.
    spec = pool_spec(rollout={"partition": 1})
    plan = plan_for(old("a", pods=[exited_pod("a")]), group("n"), spec=spec)
    assert [action.revision for action in actions(plan, CreateGroup)] == [REVISION]


def test_the_end_of_a_rollout_is_told_once() -> None:
    status = {"updateRevision": REVISION, "currentRevision": OLD_REVISION}
    assert "RolloutFinished" in told(plan_for(group("a"), group("b"), status=status))
    assert "RolloutFinished" not in told(plan_for(group("a"), group("b")))


def test_a_rollback_uses_the_stored_revision_and_makes_it_the_newest() -> None:
    kept = {"engine": {"image": "engine-sim:0.9"}}
    revisions = (
        RevisionObservation(f"pool-{REVISION}", REVISION, 1, kept),
        RevisionObservation("pool-x", OLD_REVISION, 2, {}),
    )
    plan = plan_for(old("a"), old("b"), revisions=revisions)
    revision = actions(plan, CreateRevision)[0]
    assert (revision.number, revision.revision, revision.template) == (3, REVISION, kept)
