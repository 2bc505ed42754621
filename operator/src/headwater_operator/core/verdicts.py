"""Verdicts for all groups of a snapshot: what both the decision and the status start from."""

from __future__ import annotations

from datetime import datetime

from headwater_operator.api.duration import parse_duration
from headwater_operator.core.health import Health, HealthLimits, classify_group, most_silent
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot


def classify_groups(snapshot: PoolSnapshot, now: datetime) -> dict[str, Health]:
    """Verdict by group name."""
    health = snapshot.spec.health
    silence = parse_duration(health.interval) * health.failure_threshold
    blind = most_silent(snapshot.groups, silence)
    deadline = parse_duration(health.startup_deadline)
    return {
        group.name: classify_group(group, HealthLimits(silence, deadline, pods_of(group), blind), snapshot.nodes, now)
        for group in snapshot.groups
    }


def pods_of(group: GroupObservation) -> int:
    """How many pods a group of this template has."""
    return int((group.template.get("engine") or {}).get("pipelineParallelSize", 1))
