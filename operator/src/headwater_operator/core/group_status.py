"""One group's whole status: four conditions, a word for people, and the engine's figures.

| phase    | when (first row that applies)                              |
|----------|------------------------------------------------------------|
| Failed   | quarantined, or unhealthy                                  |
| Draining | draining, or being deleted                                 |
| Pending  | not loaded, and its container has not started              |
| Loading  | not loaded                                                 |
| Sleeping | the engine sleeps                                          |
| Serving  | active and routable                                        |
| Warm     | loaded                                                     |
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import GroupConditionType, Phase, Reason, Role
from headwater_operator.core.conditions import Finding, shorten, write_conditions
from headwater_operator.core.facts import fresh_state, token_refused
from headwater_operator.core.health import Health, Verdict
from headwater_operator.core.pod_faults import group_fault
from headwater_operator.core.routes import routable_now
from headwater_operator.core.signals import kv_percent
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot
from headwater_operator.core.times import format_time, seconds_between
from headwater_operator.core.verdicts import REFUSED_BY_ENGINE, classify_groups

_FAILURE_MESSAGE_LIMIT = 1000


def group_status(group: GroupObservation, snapshot: PoolSnapshot, now: datetime) -> dict[str, Any]:
    """The group's whole status; figures that are not known are left out."""
    health = classify_groups(snapshot, now)[group.name]
    findings = (
        _scheduled(group, snapshot),
        _loaded(group, health, snapshot),
        _healthy(group, health),
        _routable(group, snapshot),
    )
    state = fresh_state(group)
    values: dict[str, Any] = {
        "observedGeneration": group.generation,
        "phase": str(_phase(group, health, snapshot)),
        "conditions": write_conditions(findings, group.status.get("conditions") or (), group.generation, now),
        "nodes": [pod.node for pod in sorted(group.pods, key=lambda pod: pod.rank) if pod.node] or None,
        "coldStartSeconds": _cold_start(group, health, now),
        "running": state.running if state else None,
        "waiting": state.waiting if state else None,
        "kvCacheUtilizationPercent": kv_percent([state]) if state else None,
        "failure": _failure(group, health, now),
    }
    return {key: value for key, value in values.items() if value is not None}


def _scheduled(group: GroupObservation, snapshot: PoolSnapshot) -> Finding:
    kind = GroupConditionType.SCHEDULED
    if not group.pods:
        reason, message = group_fault(group, snapshot) or (Reason.PROGRESSING, "its pod does not exist yet")
        return Finding(kind, False, reason, message)
    for pod in group.pods:
        if pod.scheduled is False:
            return Finding(kind, False, Reason.CAPACITY_SHORT, pod.unschedulable_message or "no node fits")
    if all(pod.scheduled or pod.node for pod in group.pods):
        return Finding(kind, True, Reason.SCHEDULED, "all pods have a node")
    return Finding(kind, None, Reason.PROGRESSING, "waits for the scheduler")


def _loaded(group: GroupObservation, health: Health, snapshot: PoolSnapshot) -> Finding:
    kind = GroupConditionType.LOADED
    if health.loaded:
        return Finding(kind, True, Reason.LOADED, "the model is loaded")
    if health.reason is not None:
        return Finding(kind, False, health.reason, health.message)
    reason, message = group_fault(group, snapshot) or (Reason.LOADING, "the model is not loaded yet")
    return Finding(kind, False, reason, message)


def _healthy(group: GroupObservation, health: Health) -> Finding:
    kind = GroupConditionType.HEALTHY
    if health.verdict is Verdict.UNHEALTHY:
        return Finding(kind, False, health.reason or Reason.ENGINE_UNHEALTHY, health.message)
    if token_refused(group):
        return Finding(kind, None, Reason.TOKEN_REFUSED, f"{REFUSED_BY_ENGINE}: kubectl delete rgroup {group.name}")
    if health.verdict is Verdict.HEALTHY:
        return Finding(kind, True, Reason.HEALTHY, "the engine works")
    if health.verdict is Verdict.LOADING:
        return Finding(kind, None, Reason.LOADING, "the model is not loaded yet")
    return Finding(kind, None, health.reason or Reason.NO_ANSWER, health.message)


def _routable(group: GroupObservation, snapshot: PoolSnapshot) -> Finding:
    if routable_now(group, snapshot):
        return Finding(GroupConditionType.ROUTABLE, True, Reason.IN_SERVICE, "the Service leads to it")
    message = "on its way into the Service" if group.role is Role.ACTIVE else f"its role is {group.role}"
    return Finding(GroupConditionType.ROUTABLE, False, Reason.NOT_IN_SERVICE, message)


def _phase(group: GroupObservation, health: Health, snapshot: PoolSnapshot) -> Phase:
    if group.role is Role.QUARANTINED or (health.verdict is Verdict.UNHEALTHY and not group.terminating):
        return Phase.FAILED
    if group.role is Role.DRAINING or group.terminating:
        return Phase.DRAINING
    if not health.loaded:
        return Phase.LOADING if any(pod.started_at for pod in group.pods) else Phase.PENDING
    state = fresh_state(group)
    if state is not None and state.phase is EnginePhase.SLEEPING:
        return Phase.SLEEPING
    return Phase.SERVING if group.role is Role.ACTIVE and routable_now(group, snapshot) else Phase.WARM


def _cold_start(group: GroupObservation, health: Health, now: datetime) -> int | None:
    """Measured once, when the group is first seen loaded."""
    known = group.status.get("coldStartSeconds")
    if known is not None or not health.loaded:
        return known
    return round(seconds_between(group.created_at, now))


def _failure(group: GroupObservation, health: Health, now: datetime) -> dict[str, Any] | None:
    before = group.status.get("failure")
    if health.verdict is not Verdict.UNHEALTHY or health.reason is None:
        return dict(before) if before and group.role is Role.QUARANTINED else None
    if before and before.get("reason") == health.reason:
        return dict(before)
    message = shorten(health.message, _FAILURE_MESSAGE_LIMIT)
    return {"reason": str(health.reason), "message": message, "at": format_time(now)}
