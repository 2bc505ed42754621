"""Stage removal: drains go on, and what has finished or failed is deleted.

| role        | observed                                            | done                                    |
|-------------|-----------------------------------------------------|-----------------------------------------|
| draining    | no start time on it (set by hand)                   | stamp it                                |
| draining    | pods gone or ended, never loaded, or engine drained | delete, Drained                         |
| draining    | engine unhealthy, or its node lost                  | delete: its streams are lost            |
| draining    | settle + timeout (+ grace for the engine) are over  | delete, DrainTimedOut                   |
| draining    | engine not known to drain                           | tell it, with the time that is left     |
| quarantined | a pod is on its way out by itself                   | wait for it, as long as a drain may take|
| quarantined | newest of those whose pods have ended               | keep for ``failure.retainFailed``       |
| quarantined | any other                                           | delete                                  |

A retained group holds no accelerator: its pods have ended and keep only their logs. It goes at once when a
needed pod fits on no node.
"""

from __future__ import annotations

from datetime import datetime

from headwater_contracts.admin import EnginePhase
from headwater_contracts.labels import ANNOTATION_DRAINING_SINCE, ANNOTATION_QUARANTINED_SINCE
from headwater_contracts.reasons import Reason, Role
from headwater_operator.api.duration import parse_duration
from headwater_operator.core.actions import StartDrain
from headwater_operator.core.draft import Draft, Member, Step
from headwater_operator.core.facts import all_exited, fresh_state, leader
from headwater_operator.desired.pods import grace_period_seconds

_STREAMS_LOST = frozenset({Reason.ENGINE_UNHEALTHY, Reason.NODE_LOST})
_ENGINE_GRACE_SECONDS = 5.0
"""The engine ends its streams in band at its own deadline; the operator's comes a little later."""


def plan_removal(draft: Draft) -> None:
    """Continues drains and deletes what is done with."""
    for member in draft.having(Role.DRAINING):
        _continue_drain(draft, member)
    quarantined = [member for member in draft.having(Role.QUARANTINED) if not member.changed]
    retained = _to_retain(draft, quarantined)
    for member in quarantined:
        if member is not retained:
            _remove_failed(draft, member)


def _continue_drain(draft: Draft, member: Member) -> None:
    settle = parse_duration(draft.snapshot.spec.drain.endpoint_settle)
    whole = settle + parse_duration(draft.snapshot.spec.drain.timeout)
    elapsed = draft.elapsed(_draining_since(draft, member))
    if not member.changed and _end_drain(draft, member, elapsed, whole + _ENGINE_GRACE_SECONDS):
        return
    draft.look_again(whole + _ENGINE_GRACE_SECONDS - elapsed)
    state = fresh_state(member.group)
    if state is None or state.phase is not EnginePhase.DRAINING:
        settle_left = max(0.0, settle - elapsed)
        streams_left = max(0.0, whole - elapsed - settle_left)
        draft.act(Step.START_DRAIN, StartDrain(member.name, streams_left, settle_left))


def _draining_since(draft: Draft, member: Member) -> datetime:
    since = member.since(ANNOTATION_DRAINING_SINCE)
    if member.changed or since is not None:
        return draft.now if member.changed or since is None else since
    draft.set_role(Step.DRAIN, member, Role.DRAINING, Reason.DRAINING, f"group {member.name} drains")
    return draft.now


def _end_drain(draft: Draft, member: Member, elapsed: float, deadline: float) -> bool:
    state = fresh_state(member.group)
    if _nothing_runs(member) or (state is not None and state.drained):
        _finish(draft, member, Reason.DRAINED, f"group {member.name} has drained in {elapsed:.0f} s")
    elif member.health.reason in _STREAMS_LOST:
        _finish(draft, member, Reason.QUARANTINED, f"group {member.name}: {member.health.message}", warning=True)
    elif elapsed >= deadline:
        message = f"group {member.name}: streams still ran after drain.timeout ({draft.snapshot.spec.drain.timeout})"
        _finish(draft, member, Reason.DRAIN_TIMED_OUT, message, warning=True)
    else:
        return False
    return True


def _nothing_runs(member: Member) -> bool:
    return leader(member.group) is None or all_exited(member.group) or not member.health.loaded


def _finish(draft: Draft, member: Member, reason: Reason, message: str, *, warning: bool = False) -> None:
    draft.delete(member, reason, message)
    draft.note(reason, message, warning=warning)


def _to_retain(draft: Draft, quarantined: list[Member]) -> Member | None:
    """The newest failure, for a person to look at, unless its name or room is needed."""
    keep = parse_duration(draft.snapshot.spec.failure.retain_failed)
    ended = [member for member in quarantined if member.group.pods and all_exited(member.group)]
    if not ended or draft.snapshot.spec.suspend or any(member.unschedulable for member in draft.members):
        return None
    newest = max(ended, key=lambda member: (member.since(ANNOTATION_QUARANTINED_SINCE) or draft.now, member.name))
    left = keep - draft.elapsed(newest.since(ANNOTATION_QUARANTINED_SINCE) or draft.now)
    if left <= 0:
        return None
    draft.look_again(left)
    return newest


def _remove_failed(draft: Draft, member: Member) -> None:
    since = member.since(ANNOTATION_QUARANTINED_SINCE) or draft.now
    wait = grace_period_seconds(draft.snapshot.spec) - draft.elapsed(since)
    leaving = any(pod.terminating for pod in member.group.pods) and not all_exited(member.group)
    if leaving and member.health.reason is not Reason.NODE_LOST and wait > 0:
        draft.look_again(wait)
        return
    draft.delete(member, Reason.QUARANTINED, f"group {member.name} had failed")
