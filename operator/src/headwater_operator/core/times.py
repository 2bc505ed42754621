"""Times as Kubernetes writes them: RFC 3339, UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """``2026-01-31T12:00:00Z``; fractions of a second are cut off."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def parse_time(text: object) -> datetime | None:
    """The moment, or None for what is not a time: a hand-edited annotation must not stop a reconcile."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def seconds_between(start: datetime, end: datetime) -> float:
    """Elapsed seconds, never negative: clocks of several machines disagree a little."""
    return max(0.0, (end - start).total_seconds())
