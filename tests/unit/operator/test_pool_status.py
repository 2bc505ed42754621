"""What a pool's status says, and when Ready is said."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headwater_contracts.reasons import ConditionType, Reason, Role
from headwater_operator.api.pool import InferencePoolStatus
from headwater_operator.core.decide import decide
from headwater_operator.core.snapshot import NEW_GROUP, GroupObservation, PoolSnapshot, Refusal
from headwater_operator.core.status import group_status, pool_status
from support.operator_snapshots import (
    NOW,
    OLD_REVISION,
    REVISION,
    SETTINGS,
    ago,
    condition,
    draining,
    engine_state,
    exited_pod,
    group,
    histogram,
    loading,
    pod,
    pool_spec,
    quarantined,
    reading,
    snapshot,
    stamp,
    standby,
    suffixes,
    vllm_spec,
)


def status_of(*groups: GroupObservation, **fields: Any) -> dict[str, Any]:
    """The status after the decision on such a pool; checked against the API's own model."""
    pool: PoolSnapshot = snapshot(*groups, **fields)
    status = pool_status(pool, decide(pool, SETTINGS, NOW, suffixes()), SETTINGS, NOW)
    InferencePoolStatus.model_validate(status)
    return status


def conditions(*groups: GroupObservation, **fields: Any) -> dict[str, dict[str, Any]]:
    return {item["type"]: item for item in status_of(*groups, **fields)["conditions"]}


def short(found: dict[str, dict[str, Any]], *kinds: str) -> list[tuple[str, str]]:
    return [(found[kind]["status"], found[kind]["reason"]) for kind in kinds]


MAIN = ("Ready", "Reconciling", "Stalled")
FRESH = {"conditions": [condition("Loaded"), condition("Routable", seconds_ago=1.0)]}


def pulling(name: str, *, age: float, reason: str = "ImagePullBackOff") -> GroupObservation:
    waiting = pod(
        name,
        Role.STANDBY,
        phase="Pending",
        ready=False,
        started_at=None,
        created_at=ago(age),
        waiting_reason=reason,
        waiting_message="Back-off pulling image: ErrImagePull: not found",
    )
    return loading(name, pods=[waiting])


def test_all_ten_conditions_stand_in_every_status_with_reason_and_generation() -> None:
    found = conditions(group("a"), group("b"), generation=7)
    assert list(found) == [str(kind) for kind in ConditionType]
    assert all(item["reason"] and item["message"] and item["observedGeneration"] == 7 for item in found.values())


