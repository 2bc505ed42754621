"""Verdicts for all groups of a snapshot: what both the decision and the status start from."""

from __future__ import annotations

from datetime import datetime

from headwater_contracts.network import ENGINE_ADMIN_PORT
from headwater_contracts.reasons import Reason
from headwater_operator.api.duration import parse_duration
from headwater_operator.core.facts import token_refused
from headwater_operator.core.health import Health, HealthLimits, classify_group, most_silent
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot

REFUSED_BY_ENGINE = (
    "the engine refuses the operator's admin token, as after a reinstallation with a new one; it serves, but the "
    "operator neither watches nor drains it until the group is replaced"
)


def classify_groups(snapshot: PoolSnapshot, now: datetime) -> dict[str, Health]:
    """Verdict by group name."""
    silence = _silence_seconds(snapshot)
    blind = most_silent(snapshot.groups, silence) is not None
    deadline = parse_duration(snapshot.spec.health.startup_deadline)
    return {
        group.name: classify_group(group, HealthLimits(silence, deadline, pods_of(group), blind), snapshot.nodes, now)
        for group in snapshot.groups
    }


def blindness(snapshot: PoolSnapshot) -> tuple[Reason, str] | None:
    """Why the operator sees too little of the pool to speak of it, in words; None if it sees enough."""
    refused = sum(token_refused(group) for group in snapshot.groups)
    if 2 * refused > len(snapshot.groups):
        return Reason.TOKEN_REFUSED, f"{refused} of {len(snapshot.groups)} groups: {REFUSED_BY_ENGINE}"
    silent = most_silent(snapshot.groups, _silence_seconds(snapshot))
    if silent is None:
        return None
    return Reason.OPERATOR_BLIND, (
        f"{silent[0]} of {silent[1]} loaded groups answer no probe, so none is quarantined for its silence: "
        f"see whether the operator reaches port {ENGINE_ADMIN_PORT} of their pods"
    )


def _silence_seconds(snapshot: PoolSnapshot) -> float:
    health = snapshot.spec.health
    return parse_duration(health.interval) * health.failure_threshold


def pods_of(group: GroupObservation) -> int:
    """How many pods a group of this template has."""
    return int((group.template.get("engine") or {}).get("pipelineParallelSize", 1))
