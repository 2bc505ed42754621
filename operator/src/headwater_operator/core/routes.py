"""When a request sent to the Service really reaches a group.

Pod Ready is not enough: the EndpointSlice follows it, and each node's kube-proxy follows the slice, at most about
a second later (its minSyncPeriod). So a group counts as serving once all evidence has stood for
``route_settle_seconds``. The moment is remembered in the group's condition Routable, so a restart forgets nothing.
"""

from __future__ import annotations

from datetime import datetime

from headwater_contracts.reasons import GroupConditionType
from headwater_operator.core.facts import condition_status, routable
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot
from headwater_operator.core.times import parse_time

_RESOLUTION_SECONDS = 1.0
"""Condition times are cut to whole seconds, so what they show may be up to this much too early."""


def routable_now(group: GroupObservation, snapshot: PoolSnapshot) -> bool:
    """Routable by all evidence; where a part is missing, what was last known stands."""
    verdict = routable(group, snapshot)
    if verdict is None:
        return condition_status(group, GroupConditionType.ROUTABLE) == "True"
    return verdict


def serving(group: GroupObservation, snapshot: PoolSnapshot, settings: DecisionSettings, now: datetime) -> bool:
    """Routable for long enough that every kube-proxy knows."""
    wait = settle_wait_seconds(group, snapshot, settings, now)
    return routable_now(group, snapshot) and wait is None


def settle_wait_seconds(
    group: GroupObservation, snapshot: PoolSnapshot, settings: DecisionSettings, now: datetime
) -> float | None:
    """Seconds until a routable group counts as serving; None if it does already, or is not routable."""
    if not routable_now(group, snapshot):
        return None
    needed = settings.route_settle_seconds + _RESOLUTION_SECONDS
    since = _routable_since(group)
    left = needed if since is None else needed - (now - since).total_seconds()
    return left if left > 0 else None


def _routable_since(group: GroupObservation) -> datetime | None:
    for condition in group.status.get("conditions") or ():
        if condition.get("type") == GroupConditionType.ROUTABLE and condition.get("status") == "True":
            return parse_time(condition.get("lastTransitionTime"))
    return None