@pytest.mark.parametrize(
    ("groups", "fields", "want"),
    [
        ((group("a"), group("b")), {}, [("True", "GroupsServing"), ("False", "Converged"), ("False", "NoProblem")]),
        (
            (group("a"), loading("s")),
            {},
            [("False", "GroupsNotReady"), ("True", "Progressing"), ("False", "NoProblem")],
        ),
        (
            (group("a"), group("b")),
            {"service_exists": False},
            [("False", "Progressing"), ("True", "Progressing"), ("False", "NoProblem")],
        ),
        (
            (group("a", revision=OLD_REVISION), group("b")),
            {},
            [("False", "Progressing"), ("True", "Progressing"), ("False", "NoProblem")],
        ),
        (
            (group("a"), group("b")),
            {"spec": vllm_spec(engine={"image": "evil.example/x"})},
            [("False", "ImageNotAllowed"), ("False", "ImageNotAllowed"), ("True", "ImageNotAllowed")],
        ),
        (
            (group("a"), pulling("s", age=60)),
            {},
            [("False", "ImagePullFailed"), ("False", "ImagePullFailed"), ("True", "ImagePullFailed")],
        ),
        (
            (group("a"), pulling("s", age=10)),
            {},
            [("False", "ImagePullFailed"), ("True", "Progressing"), ("False", "NoProblem")],
        ),
        (
            (group("a"), pulling("s", age=1, reason="InvalidImageName")),
            {},
            [("False", "ImagePullFailed"), ("False", "ImagePullFailed"), ("True", "ImagePullFailed")],
        ),
        (
            (group("a"), loading("s", pods=[])),
            {"refused": {"s-0": Refusal("exceeded quota: gpus", 0.0)}},
            [("False", "PodRefused"), ("False", "PodRefused"), ("True", "PodRefused")],
        ),
        (
            (group("a"),),
            {"refused": {NEW_GROUP: Refusal("exceeded quota: groups", 29.0)}},
            [("False", "GroupRefused"), ("True", "Progressing"), ("False", "NoProblem")],
        ),
        (
            (group("a"),),
            {"refused": {NEW_GROUP: Refusal("exceeded quota: groups", 31.0)}},
            [("False", "GroupRefused"), ("False", "GroupRefused"), ("True", "GroupRefused")],
        ),
        (
            (group("a"), group("b")),
            {"refused": {NEW_GROUP: Refusal("exceeded quota: groups", 31.0)}},
            [("True", "GroupsServing"), ("False", "Converged"), ("False", "NoProblem")],
        ),
        (
            (),
            {"spec": pool_spec(suspend=True)},
            [("True", "Suspended"), ("False", "Converged"), ("False", "NoProblem")],
        ),
        (
            (group("a"),),
            {"spec": pool_spec(suspend=True)},
            [("False", "Progressing"), ("True", "Progressing"), ("False", "NoProblem")],
        ),
        (
            (),
            {"spec": pool_spec(replicas=0)},
            [("True", "GroupsServing"), ("False", "Converged"), ("False", "NoProblem")],
        ),
    ],
    ids=[
        "serving",
        "loading",
        "no Service",
        "rollout",
        "image refused",
        "image missing",
        "image not there yet",
        "image name invalid",
        "quota",
        "quota of groups for a moment",
        "quota of groups",
        "refused group not wanted any more",
        "suspended",
        "suspending",
        "zero replicas",
    ],
)
def test_ready_reconciling_and_stalled_follow_the_table(
    groups: tuple[GroupObservation, ...], fields: dict[str, Any], want: list[tuple[str, str]]
) -> None:
    assert short(conditions(*groups, **fields), *MAIN) == want


NOT_YET = {
    "label lags": group("b", pods=[pod("b", Role.STANDBY)]),
    "kubelet not ready": group("b", pods=[pod("b", Role.ACTIVE, ready=False)]),
    "engine admits nothing": group("b", state=engine_state(admitting=False)),
    "routable for a moment": group("b", status=FRESH),
    "never seen routable": group("b", status={"conditions": [condition("Loaded")]}),
    "pod on its way out": group("b", pods=[pod("b", Role.ACTIVE, terminating=True)]),
    "engine exited": group("b", pods=[exited_pod("b")]),
    "engine silent": replace(group("b"), engine=reading(error="timeout")),
}


@pytest.mark.parametrize("item", NOT_YET.values(), ids=NOT_YET.keys())
def test_ready_is_not_said_before_requests_reach_every_wanted_group(item: GroupObservation) -> None:
    assert short(conditions(group("a"), item), "Ready")[0][0] == "False"


def test_ready_waits_for_the_endpoint() -> None:
    missing = conditions(group("a"), group("b"), endpoints_ready=frozenset({"a-0"}))
    assert short(missing, "Ready") == [("False", "GroupsNotReady")]
    assert short(conditions(group("a"), group("b"), endpoints_ready=None), "Ready") == [("True", "GroupsServing")]


def test_what_is_not_known_keeps_ready_but_never_makes_it() -> None:
    silent = replace(group("b"), engine=None)
    status = {"conditions": [condition("Ready")], "currentRevision": REVISION, "updateRevision": REVISION}
    assert short(conditions(group("a"), silent, status=status), "Ready") == [("True", "GroupsServing")]
    assert short(conditions(group("a"), silent), "Ready") == [("False", "GroupsNotReady")]


def test_groups_that_refuse_the_token_serve_by_their_endpoints_and_say_what_to_do() -> None:
    def stranger(name: str) -> GroupObservation:
        probe = reading(None, error="HTTP 401", silent_seconds=60.0, token_refused=True)
        return replace(group(name), engine=probe)

    groups, reached = (stranger("a"), stranger("b")), frozenset({"a-0", "b-0"})
    found = conditions(*groups, endpoints_ready=reached)
    assert short(found, "Ready", "SLOMet") == [("True", "GroupsServing"), ("Unknown", "TokenRefused")]
    assert found["SLOMet"]["message"].startswith("2 of 2 groups: the engine refuses the operator's admin token")
    assert short(conditions(*groups, endpoints_ready=frozenset({"a-0"})), "Ready") == [("False", "GroupsNotReady")]
    of_group = {item["type"]: item for item in group_status(groups[0], snapshot(*groups), NOW)["conditions"]}
    assert short(of_group, "Healthy") == [("Unknown", "TokenRefused")]
    assert "kubectl delete rgroup a" in of_group["Healthy"]["message"]


