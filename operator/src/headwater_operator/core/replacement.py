"""Stage replacement: unhealthy groups leave, warm ones take their place, surplus ones drain.

| observed                                   | done, in the same plan                                            |
|--------------------------------------------|-------------------------------------------------------------------|
| active or standby group unhealthy          | quarantined at once                                               |
| fewer active than wanted                   | promote, in the order of ``_promotion_order``; else wait for one  |
| more active than wanted                    | drain all surplus at once, in the order of ``victim_order``, as   |
|                                            | far as enough others already serve                                |

Unknown is not unhealthy: such a group keeps its role, and is neither promoted before others nor drained first.
"""

from __future__ import annotations

from headwater_contracts.admin import EnginePhase
from headwater_contracts.labels import ANNOTATION_DRAINING_SINCE
from headwater_contracts.reasons import Reason, Role
from headwater_operator.api.duration import parse_duration
from headwater_operator.core.actions import CancelDrain
from headwater_operator.core.draft import Draft, Member, Step
from headwater_operator.core.facts import fresh_state
from headwater_operator.core.health import Verdict
from headwater_operator.core.routes import serving


def plan_replacement(draft: Draft) -> None:
    """Quarantine, promotion, and the drain of surplus active groups."""
    failed = _leave(draft)
    _promote(draft, failed)
    _drain_surplus(draft)


def _leave(draft: Draft) -> list[Member]:
    """Takes unhealthy groups out of the count; active ones are told of once it is known who follows them."""
    unhealthy = [m for m in draft.having(Role.ACTIVE, Role.STANDBY) if m.health.verdict is Verdict.UNHEALTHY]
    for member in unhealthy:
        member.role = Role.QUARANTINED
        if member.group.role is Role.STANDBY:
            _quarantine(draft, member, Reason.QUARANTINED, f"standby group {member.name}: {member.health.message}")
    return [member for member in unhealthy if member.group.role is Role.ACTIVE]


def _quarantine(draft: Draft, member: Member, what: Reason, message: str) -> None:
    cause = member.health.reason or Reason.ENGINE_UNHEALTHY
    draft.set_role(Step.QUARANTINE, member, Role.QUARANTINED, cause, message)
    draft.note(what, message, warning=True, cause=cause)


def _promote(draft: Draft, failed: list[Member]) -> None:
    """Fills what is missing of the active groups, first the places of those that failed just now."""
    vacancies = list(failed)
    while draft.unmet and (chosen := _next_promotion(draft, vacancies[0] if vacancies else None)):
        if vacancies:
            vacancy = vacancies.pop(0)
            message = f"group {vacancy.name}: {vacancy.health.message}; promoted {chosen.name}"
            _activate(draft, chosen, Reason.REPLACED, message)
            _quarantine(draft, vacancy, Reason.REPLACED, message)
        else:
            count = draft.desired_active - draft.unmet + 1
            message = f"group {chosen.name} is loaded and takes traffic ({count} of {draft.desired_active} active)"
            _activate(draft, chosen, Reason.PROMOTED, message)
            draft.note(Reason.PROMOTED, message, cause=draft.desired_reason)
    for vacancy in vacancies:
        _quarantine(
            draft, vacancy, Reason.REPLACED, f"group {vacancy.name}: {vacancy.health.message}; {_outlook(draft)}"
        )


def _outlook(draft: Draft) -> str:
    if draft.unmet == 0:
        return "not replaced, since fewer active groups are wanted"
    return "no warm group is loaded to take its place, the next one to load will"


def _next_promotion(draft: Draft, vacancy: Member | None) -> Member | None:
    revision = vacancy.group.revision if vacancy else (draft.target.revision if draft.target else None)
    cordoned = {node.name for node in draft.snapshot.nodes if node.unschedulable}
    candidates = [member for member in draft.having(Role.STANDBY) if member.promotable and not member.changed]
    # An old group that drains makes room for a new one: only a failure brings it back, else it would go for ever.
    returning = [m for m in draft.having(Role.DRAINING) if vacancy is not None or not draft.is_old(m)]
    candidates += [member for member in returning if _can_return(draft, member)]
    candidates.sort(key=lambda member: _promotion_order(draft, member, revision, cordoned, bool(vacancy)))
    return candidates[0] if candidates else None


