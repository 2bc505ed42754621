"""What a group's status says, and how long a group must be routable before it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import Role
from headwater_operator.api.group import ReplicaGroupStatus
from headwater_operator.core.group_status import group_status
from headwater_operator.core.routes import serving, settle_wait_seconds
from headwater_operator.core.snapshot import GroupObservation, Refusal
from support.operator_snapshots import (
    NOW,
    SETTINGS,
    condition,
    draining,
    engine_state,
    exited_pod,
    group,
    loading,
    pod,
    quarantined,
    reading,
    snapshot,
    stamp,
    standby,
)


def status_of(item: GroupObservation, **fields: Any) -> dict[str, Any]:
    status = group_status(item, snapshot(item, **fields), NOW)
    ReplicaGroupStatus.model_validate(status)
    return status


def conditions(item: GroupObservation, **fields: Any) -> dict[str, tuple[str, str]]:
    return {found["type"]: (found["status"], found["reason"]) for found in status_of(item, **fields)["conditions"]}


def bare(name: str, **fields: Any) -> GroupObservation:
    """A standby whose pod has only just been made."""
    waiting = pod(name, Role.STANDBY, phase="Pending", ready=False, started_at=None, node=None, scheduled=None)
    return loading(name, pods=[replace(waiting, **fields)], engine=None)


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (group("g"), "Serving"),
        (group("g", pods=[pod("g", Role.STANDBY)], status={"conditions": [condition("Loaded")]}), "Warm"),
        (standby("g"), "Warm"),
        (standby("g", state=engine_state(phase=EnginePhase.SLEEPING)), "Sleeping"),
        (loading("g"), "Loading"),
        (bare("g"), "Pending"),
        (loading("g", pods=[]), "Pending"),
        (draining("g"), "Draining"),
        (group("g", terminating=True), "Draining"),
        (quarantined("g"), "Failed"),
        (group("g", pods=[exited_pod("g")]), "Failed"),
    ],
)
def test_the_phase_sums_the_group_up_in_one_word(item: GroupObservation, want: str) -> None:
    assert status_of(item)["phase"] == want


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (
            group("g"),
            {
                "Scheduled": ("True", "Scheduled"),
                "Loaded": ("True", "Loaded"),
                "Healthy": ("True", "Healthy"),
                "Routable": ("True", "InService"),
            },
        ),
        (
            bare("g", scheduled=False, unschedulable_message="no room"),
            {
                "Scheduled": ("False", "CapacityShort"),
                "Loaded": ("False", "Loading"),
                "Healthy": ("Unknown", "Loading"),
                "Routable": ("False", "NotInService"),
            },
        ),
        (
            bare("g", scheduled=True, node="node-1", waiting_reason="ErrImagePull", waiting_message="not found"),
            {
                "Scheduled": ("True", "Scheduled"),
                "Loaded": ("False", "ImagePullFailed"),
                "Healthy": ("Unknown", "Loading"),
                "Routable": ("False", "NotInService"),
            },
        ),
        (
            group("g", pods=[exited_pod("g")]),
            {
                "Scheduled": ("True", "Scheduled"),
                "Loaded": ("True", "Loaded"),
                "Healthy": ("False", "EngineExited"),
                "Routable": ("False", "NotInService"),
            },
        ),
        (
            replace(group("g", pods=[pod("g", Role.ACTIVE, ready=False)]), engine=None),
            {
                "Scheduled": ("True", "Scheduled"),
                "Loaded": ("True", "Loaded"),
                "Healthy": ("Unknown", "NoAnswer"),
                "Routable": ("False", "NotInService"),
            },
        ),
    ],
    ids=["serving", "no room", "no image", "exited", "silent"],
)
def test_four_conditions_tell_how_far_it_got(item: GroupObservation, want: dict[str, tuple[str, str]]) -> None:
    assert conditions(item) == want


def test_a_pod_that_the_api_server_refuses_is_told_in_its_words() -> None:
    status = status_of(loading("g", pods=[]), refused={"g-0": Refusal("exceeded quota: gpus", 0.0)})
    scheduled = status["conditions"][0]
    assert scheduled["reason"] == "PodRefused"
    assert "exceeded quota: gpus" in scheduled["message"]


def test_figures_that_are_not_known_are_left_out() -> None:
    known = status_of(group("g", state=engine_state(running=3, waiting=1, kv_used_blocks=40)))
    assert (known["running"], known["waiting"], known["kvCacheUtilizationPercent"]) == (3, 1, 40)
    unknown = status_of(replace(group("g"), engine=reading(error="timeout")))
    assert not {"running", "waiting", "kvCacheUtilizationPercent"} & unknown.keys()


def test_the_cold_start_is_measured_once() -> None:
    assert status_of(standby("g", age=184.4))["coldStartSeconds"] == 184
    again = standby("g", age=900.0, status={"coldStartSeconds": 184, "conditions": [condition("Loaded")]})
    assert status_of(again)["coldStartSeconds"] == 184
    assert "coldStartSeconds" not in status_of(loading("g"))


def test_the_first_word_on_a_failure_stays() -> None:
    failed = group("g", pods=[exited_pod("g")])
    first = status_of(failed)["failure"]
    assert first == {"reason": "EngineExited", "message": "engine exited (code 137, SIGKILL)", "at": stamp(0)}
    kept = {"reason": "EngineExited", "message": "earlier", "at": stamp(50)}
    assert status_of(replace(failed, status={**failed.status, "failure": kept}))["failure"] == kept
    empty = quarantined("g", pods=[], status={"failure": kept, "conditions": []}, loaded=False)
    assert status_of(empty)["failure"] == kept
    assert "failure" not in status_of(group("g", status={"failure": kept}))


def routable(seconds_ago: float | None, **fields: Any) -> GroupObservation:
    found = [condition("Loaded")]
    if seconds_ago is not None:
        found.append(condition("Routable", seconds_ago=seconds_ago))
    return group("g", status={"conditions": found}, **fields)


@pytest.mark.parametrize(
    ("item", "serves", "wait"),
    [
        (routable(3.0), True, None),
        (routable(2.0), False, 1.0),
        (routable(None), False, 3.0),
        (routable(300.0, pods=[pod("g", Role.ACTIVE, ready=False)]), False, None),
        (replace(routable(300.0), engine=None), True, None),
        (replace(routable(None), engine=None), False, None),
    ],
    ids=["long enough", "not yet", "just now", "no longer", "unknown: as before", "unknown: never was"],
)
def test_a_group_serves_once_it_was_routable_for_as_long_as_proxies_need(
    item: GroupObservation, serves: bool, wait: float | None
) -> None:
    pool = snapshot(item)
    assert serving(item, pool, SETTINGS, NOW) is serves
    assert settle_wait_seconds(item, pool, SETTINGS, NOW) == wait