def test_max_unavailable_counts_but_never_down_to_none() -> None:
    spec = pool_spec(rollout={"maxUnavailable": 2})
    assert short(conditions(group("a"), loading("s"), spec=spec), "Ready") == [("True", "GroupsServing")]
    assert short(conditions(loading("s"), loading("t"), spec=spec), "Ready")[0][0] == "False"


def test_a_transition_time_moves_only_with_the_status() -> None:
    status = {"conditions": [condition("Ready"), condition("Stalled", "True")]}
    found = conditions(group("a"), group("b"), status=status)
    assert found["Ready"]["lastTransitionTime"] == stamp(300)
    assert found["Stalled"]["lastTransitionTime"] == stamp(0)


def test_a_crash_loop_is_no_stall() -> None:
    failures = [{"at": stamp(9), "group": f"f{n}", "revision": REVISION, "reason": "LoadFailed"} for n in range(6)]
    status = {"failures": failures, "currentRevision": REVISION, "updateRevision": REVISION}
    found = conditions(quarantined("q"), status=status)
    assert short(found, *MAIN) == [("False", "CrashLoopHold"), ("True", "Progressing"), ("False", "NoProblem")]
    assert "engine exited (code 137, SIGKILL)" in found["Ready"]["message"]


def test_a_fault_of_a_standby_alone_stalls_nothing() -> None:
    spec = pool_spec(warmPool={"size": 1})
    found = conditions(group("a"), group("b"), pulling("s", age=600), spec=spec)
    assert short(found, "Ready", "Stalled", "WarmPoolReady") == [
        ("True", "GroupsServing"),
        ("False", "NoProblem"),
        ("False", "WarmPoolShort"),
    ]
    assert "spec.engine.image" in found["WarmPoolReady"]["message"]


def test_capacity_carries_the_schedulers_words() -> None:
    waiting = pod("s", Role.STANDBY, ready=False, scheduled=False, node=None, unschedulable_message="0/3 nodes")
    found = conditions(group("a"), loading("s", pods=[waiting]))
    assert short(found, "CapacityAvailable") == [("False", "CapacityShort")]
    assert found["CapacityAvailable"]["message"] == "pod s-0: 0/3 nodes"
    assert "0/3 nodes" in found["Ready"]["message"]


def test_a_refused_group_is_told_with_the_servers_words_where_it_is_missed() -> None:
    spec, refused = pool_spec(warmPool={"size": 1}), {NEW_GROUP: Refusal("exceeded quota: groups", 0.0)}
    found = conditions(group("a"), group("b"), spec=spec, refused=refused)
    assert short(found, "Ready", "WarmPoolReady") == [("True", "GroupsServing"), ("False", "WarmPoolShort")]
    words = "the API server refuses a new group: exceeded quota: groups: mend the quota"
    assert words in found["WarmPoolReady"]["message"]
    assert words in conditions(group("a"), refused=refused)["Ready"]["message"]


LEAVING = group("x", revision=OLD_REVISION, terminating=True)
ROOM = "set spec.rollout.maxUnavailable to 1"


@pytest.mark.parametrize(
    ("others", "rollout", "want"),
    [
        ((), {}, True),
        ((LEAVING,), {"maxUnavailable": 1}, False),
        ((LEAVING,), {}, False),
        ((draining("d", revision=OLD_REVISION),), {}, False),
        ((standby("w", revision=OLD_REVISION),), {}, False),
    ],
    ids=["nothing gives way", "an active group may", "one goes", "one drains", "an old standby goes"],
)
def test_a_rollout_without_room_says_what_it_waits_for_and_the_remedy(
    others: tuple[GroupObservation, ...], rollout: dict[str, Any], want: bool
) -> None:
    waiting = pod("s", Role.STANDBY, ready=False, scheduled=False, node=None, unschedulable_message="Insufficient cpu")
    old = group("a", revision=OLD_REVISION)
    warm = sum(other.role is Role.STANDBY for other in others)
    spec = pool_spec(replicas=1, warmPool={"size": warm}, rollout=rollout)
    found = conditions(old, loading("s", pods=[waiting]), *others, spec=spec)
    assert short(found, "Ready", "RolledOut") == [("False", "CapacityShort")] * 2
    for kind in ("Ready", "RolledOut"):
        assert "waits for room" in found[kind]["message"]
        assert "Insufficient cpu" in found[kind]["message"]
        assert (ROOM in found[kind]["message"]) is want


