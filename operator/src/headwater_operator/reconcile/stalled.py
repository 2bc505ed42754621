"""Status of a pool whose stored spec this operator cannot read: all else is left as it was."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headwater_contracts.reasons import ConditionType, Reason
from headwater_operator.core.times import format_time

_LONGEST_MESSAGE = 1024


def unreadable_spec_status(old: Mapping[str, Any], message: str, generation: int, now: datetime) -> dict[str, Any]:
    """The old status with Stalled=True; its groups keep running as they are."""
    wanted = {
        ConditionType.STALLED: ("True", Reason.INVALID_SPEC, message[:_LONGEST_MESSAGE]),
        ConditionType.READY: ("False", Reason.INVALID_SPEC, message[:_LONGEST_MESSAGE]),
        ConditionType.RECONCILING: ("False", Reason.INVALID_SPEC, "waits for a spec that can be read"),
    }
    before = {condition["type"]: condition for condition in old.get("conditions") or ()}
    conditions = dict(before)
    for kind, (status, reason, text) in wanted.items():
        same = before.get(str(kind), {}).get("status") == status
        conditions[str(kind)] = {
            "type": str(kind),
            "status": status,
            "reason": str(reason),
            "message": text,
            "observedGeneration": generation,
            "lastTransitionTime": before[str(kind)]["lastTransitionTime"] if same else format_time(now),
        }
    return {**old, "observedGeneration": generation, "conditions": list(conditions.values())}
