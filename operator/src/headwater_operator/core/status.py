"""The whole desired status of a pool and of its groups, and whether it is worth a write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headwater_operator.core.actions import Plan
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot


def pool_status(snapshot: PoolSnapshot, plan: Plan, settings: DecisionSettings, now: datetime) -> dict[str, Any]:
    """The pool's whole status as it should stand after this plan."""
    return {}


def group_status(group: GroupObservation, snapshot: PoolSnapshot, now: datetime) -> dict[str, Any]:
    """One group's whole status."""
    return {}


def status_needs_write(old: Mapping[str, Any], new: Mapping[str, Any], seconds_since_last_write: float | None) -> bool:
    """Whether the difference is worth an API write (dead bands; a time stamp alone never is)."""
    return dict(old) != dict(new)