def test_a_rollout_whose_new_groups_do_not_start_says_why() -> None:
    old = (group("a", revision=OLD_REVISION), group("b", revision=OLD_REVISION))
    found = conditions(*old, pulling("s", age=5))
    assert short(found, "Ready", "RolledOut") == [("False", "ImagePullFailed")] * 2
    assert "spec.engine.image" in found["RolledOut"]["message"]
    refused = conditions(*old, refused={NEW_GROUP: Refusal("exceeded quota: groups", 0.0)})
    assert "0 of 2 active" in refused["RolledOut"]["message"]
    assert "exceeded quota: groups" in refused["RolledOut"]["message"]


def served(ttft_bucket: int, slo: dict[str, Any] | None) -> tuple[str, str]:
    counts = [0, 0, 0]
    counts[ttft_bucket] = 10
    start = engine_state(ttft=histogram((0.5, 1.0), (0, 0, 0)))
    one = replace(group("a"), engine=reading(engine_state(ttft=histogram((0.5, 1.0), counts)), window_start=start))
    return short(conditions(one, spec=pool_spec(replicas=1, slo=slo)), "SLOMet")[0]


def test_slo_met_compares_with_the_targets_and_is_unknown_without_data() -> None:
    assert served(0, {"ttftP90": "600ms"}) == ("True", "WithinTargets")
    assert served(1, {"ttftP90": "600ms"}) == ("False", "AboveTargets")
    assert served(0, None) == ("Unknown", "NoData")
    assert served(0, {"interTokenLatencyP99": "50ms"}) == ("Unknown", "NoData")


def test_fields_without_effect_are_named() -> None:
    spec = pool_spec(replicas=None, autoscaling={"maxReplicas": 3})
    found = conditions(group("a"), spec=spec)
    assert short(found, "SpecHonored", "ScalingActive") == [
        ("False", "FieldsNotHonored"),
        ("False", "AutoscalingNotSupported"),
    ]
    assert "spec.autoscaling" in found["SpecHonored"]["message"]


def test_a_field_that_acts_in_part_is_named_with_how_far() -> None:
    found = conditions(group("a"), group("b"), spec=pool_spec(rollout={"partition": 1}))
    assert short(found, "SpecHonored", "Ready") == [("False", "FieldsNotHonored"), ("True", "GroupsServing")]
    message = found["SpecHonored"]["message"]
    assert message.startswith("in part only in this version: spec.rollout.partition (")
    assert "without effect" not in message


def test_the_summary_is_what_the_print_columns_show() -> None:
    spec = pool_spec(warmPool={"size": 1})
    busy = engine_state(kv_used_blocks=71)
    status = status_of(group("a", state=busy), group("b", state=busy), standby("s"), spec=spec)
    assert status["summary"] == {"active": "2/2", "warm": "1/1", "kv": "71%", "ttft": "-"}
    assert (status["replicas"], status["readyReplicas"], status["standbyReplicas"]) == (2, 2, 1)
    assert status["selector"] == "headwater.dev/pool=pool,headwater.dev/role=active,headwater.dev/rank=0"
    assert status["desired"] == {"active": 2, "standby": 1, "reason": "FixedReplicas"}


def test_decisions_are_kept_to_ten_and_a_repeated_plan_is_told_once() -> None:
    old = [{"at": stamp(60), "action": "Promoted", "reason": "X", "message": f"m{number}"} for number in range(10)]
    dead, alive = group("a", pods=[exited_pod("a")]), (group("b"), standby("s"))
    first = status_of(dead, *alive, status={"decisions": old})["decisions"]
    assert len(first) == 10
    assert (first[-1]["action"], first[-1]["reason"], first[-1]["at"]) == ("Replaced", "EngineExited", stamp(0))
    assert status_of(dead, *alive, status={"decisions": first})["decisions"] == first


