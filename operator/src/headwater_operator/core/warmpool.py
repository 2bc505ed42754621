"""Stage warm pool: as many standby groups as wanted, and no more.

| observed                                            | done                                                       |
|-----------------------------------------------------|------------------------------------------------------------|
| a drained group of the wanted revision, pool short  | it becomes a standby: nothing to load                      |
| active + standby fewer than wanted                  | create the rest as standbys, within the crash-loop budget  |
| more standbys than wanted (and no surge in use)     | delete: old revision, not loaded, then youngest first      |

A group starts as a standby even where ``warmPool.size`` is 0: it is promoted once it is loaded, so standbys that
wait for a vacancy among the active groups are not surplus.
"""

from __future__ import annotations

from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.crashloop import create_within_budget
from headwater_operator.core.draft import Draft, Member, Step
from headwater_operator.core.facts import fresh_state
from headwater_operator.core.health import Verdict
from headwater_operator.core.replacement import retire
from headwater_operator.core.rollout import rolling


def plan_warm_pool(draft: Draft) -> None:
    """Refill or shrink."""
    missing = draft.desired_active + draft.desired_standby - draft.serving_or_warm
    for member in draft.having(Role.DRAINING)[:]:
        if missing > 0 and _reusable(draft, member):
            message = f"group {member.name} has drained and stays loaded as a standby"
            draft.set_role(Step.LABEL, member, Role.STANDBY, Reason.DRAINED, message)
            draft.note(Reason.DRAINED, message)
            missing -= 1
    if missing > 0:
        create_within_budget(draft, missing, *_purpose(draft))
    elif draft.created == 0:
        _shrink(draft)


def _purpose(draft: Draft) -> tuple[Reason, str]:
    standbys = len(draft.having(Role.STANDBY))
    if draft.unmet > standbys:
        active = draft.desired_active - draft.unmet
        return draft.desired_reason, f"{active} of {draft.desired_active} active groups are there"
    return Reason.WARM_POOL_REFILL, f"{standbys - draft.unmet} of {draft.desired_standby} standby groups are there"


def _reusable(draft: Draft, member: Member) -> bool:
    state = fresh_state(member.group)
    healthy = member.health.loaded and member.health.verdict is Verdict.HEALTHY
    return healthy and not member.changed and not draft.is_old(member) and state is not None and state.drained


def _shrink(draft: Draft) -> None:
    surge = draft.snapshot.spec.rollout.max_surge if rolling(draft) else 0
    standbys = [member for member in draft.having(Role.STANDBY) if not member.changed]
    surplus = len(standbys) - draft.desired_standby - draft.unmet - surge
    if surplus <= 0:
        return
    reason = Reason.SUSPENDED if draft.snapshot.spec.suspend else Reason.WARM_POOL_SHRUNK
    standbys.sort(
        key=lambda member: (not draft.is_old(member), member.health.loaded, draft.elapsed(member.group.created_at))
    )
    for member in standbys[:surplus]:
        message = f"standby group {member.name} goes: {draft.desired_standby} standby groups are wanted"
        retire(draft, member, reason, message)
        if member.deleted:
            draft.note(Reason.WARM_POOL_SHRUNK, message, cause=reason)
