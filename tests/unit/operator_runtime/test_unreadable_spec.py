"""Status of a pool whose stored spec cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headwater_operator.reconcile.stalled import unreadable_spec_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD: dict[str, Any] = {
    "replicas": 2,
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "GroupsServing",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        },
        {"type": "SLOMet", "status": "True", "reason": "WithinTargets", "message": ""},
    ],
}


def by_type(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {condition["type"]: condition for condition in status["conditions"]}


def test_it_is_stalled_with_the_message_and_keeps_what_was_known() -> None:
    got = unreadable_spec_status(OLD, "spec.x: is not a field", 2, NOW)
    conditions = by_type(got)
    assert got["replicas"] == 2
    assert got["observedGeneration"] == 2
    assert (conditions["Stalled"]["status"], conditions["Stalled"]["message"]) == ("True", "spec.x: is not a field")
    assert (conditions["Ready"]["status"], conditions["Reconciling"]["status"]) == ("False", "False")
    assert conditions["SLOMet"] == OLD["conditions"][1]


def test_said_again_it_is_the_same_status_whatever_the_time() -> None:
    once = unreadable_spec_status(OLD, "m", 2, NOW)
    assert unreadable_spec_status(once, "m", 2, datetime(2027, 1, 1, tzinfo=UTC)) == once