def test_a_change_of_number_is_a_decision_with_both_values() -> None:
    spec = pool_spec(replicas=1)
    decisions = status_of(group("a"), group("b"), spec=spec, status={"desired": {"active": 2}})["decisions"]
    assert {key: decisions[0][key] for key in ("action", "from", "to", "reason")} == {
        "action": "ScaledDown",
        "from": 2,
        "to": 1,
        "reason": "FixedReplicas",
    }


def test_a_number_that_goes_up_down_and_up_again_is_told_each_time() -> None:
    status: dict[str, Any] = {"desired": {"active": 1}}
    for number in (3, 1, 3):
        got = status_of(group("a"), spec=pool_spec(replicas=number), status=status)
        status = {"desired": {"active": number}, "decisions": got["decisions"]}
    scaled = [item for item in status["decisions"] if item["action"].startswith("Scaled")]
    assert [(item["from"], item["to"]) for item in scaled] == [(1, 3), (3, 1), (1, 3)]


def test_the_current_revision_moves_when_the_rollout_has_finished() -> None:
    status = {"currentRevision": OLD_REVISION, "updateRevision": OLD_REVISION}
    half = status_of(group("a", revision=OLD_REVISION), group("b"), status=status)
    assert (half["currentRevision"], half["updateRevision"]) == (OLD_REVISION, REVISION)
    assert status_of(group("a"), group("b"), status=status)["currentRevision"] == REVISION
    refused = status_of(group("a"), spec=vllm_spec(engine={"image": "evil.example/x"}), status=status)
    assert (refused["currentRevision"], refused["updateRevision"]) == (OLD_REVISION, OLD_REVISION)


def test_a_status_stays_small_whatever_it_has_to_say() -> None:
    words = "w" * 5000
    decisions = [{"at": stamp(9), "action": "Replaced", "reason": "X", "message": "m" * 400} for _ in range(10)]
    failures = [{"at": stamp(9), "group": "g" * 60, "revision": REVISION, "reason": "LoadFailed"}] * 32
    waiting = pod("s", Role.STANDBY, ready=False, scheduled=False, node=None, unschedulable_message=words)
    status = status_of(
        loading("s", pods=[waiting]), quarantined("q"), status={"decisions": decisions, "failures": failures}
    )
    assert len(json.dumps(status)) < 16 * 1024


def test_reasons_are_words_of_the_one_enum() -> None:
    known = {str(reason) for reason in Reason}
    assert {item["reason"] for item in conditions(group("a"), loading("s")).values()} <= known


def test_an_operator_that_hears_most_groups_no_more_says_so_and_tells_it_once() -> None:
    def unheard(name: str) -> GroupObservation:
        probe = reading(None, error="timeout", silent_seconds=60.0)
        return replace(group(name, pods=[pod(name, Role.ACTIVE, ready=False)]), engine=probe)

    groups, spec = (unheard("a"), unheard("b"), group("c")), pool_spec(replicas=3)
    blind = snapshot(*groups, spec=spec)
    plan = decide(blind, SETTINGS, NOW, suffixes())
    assert plan.actions == ()
    want = (
        "2 of 3 loaded groups answer no probe, so none is quarantined for its silence: "
        "see whether the operator reaches port 8001 of their pods"
    )
    assert [(event.reason, event.message, event.warning) for event in plan.events] == [
        (Reason.OPERATOR_BLIND, want, True)
    ]
    status = pool_status(blind, plan, SETTINGS, NOW)
    slo = next(item for item in status["conditions"] if item["type"] == "SLOMet")
    assert (slo["status"], slo["reason"], slo["message"]) == ("Unknown", "OperatorBlind", want)
    assert "decisions" not in status
    found = {item["type"]: item for item in group_status(groups[0], blind, NOW)["conditions"]}
    assert short(found, "Healthy") == [("Unknown", "OperatorBlind")]
    again = decide(snapshot(*groups, spec=spec, status=status), SETTINGS, NOW, suffixes())
    assert again.events == ()
