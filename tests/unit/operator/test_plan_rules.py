"""Each rule of a plan refuses a plan that breaks it, and no decision ever breaks one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.actions import Action, CreateGroup, DeleteGroup, EventNote, Plan, SetRole
from headwater_operator.core.decide import decide
from headwater_operator.core.plan import PlanRuleBrokenError, check_plan
from headwater_operator.core.snapshot import GroupObservation
from support.operator_snapshots import (
    NOW,
    OLD_REVISION,
    REVISION,
    SETTINGS,
    draining,
    engine_state,
    exited_pod,
    group,
    loading,
    pod,
    pool_spec,
    quarantined,
    snapshot,
    standby,
    suffixes,
)


def plan(*actions: Action, active: int = 2, warm: int = 0, **fields: Any) -> Plan:
    return Plan(tuple(actions), (), active, warm, Reason.FIXED_REPLICAS, REVISION, **fields)


def to(name: str, role: Role, reason: Reason = Reason.SCALED_DOWN) -> SetRole:
    return SetRole(name, role, reason, "", {})


def new(role: Role = Role.STANDBY, revision: str = REVISION) -> CreateGroup:
    return CreateGroup("n", role, revision, {}, Reason.FIXED_REPLICAS, "")


def gone(name: str, uid: str | None = None) -> DeleteGroup:
    return DeleteGroup(name, uid or f"uid-{name}", Reason.RETIRED, "")


PAIR = (group("a"), group("b"))


@pytest.mark.parametrize(
    ("groups", "bad", "rule"),
    [
        ((*PAIR, standby("s")), plan(new()), "rule 1"),
        (PAIR, plan(new(Role.ACTIVE)), "rule 1"),
        (PAIR, plan(to("a", Role.DRAINING)), "rule 2"),
        ((*PAIR, standby("s")), plan(to("a", Role.DRAINING), to("b", Role.DRAINING), to("s", Role.ACTIVE)), "rule 2"),
        ((*PAIR, group("c"), draining("d")), plan(to("a", Role.DRAINING, Reason.RETIRED)), "rule 3"),
        (PAIR, plan(gone("a")), "rule 4"),
        ((*PAIR, standby("s", state=engine_state(running=1))), plan(gone("s")), "rule 4"),
        ((*PAIR, standby("s")), plan(gone("s", "another uid")), "rule 4"),
        ((*PAIR, standby("s")), plan(to("s", Role.ACTIVE)), "rule 5"),
        ((group("a"), loading("s")), plan(to("s", Role.ACTIVE)), "rule 5"),
        ((*PAIR, standby("s")), plan(to("s", Role.DRAINING), gone("s")), "rule 6"),
        ((), plan(new(revision="other"), problem=EventNote(Reason.INVALID_SPEC, "")), "rule 7"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused(groups: tuple[GroupObservation, ...], bad: Plan, rule: str) -> None:
    with pytest.raises(PlanRuleBrokenError, match=rule):
        check_plan(snapshot(*groups), bad)


@pytest.mark.parametrize(
    ("groups", "good"),
    [
        ((group("a"),), plan(new())),
        ((group("a", pods=[exited_pod("a")]), group("b")), plan(to("a", Role.QUARANTINED), new())),
        ((*PAIR, group("c")), plan(to("a", Role.DRAINING))),
        ((*PAIR, standby("s")), plan(gone("s"))),
        ((*PAIR, standby("s")), plan(to("s", Role.ACTIVE), rolling=True)),
    ],
)
def test_a_plan_that_keeps_the_rules_passes(groups: tuple[GroupObservation, ...], good: Plan) -> None:
    check_plan(snapshot(*groups), good)


@st.composite
def any_group(draw: st.DrawFn, name: str) -> GroupObservation:
    """A group in any state that it may be found in."""
    revision = draw(st.sampled_from([REVISION, OLD_REVISION]))
    running = draw(st.sampled_from([0, 0, 3]))
    phase = draw(st.sampled_from([EnginePhase.READY, EnginePhase.DRAINING, EnginePhase.FAILED]))
    state = engine_state(
        phase=phase, running=running, healthy=draw(st.sampled_from([True, True, None, False])), drained=running == 0
    )
    role = draw(st.sampled_from(list(Role)))
    pods = draw(
        st.sampled_from(
            [
                [pod(name, role)],
                [pod(name, role, ready=False)],
                [pod(name, role, terminating=True)],
                [pod(name, role, ready=False, scheduled=False, node=None, started_at=None, phase="Pending")],
                [exited_pod(name, role)],
                [],
            ]
        )
    )
    common: dict[str, Any] = {
        "revision": revision,
        "pods": pods,
        "age": draw(st.sampled_from([10.0, 100.0])),
        "terminating": draw(st.sampled_from([False, False, False, True])),
    }
    if role is Role.DRAINING:
        return draining(name, state=state, since=draw(st.sampled_from([1.0, 400.0])), **common)
    if role is Role.QUARANTINED:
        return quarantined(name, since=draw(st.sampled_from([1.0, 1000.0])), **common)
    if draw(st.booleans()):
        return group(name, role, loaded=False, **common)
    if draw(st.booleans()):
        common["status"] = {"conditions": []}
    return group(name, role, state=state, **common)


SPECS = st.builds(
    lambda replicas, warm, surge, down, paused, suspend: pool_spec(
        replicas=replicas,
        warmPool={"size": warm},
        rollout={"maxSurge": surge, "maxUnavailable": down or (0 if surge else 1), "paused": paused},
        suspend=suspend,
    ),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)
GROUPS = st.integers(0, 7).flatmap(lambda n: st.tuples(*(any_group(f"g{number}") for number in range(n))))


@settings(max_examples=400, deadline=None)
@given(groups=GROUPS, spec=SPECS)
def test_no_decision_breaks_a_rule_or_touches_what_it_must_not(groups: tuple[GroupObservation, ...], spec: Any) -> None:
    decided = decide(snapshot(*groups, spec=spec), SETTINGS, NOW, suffixes())
    by_name = {item.name: item for item in groups}
    roles = {item.name: str(item.role) for item in groups if not item.terminating}
    creations = 0
    for action in decided.actions:
        if isinstance(action, SetRole):
            assert not by_name[action.group].terminating
            assert action.message
            roles[action.group] = str(action.role)
        elif isinstance(action, DeleteGroup):
            assert roles.pop(action.group) != "active"
            assert action.uid == by_name[action.group].uid
        elif isinstance(action, CreateGroup):
            creations += 1
            assert action.name not in by_name
    wanted = decided.desired_active + decided.desired_standby + spec.rollout.max_surge
    held = sum(role in ("active", "standby") for role in roles.values())
    assert creations == 0 or held + creations <= wanted
    for item in groups:
        if item.role is Role.ACTIVE and not item.terminating and item.engine is None:
            assert roles[item.name] != "quarantined"
