"""Crash loops: how fast new groups may be made after failures of the same revision.

Failures within ``failure.window`` stand in ``status.failures``, so a restart forgets none. With n of them:

| n                         | new groups                                                                    |
|---------------------------|-------------------------------------------------------------------------------|
| 0, 1                      | at once                                                                       |
| 2 … maxReplacements       | 5 s × 2^(n-2) after the last failure, at most 60 s                            |
| above maxReplacements     | hold: one at a time, 60 s × 2^(n-max-1) after the last failure, at most 30 min|

A group that a node took down does not count. Promotion is never held: it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headwater_contracts.labels import ANNOTATION_QUARANTINED_SINCE, ANNOTATION_ROLE_REASON
from headwater_contracts.reasons import Reason, Role
from headwater_operator.api.duration import parse_duration
from headwater_operator.api.policy import MOST_REPLACEMENTS
from headwater_operator.core.actions import EventNote, FailureNote
from headwater_operator.core.draft import Draft, Member
from headwater_operator.core.times import parse_time

_KEPT = MOST_REPLACEMENTS + 2
"""One more than the limit makes the hold; a lower number kept than the limit would never reach it."""
_NOT_COUNTED = frozenset({Reason.POD_LOST, Reason.NODE_LOST})
_TELL_OF_FAILURES = frozenset({Reason.QUARANTINED, Reason.REPLACED})
_PACE_SECONDS, _PACE_LIMIT_SECONDS = 5.0, 60.0
_HOLD_SECONDS, _HOLD_LIMIT_SECONDS = 60.0, 1800.0


@dataclass(frozen=True, slots=True)
class Budget:
    """How many groups may be made now; None is no limit."""

    groups: int | None
    wait_seconds: float | None = None


def record_failures(draft: Draft) -> None:
    """Brings the list of failures up to date and holds the pool if there are too many."""
    window = parse_duration(draft.snapshot.spec.failure.window)
    known = [note for note in _stored(draft) if draft.elapsed(note.at) < window]
    names = {note.group for note in known}
    fresh = [note for note in (_failure(draft, member) for member in draft.members) if note is not None]
    fresh = [note for note in fresh if note.group not in names and draft.elapsed(note.at) < window]
    draft.failures = tuple(sorted([*known, *fresh], key=lambda note: note.at)[-_KEPT:])
    limit = draft.snapshot.spec.failure.max_replacements
    counted = _counted(draft)
    if len(counted) <= limit:
        return
    last, spec = counted[-1], draft.snapshot.spec.failure
    draft.hold = EventNote(
        Reason.CRASH_LOOP_HOLD,
        f"{len(counted)} groups failed within {spec.window} (failure.maxReplacements is {limit}); "
        f"the last was {last.group}: {_last_words(draft, last)}. One new group is tried at a time, ever more slowly",
        warning=True,
        cause=Reason(last.reason) if last.reason in set(Reason) else None,
    )
    if any(note in counted for note in fresh):
        draft.events.append(draft.hold)


def creation_budget(draft: Draft) -> Budget:
    """What the table above allows now."""
    counted = _counted(draft)
    limit = draft.snapshot.spec.failure.max_replacements
    if len(counted) <= 1:
        return Budget(None)
    since_last = draft.elapsed(counted[-1].at)
    if draft.hold is None:
        wait = _backoff(_PACE_SECONDS, len(counted) - 2, _PACE_LIMIT_SECONDS) - since_last
        return Budget(None) if wait <= 0 else Budget(0, wait)
    if any(not member.health.loaded for member in draft.having(Role.STANDBY)):
        return Budget(0)
    wait = _backoff(_HOLD_SECONDS, len(counted) - limit - 1, _HOLD_LIMIT_SECONDS) - since_last
    return Budget(1) if wait <= 0 else Budget(0, wait)


def create_within_budget(draft: Draft, count: int, reason: Reason, message: str) -> None:
    """Plans up to ``count`` new groups, fewer or later if earlier ones failed."""
    budget = creation_budget(draft)
    allowed = count if budget.groups is None else min(count, budget.groups - draft.created)
    if count > 0 and budget.wait_seconds is not None:
        draft.look_again(budget.wait_seconds)
    draft.create(max(0, allowed), reason, message)


def _backoff(base_seconds: float, doublings: int, limit_seconds: float) -> float:
    return float(min(limit_seconds, base_seconds * 2 ** min(doublings, 20)))


def _counted(draft: Draft) -> list[FailureNote]:
    """Failures of the revision that new groups are made of: a mended spec starts afresh."""
    if draft.target is None:
        return []
    return [note for note in draft.failures if note.revision == draft.target.revision]


def _stored(draft: Draft) -> list[FailureNote]:
    notes = []
    for item in draft.snapshot.status.get("failures") or ():
        at = parse_time(item.get("at"))
        if at is not None:
            notes.append(FailureNote(at, str(item["group"]), str(item["revision"]), str(item["reason"])))
    return notes


def _failure(draft: Draft, member: Member) -> FailureNote | None:
    """A quarantined member as a failure, or None if it is none that counts."""
    if member.role is not Role.QUARANTINED or member.group.terminating:
        return None
    if member.changed:
        at: datetime = draft.now
        reason = str(member.health.reason)
    else:
        at = member.since(ANNOTATION_QUARANTINED_SINCE) or draft.now
        reason = member.group.annotations.get(ANNOTATION_ROLE_REASON, "")
    return None if reason in _NOT_COUNTED else FailureNote(at, member.name, member.group.revision, reason)


def _last_words(draft: Draft, note: FailureNote) -> str:
    for member in draft.members:
        if member.name == note.group and member.health.message:
            return member.health.message
    told = [d for d in draft.snapshot.status.get("decisions") or () if d.get("action") in _TELL_OF_FAILURES]
    failure = next((d for d in told if note.group in d.get("message", "")), None)
    return str(failure["message"]) if failure else note.reason
