"""Rows of the health table, and that what is not known is never unhealthy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_contracts.admin import EnginePhase, RankState
from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.health import Health, HealthLimits, Verdict, classify_group, most_silent
from headwater_operator.core.snapshot import GroupObservation, NodeObservation
from support.operator_snapshots import NOW, ago, engine_state, exited_pod, group, loading, pod, reading

LIMITS = HealthLimits(silence_seconds=15.0, startup_deadline_seconds=1800.0, pods=1)
NODE = NodeObservation("node-1", ready=True, unschedulable=False)
LOST = NodeObservation("node-1", ready=None, unschedulable=False)


def classify(item: GroupObservation, *, node: NodeObservation = NODE, **limits: Any) -> Health:
    return classify_group(item, replace(LIMITS, **limits), [node], NOW)


def silent(name: str, seconds: float | None, *, ready: bool = False) -> GroupObservation:
    probe = reading(None, error="timeout", silent_seconds=seconds)
    return replace(group(name, pods=[pod(name, Role.ACTIVE, ready=ready)]), engine=probe)


@pytest.mark.parametrize(
    ("item", "want", "message"),
    [
        (group("g", pods=[exited_pod("g")]), Reason.ENGINE_EXITED, "engine exited (code 137, SIGKILL)"),
        (group("g", pods=[exited_pod("g", code=1)]), Reason.ENGINE_EXITED, "engine exited (code 1)"),
        (
            group("g", pods=[exited_pod("g", exit_reason="OOMKilled", exit_message='d8","event":"request done"}')]),
            Reason.ENGINE_EXITED,
            "engine exited (code 137, OOMKilled, SIGKILL)",
        ),
        (
            group("g", pods=[exited_pod("g", code=134, exit_message="CUDA error: illegal memory access")]),
            Reason.ENGINE_EXITED,
            "engine exited (code 134, SIGABRT): CUDA error: illegal memory access",
        ),
        (
            loading("g", pods=[exited_pod("g", exit_code=None, pod_reason="OutOfcpu", pod_message="too little CPU")]),
            Reason.LOAD_FAILED,
            "engine exited (Error) before it had loaded: too little CPU",
        ),
        (
            loading("g", pods=[exited_pod("g", code=1, exit_message="no such model")]),
            Reason.LOAD_FAILED,
            "engine exited (code 1) before it had loaded: no such model",
        ),
        (
            group("g", pods=[exited_pod("g", pod_reason="Evicted", pod_message="low on memory", exit_message="{}")]),
            Reason.POD_LOST,
            "pod g-0 was evicted (Evicted): low on memory",
        ),
        (
            group("g", pods=[exited_pod("g", pod_reason="NodeLost")]),
            Reason.NODE_LOST,
            "node node-1 took the pod down (NodeLost)",
        ),
        (group("g", pods=[pod("g", Role.ACTIVE, terminating=True)]), Reason.POD_LOST, "pod g-0 is being deleted"),
        (group("g", pods=[]), Reason.POD_LOST, "1 of 1 pods no longer exist"),
        (
            group("g", state=engine_state(healthy=False, failure_reason="ForwardProgressStopped")),
            Reason.ENGINE_UNHEALTHY,
            "ForwardProgressStopped",
        ),
        (
            group("g", state=engine_state(phase=EnginePhase.FAILED, failure_message="rank 3 hangs")),
            Reason.ENGINE_UNHEALTHY,
            "the engine reports itself unhealthy: rank 3 hangs",
        ),
        (
            group("g", state=engine_state(ranks=(RankState(0, alive=True), RankState(3, alive=False)))),
            Reason.ENGINE_UNHEALTHY,
            "rank 3 is dead",
        ),
        (
            loading("g", state=engine_state(phase=EnginePhase.FAILED, failure_reason="WeightsMissing")),
            Reason.LOAD_FAILED,
            "WeightsMissing",
        ),
        (silent("g", 15.0), Reason.ENGINE_UNHEALTHY, "answers neither the operator nor the kubelet"),
        (
            loading("g", pods=[pod("g", Role.STANDBY, ready=False, started_at=ago(1800))]),
            Reason.STARTUP_DEADLINE_EXCEEDED,
            "not loaded within health.startupDeadline (1800 s)",
        ),
    ],
)
def test_each_fault_has_its_reason_and_its_sentence(item: GroupObservation, want: Reason, message: str) -> None:
    got = classify(item)
    assert (got.verdict, got.reason, got.message) == (Verdict.UNHEALTHY, want, message)


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (group("g"), Verdict.HEALTHY),
        (loading("g"), Verdict.LOADING),
        (loading("g", pods=[]), Verdict.LOADING),
        (silent("g", 14.9), Verdict.UNKNOWN),
        (silent("g", None), Verdict.UNKNOWN),
        (silent("g", 3600.0, ready=True), Verdict.HEALTHY),
        (replace(group("g", pods=[pod("g", Role.ACTIVE, ready=False)]), engine=None), Verdict.UNKNOWN),
        (loading("g", pods=[pod("g", Role.STANDBY, ready=False, started_at=ago(1799))]), Verdict.LOADING),
        (
            loading("g", pods=[pod("g", Role.STANDBY, ready=False, started_at=None, created_at=ago(9e4))]),
            Verdict.LOADING,
        ),
        (group("g", state=engine_state(healthy=None)), Verdict.HEALTHY),
    ],
)
def test_what_is_well_or_not_known_is_not_unhealthy(item: GroupObservation, want: Verdict) -> None:
    assert classify(item).verdict is want


def test_a_stale_word_of_the_engine_is_no_word() -> None:
    item = replace(group("g"), engine=reading(engine_state(healthy=False), age=11.0))
    assert classify(item).verdict is Verdict.HEALTHY


def test_a_group_on_a_lost_node_is_unhealthy_once_neither_kubelet_nor_engine_speaks() -> None:
    got = classify(silent("g", None), node=LOST)
    assert (got.reason, got.node_caused) == (Reason.NODE_LOST, True)
    assert classify(silent("g", None, ready=True), node=LOST).verdict is Verdict.HEALTHY
    assert classify(group("g", pods=[pod("g", Role.ACTIVE, ready=False)]), node=LOST).verdict is Verdict.HEALTHY


def test_a_node_that_no_longer_exists_is_lost() -> None:
    other = NodeObservation("node-2", ready=True, unschedulable=False)
    assert classify(silent("g", None), node=other).message == "node node-1 is gone"


def test_an_engine_that_refuses_the_token_is_not_silent_while_the_kubelet_has_no_word_of_it() -> None:
    item = silent("g", 600.0)
    assert classify(item).verdict is Verdict.UNHEALTHY
    assert item.engine is not None
    stranger = replace(item, engine=replace(item.engine, token_refused=True))
    assert classify(stranger).verdict is Verdict.UNKNOWN


def test_where_most_groups_fall_silent_at_once_none_is_condemned() -> None:
    groups = [silent("a", 60.0), silent("b", 60.0), group("c")]
    assert most_silent(groups, 15.0) == (2, 3)
    got = classify(groups[0], blind=True)
    assert (got.verdict, got.reason) == (Verdict.UNKNOWN, Reason.OPERATOR_BLIND)
    assert not most_silent([silent("a", 60.0), group("b"), group("c")], 15.0)
    assert not most_silent([silent("a", 60.0)], 15.0)


@given(
    ready=st.booleans(),
    loaded=st.booleans(),
    answered=st.booleans(),
    healthy=st.none() | st.just(value=True),
    silence=st.none() | st.floats(0, 14.9),
    node_ready=st.none() | st.booleans(),
)
def test_without_evidence_of_a_fault_no_group_is_unhealthy(
    ready: bool, loaded: bool, answered: bool, healthy: bool | None, silence: float | None, node_ready: bool | None
) -> None:
    phase = EnginePhase.READY if loaded else EnginePhase.LOADING
    state = engine_state(phase=phase, healthy=healthy) if answered else None
    item = replace(
        group("g", loaded=loaded, pods=[pod("g", Role.ACTIVE, ready=ready)]),
        engine=reading(state, silent_seconds=silence) if answered or silence is not None else None,
    )
    node = NodeObservation("node-1", ready=node_ready, unschedulable=False)
    lost = not ready and not answered and silence is not None and node_ready is not True
    assert (classify(item, node=node).verdict is Verdict.UNHEALTHY) == lost