def _promotion_order(
    draft: Draft, member: Member, revision: str | None, cordoned: set[str], after_failure: bool
) -> tuple[bool, ...]:
    """Sorts first what is best. A group that still drains comes back before a warm one is used up, but after a
    failure the warm one goes first: it needs no answer from its engine."""
    returning = member.role is Role.DRAINING
    return (
        any(pod.node in cordoned for pod in member.group.pods),
        member.group.revision != revision,
        draft.is_old(member),
        returning if after_failure else not returning,
        member.health.verdict is not Verdict.HEALTHY,
    )


def _can_return(draft: Draft, member: Member) -> bool:
    """A draining group whose drain can be called off: its engine answers, has not finished, and has time left."""
    state, since = fresh_state(member.group), member.since(ANNOTATION_DRAINING_SINCE)
    if state is None or since is None or member.health.verdict is not Verdict.HEALTHY or member.changed:
        return False
    drain = draft.snapshot.spec.drain
    left = parse_duration(drain.endpoint_settle) + parse_duration(drain.timeout) - draft.elapsed(since)
    return state.phase in (EnginePhase.READY, EnginePhase.DRAINING) and not state.drained and left > 0


def _activate(draft: Draft, chosen: Member, reason: Reason, message: str) -> None:
    step = Step.PROMOTE
    if chosen.role is Role.DRAINING:
        step = Step.UNDRAIN
        draft.act(step, CancelDrain(chosen.name))
    draft.set_role(step, chosen, Role.ACTIVE, reason, message)


def victim_order(draft: Draft, member: Member) -> tuple[bool, bool, bool, bool, bool, int, float]:
    """Sorts first the active group whose loss costs least: old revision, not ready, not in the Service yet, not
    answering its probes, fewest streams, youngest. One that was not asked yet comes last: it may be the busiest."""
    running = member.running
    silent = running is None and member.group.engine is not None
    return (
        not draft.is_old(member),
        member.promotable,
        serves(draft, member),
        not silent,
        running is None,
        running or 0,
        draft.elapsed(member.group.created_at),
    )


def drain(draft: Draft, member: Member, reason: Reason, why: str) -> None:
    """Takes an active group out of the Service; its streams finish."""
    streams = "an unknown number of" if member.running is None else str(member.running)
    message = f"group {member.name} leaves the Service ({why}); {streams} streams finish first"
    draft.set_role(Step.DRAIN, member, Role.DRAINING, reason, message)
    draft.note(Reason.DRAINING, message, cause=reason)


def retire(draft: Draft, member: Member, reason: Reason, message: str) -> None:
    """Deletes a standby; one that serves streams all the same drains first."""
    if member.running:
        drain(draft, member, reason, "it is not wanted any more")
    else:
        draft.delete(member, reason, message)


def _drain_surplus(draft: Draft) -> None:
    """All surplus at once, but never at the price of a group that serves while its successor does not yet."""
    active = [member for member in draft.having(Role.ACTIVE) if not member.changed]
    surplus = len(draft.having(Role.ACTIVE)) - draft.desired_active
    floor = draft.desired_active - draft.snapshot.spec.rollout.max_unavailable
    staying = list(active)
    for member in sorted(active, key=lambda member: victim_order(draft, member))[: max(0, surplus)]:
        staying.remove(member)
        if not _enough(draft, staying, active, floor):
            return
        if draft.is_old(member) and surplus == 1 and not draft.having(Role.DRAINING):
            drain(draft, member, Reason.RETIRED, "its revision is being replaced")
        else:
            reason = Reason.SUSPENDED if draft.snapshot.spec.suspend else Reason.SCALED_DOWN
            drain(draft, member, reason, f"{draft.desired_active} active groups are wanted")


def _enough(draft: Draft, staying: list[Member], active: list[Member], floor: int) -> bool:
    """As many as promised, or as there were, are ready and in the Service without the ones that go."""
    ready, ready_before = (sum(member.promotable for member in some) for some in (staying, active))
    serving_now, serving_before = (sum(serves(draft, member) for member in some) for some in (staying, active))
    return ready >= min(ready_before, floor) and serving_now >= min(serving_before, floor)


def serves(draft: Draft, member: Member) -> bool:
    """Requests to the Service reach it, everywhere."""
    return serving(member.group, draft.snapshot, draft.settings, draft.now)
