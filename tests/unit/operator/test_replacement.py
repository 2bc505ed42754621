"""Who leaves, who takes over, who drains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.actions import CancelDrain, SetRole, StartDrain
from headwater_operator.core.snapshot import NodeObservation
from support.operator_snapshots import (
    NOW,
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
    reading,
    roles,
    stamp,
    standby,
    told,
)

WITH_WARM = pool_spec(warmPool={"size": 1})


def busy(running: int | None) -> dict[str, Any]:
    return {"state": engine_state(running=running)} if running is not None else {}


def unasked(name: str, **fields: Any) -> Any:
    """A group whose engine was not asked since the operator started."""
    return replace(group(name, **fields), engine=None)


def test_a_failed_active_group_is_quarantined_and_a_warm_one_promoted_in_the_same_plan() -> None:
    plan = plan_for(group("a", pods=[exited_pod("a")]), group("b"), standby("s"), spec=WITH_WARM)
    changes = actions(plan, SetRole)
    assert [(change.group, change.role) for change in changes] == [("a", Role.QUARANTINED), ("s", Role.ACTIVE)]
    assert changes[0].reason is Reason.ENGINE_EXITED
    assert changes[0].annotations["headwater.dev/quarantined-since"] == stamp(0)
    assert told(plan)["Replaced"] == "group a: engine exited (code 137, SIGKILL); promoted s"
    assert created(plan) == 1


def test_two_failures_take_two_warm_groups_and_one_need_takes_one() -> None:
    dead = [group(name, pods=[exited_pod(name)]) for name in "ab"]
    assert roles(plan_for(*dead, standby("s"), standby("t"), spec=pool_spec(warmPool={"size": 2}))) == {
        "a": "quarantined",
        "b": "quarantined",
        "s": "active",
        "t": "active",
    }
    assert roles(plan_for(dead[0], group("b"), standby("s"), standby("t"))) == {"a": "quarantined", "s": "active"}


def test_without_a_loaded_standby_nobody_is_promoted_and_the_event_says_so() -> None:
    plan = plan_for(group("a", pods=[exited_pod("a")]), group("b"), loading("s"), spec=WITH_WARM)
    assert roles(plan) == {"a": "quarantined"}
    assert "no warm group is loaded" in told(plan)["Replaced"]


def test_a_standby_that_the_kubelet_does_not_call_ready_is_not_promoted() -> None:
    cold = standby("s", pods=[pod("s", Role.STANDBY, ready=False)])
    assert "s" not in roles(plan_for(group("a"), cold))


def test_a_failure_prefers_a_standby_of_its_own_revision() -> None:
    spec = pool_spec(warmPool={"size": 2}, rollout={"paused": True})
    groups = (group("a", revision=OLD_REVISION, pods=[exited_pod("a")]), group("b", revision=OLD_REVISION))
    plan = plan_for(*groups, standby("new"), standby("old", revision=OLD_REVISION), spec=spec)
    assert roles(plan)["old"] == "active"


def test_promotion_avoids_a_cordoned_node_where_it_can() -> None:
    nodes = (
        NodeObservation("node-1", ready=True, unschedulable=True),
        NodeObservation("node-2", ready=True, unschedulable=False),
    )
    elsewhere = standby("z", pods=[pod("z", Role.STANDBY, node="node-2")])
    spec = pool_spec(warmPool={"size": 2})
    assert roles(plan_for(group("a"), standby("s"), elsewhere, spec=spec, nodes=nodes))["z"] == "active"
    assert roles(plan_for(group("a"), standby("s"), spec=spec, nodes=nodes))["s"] == "active"


def test_an_unhealthy_standby_is_quarantined_and_refilled() -> None:
    plan = plan_for(group("a"), group("b"), standby("s", state=engine_state(healthy=False)), spec=WITH_WARM)
    assert roles(plan) == {"s": "quarantined"}
    assert created(plan) == 1


def test_a_group_that_is_not_known_to_be_ill_keeps_its_role() -> None:
    quiet = replace(group("a", pods=[pod("a", Role.ACTIVE, ready=False)]), engine=reading(error="timeout"))
    assert roles(plan_for(quiet, group("b"), standby("s"), spec=WITH_WARM)) == {}


@pytest.mark.parametrize(
    ("groups", "want"),
    [
        ((group("a", **busy(9)), group("b", **busy(1)), group("c", **busy(5))), "b"),
        ((group("a", age=100), group("b", age=50), group("c", age=70)), "b"),
        ((group("a", **busy(9)), unasked("b"), unasked("c")), "a"),
        ((group("a", **busy(0)), group("b", revision=OLD_REVISION, **busy(50)), group("c")), "b"),
        ((group("a"), group("b", pods=[pod("b", Role.ACTIVE, ready=False)], **busy(9)), group("c")), "b"),
        ((group("a"), replace(group("b"), engine=reading(error="timeout")), group("c")), "b"),
    ],
    ids=["fewest streams", "then youngest", "unasked last", "old revision first", "not ready first", "silent first"],
)
def test_the_victim_of_a_scale_down_is_the_one_that_costs_least(groups: tuple[Any, ...], want: str) -> None:
    assert roles(plan_for(*groups, spec=pool_spec(rollout={"paused": True}))) == {want: "draining"}


def test_a_lower_number_drains_all_surplus_at_once_and_tells_the_engines() -> None:
    plan = plan_for(group("a"), group("b"), group("c"), spec=pool_spec(replicas=1))
    assert list(roles(plan).values()) == ["draining", "draining"]
    drains = actions(plan, StartDrain)
    assert {(drain.timeout_seconds, drain.settle_seconds) for drain in drains} == {(300.0, 5.0)}
    assert plan.actions.index(actions(plan, SetRole)[-1]) < plan.actions.index(drains[0])
    assert deleted(plan) == []


def test_surplus_stays_while_its_loss_would_leave_too_few_in_the_service() -> None:
    new = group("new", status={"conditions": []})
    assert roles(plan_for(group("a"), group("b"), new)) == {"new": "draining"}
    old = [group(name, revision=OLD_REVISION) for name in "ab"]
    waiting = plan_for(*old, new)
    assert roles(waiting) == {}
    assert waiting.requeue_after_seconds is not None
    assert waiting.requeue_after_seconds <= 3.0


def test_a_ready_old_group_is_not_drained_for_a_new_one_that_is_not_ready() -> None:
    unready = group("n", pods=[pod("n", Role.ACTIVE, ready=False)], status={"conditions": []})
    unlisted = group("o", revision=OLD_REVISION, status={"conditions": [condition("Loaded")]})
    assert roles(plan_for(unready, unlisted, spec=pool_spec(replicas=1))) == {}


def test_a_scale_down_taken_back_undrains_before_it_routes_and_before_it_uses_a_standby() -> None:
    plan = plan_for(group("a"), draining("d"), standby("s"), spec=WITH_WARM)
    assert roles(plan) == {"d": "active"}
    undrain = actions(plan, CancelDrain)[0]
    assert undrain.group == "d"
    assert plan.actions.index(undrain) < plan.actions.index(actions(plan, SetRole)[0])


@pytest.mark.parametrize(
    "gone",
    [
        draining("d", since=400.0),
        draining("d", state=engine_state(phase=EnginePhase.DRAINING, drained=True)),
        draining("d", pods=[pod("d", Role.DRAINING, terminating=True)]),
        replace(draining("d"), engine=reading(error="timeout")),
    ],
    ids=["out of time", "drained", "pod going", "silent"],
)
def test_a_drain_that_cannot_be_called_off_is_not(gone: Any) -> None:
    plan = plan_for(group("a"), gone, standby("s"), spec=WITH_WARM)
    assert roles(plan)["s"] == "active"
    assert roles(plan).get("d") != "active"


def test_after_a_failure_the_warm_group_goes_first_since_it_needs_no_answer() -> None:
    plan = plan_for(group("a", pods=[exited_pod("a")]), group("b"), draining("d"), standby("s"), spec=WITH_WARM)
    assert roles(plan) == {"a": "quarantined", "s": "active"}


def test_a_group_that_is_being_deleted_counts_as_gone() -> None:
    plan = plan_for(group("a", terminating=True), group("b"), standby("s"), spec=WITH_WARM)
    assert roles(plan) == {"s": "active"}
    assert created(plan) == 1


def test_the_same_snapshot_gives_the_same_plan() -> None:
    groups = (group("a", pods=[exited_pod("a")]), group("b"), standby("s"))
    assert plan_for(*groups, spec=WITH_WARM) == plan_for(*groups, spec=WITH_WARM)
    assert NOW.tzinfo is not None
