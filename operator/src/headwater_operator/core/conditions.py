"""Conditions as Kubernetes has them: a transition time that moves only with the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater_contracts.reasons import Reason
from headwater_operator.core.times import format_time

MESSAGE_LIMIT = 1000
"""Keeps a whole status below 16 KiB, whatever a scheduler or an engine has to say."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition's new value. ``status`` None means Unknown."""

    type: str
    status: bool | None
    reason: Reason
    message: str


def write_conditions(
    findings: Sequence[Finding], old: Sequence[Mapping[str, Any]], generation: int, now: datetime
) -> list[dict[str, Any]]:
    """The conditions in the order of the findings; transition times are kept where the status is the same."""
    before = {condition.get("type"): condition for condition in old}
    return [_condition(finding, before.get(finding.type), generation, now) for finding in findings]


def _condition(finding: Finding, before: Mapping[str, Any] | None, generation: int, now: datetime) -> dict[str, Any]:
    status = {True: "True", False: "False", None: "Unknown"}[finding.status]
    kept = before.get("lastTransitionTime") if before and before.get("status") == status else None
    return {
        "type": str(finding.type),
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": kept or format_time(now),
        "reason": str(finding.reason),
        "message": shorten(finding.message, MESSAGE_LIMIT),
    }


def shorten(text: str, limit: int) -> str:
    """The text, cut with an ellipsis if it is longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
