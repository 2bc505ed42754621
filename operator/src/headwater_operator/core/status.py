"""The whole desired status of a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from headwater_contracts.reasons import Reason
from headwater_operator.core.actions import EventNote, Plan
from headwater_operator.core.conditions import shorten, write_conditions
from headwater_operator.core.deadband import status_needs_write
from headwater_operator.core.group_status import group_status
from headwater_operator.core.pool_conditions import pool_findings
from headwater_operator.core.pool_view import PoolView, view_pool
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.signals import PoolSignals, format_seconds
from headwater_operator.core.snapshot import PoolSnapshot
from headwater_operator.core.times import format_time
from headwater_operator.desired.services import service_selector

__all__ = ["group_status", "pool_status", "status_needs_write"]

_DECISIONS_KEPT = 10
_DECISION_MESSAGE_LIMIT = 400
_NO_FIGURE = "-"
_NOT_DECISIONS = frozenset(
    {Reason.DRAINING, Reason.DRAINED, Reason.CAPACITY_SHORT, Reason.OPERATOR_BLIND, Reason.TOKEN_REFUSED}
)
"""Told as events only: they follow from a decision that is listed, or decide nothing."""

_REVERSIBLE: Mapping[Any, object] = {
    Reason.SCALED_UP: "number",
    Reason.SCALED_DOWN: "number",
    Reason.ROLLOUT_STARTED: "revision",
    Reason.ROLLOUT_FINISHED: "revision",
}
"""Decisions of which a later one undoes the one before, by what they are about."""


def pool_status(snapshot: PoolSnapshot, plan: Plan, settings: DecisionSettings, now: datetime) -> dict[str, Any]:
    """The pool's whole status as it stands after this plan; figures that are not known are left out."""
    if snapshot.terminating:
        return dict(snapshot.status)
    view = view_pool(snapshot, plan, settings, now)
    values: dict[str, Any] = {
        "observedGeneration": snapshot.generation,
        "replicas": len(view.active),
        "readyReplicas": len(view.serving),
        "standbyReplicas": len(view.warm),
        "selector": ",".join(f"{key}={value}" for key, value in service_selector(snapshot.name).items()),
        "desired": {
            "active": plan.desired_active,
            "standby": plan.desired_standby,
            "reason": str(plan.desired_reason),
        },
        **_revisions(view),
        "signals": _signals(view.signals),
        "summary": _summary(view),
        "decisions": _decisions(snapshot.status, plan, now) or None,
        "failures": _failures(plan) or None,
        "conditions": write_conditions(
            pool_findings(view), snapshot.status.get("conditions") or (), snapshot.generation, now
        ),
    }
    return {key: value for key, value in values.items() if value is not None}


def _revisions(view: PoolView) -> dict[str, str | None]:
    """The current one moves only when a rollout has finished; under a problem both stay."""
    old, plan = view.snapshot.status, view.plan
    update = plan.update_revision or old.get("updateRevision")
    finished = plan.problem is None and not plan.rolling and not view.kept_old
    return {"currentRevision": update if finished else old.get("currentRevision"), "updateRevision": update}


def _signals(signals: PoolSignals) -> dict[str, Any]:
    values = {
        "kvCacheUtilizationPercent": signals.kv_percent,
        "ttftP90": format_seconds(signals.ttft_p90_seconds),
        "interTokenLatencyP99": format_seconds(signals.itl_p99_seconds),
        "running": signals.running,
        "waiting": signals.waiting,
        "groupsReporting": signals.groups_reporting,
        "groupsExpected": signals.groups_expected,
    }
    return {key: value for key, value in values.items() if value is not None}


def _summary(view: PoolView) -> dict[str, str]:
    kv = view.signals.kv_percent
    return {
        "active": f"{len(view.serving)}/{view.plan.desired_active}",
        "warm": f"{len(view.warm)}/{view.plan.desired_standby}",
        "kv": _NO_FIGURE if kv is None else f"{kv}%",
        "ttft": format_seconds(view.signals.ttft_p90_seconds) or _NO_FIGURE,
    }


def _decisions(old: Mapping[str, Any], plan: Plan, now: datetime) -> list[dict[str, Any]]:
    """The last ten. A plan that is decided twice, since its first try failed, is told once."""
    decisions = [dict(decision) for decision in old.get("decisions") or ()]
    told = _told_lately(decisions)
    for event in plan.events:
        decision = _decision(event, now)
        told_already = (decision["action"], decision["message"]) in told
        if event.reason not in _NOT_DECISIONS and event is not plan.problem and not told_already:
            decisions.append(decision)
    return decisions[-_DECISIONS_KEPT:]


def _told_lately(decisions: Sequence[Mapping[str, Any]]) -> set[tuple[Any, Any]]:
    """Action and message of the last three, but for what a later one has reversed: that may well come again."""
    latest = {}
    for decision in decisions[-3:]:
        said = decision.get("action"), decision.get("message")
        latest[_REVERSIBLE.get(said[0], said)] = said
    return set(latest.values())


def _decision(event: EventNote, now: datetime) -> dict[str, Any]:
    values = {
        "at": format_time(now),
        "action": str(event.reason),
        "from": event.before,
        "to": event.after,
        "reason": str(event.cause or event.reason),
        "message": shorten(event.message, _DECISION_MESSAGE_LIMIT),
    }
    return {key: value for key, value in values.items() if value is not None}


def _failures(plan: Plan) -> list[dict[str, Any]]:
    return [
        {"at": format_time(note.at), "group": note.group, "revision": note.revision, "reason": note.reason}
        for note in plan.failures
    ]
