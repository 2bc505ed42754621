"""The decision: one frozen snapshot in, one plan out. No input, no output, no clock.

A fold over stages in this order; each sees what the stages before it have planned.

| stage       | module        | answers                                                     |
|-------------|---------------|-------------------------------------------------------------|
| foundation  | upkeep        | is the spec acceptable; which revision; does the Service exist |
| health      | verdicts      | which groups work                                           |
| counts      | counts        | how many are wanted                                         |
| replacement | replacement   | who leaves, who takes over                                  |
| crash loop  | crashloop     | how fast new ones may come                                  |
| rollout     | rollout       | the next step towards the wanted revision                   |
| warm pool   | warmpool      | how many more or fewer standbys                             |
| removal     | removal       | what is done with                                           |
| upkeep      | upkeep        | missing pods, lagging labels; what is told once             |
"""

from __future__ import annotations

from datetime import datetime

from headwater_contracts.reasons import Reason, Role
from headwater_operator.api.duration import parse_duration
from headwater_operator.core.actions import Plan
from headwater_operator.core.counts import plan_counts
from headwater_operator.core.crashloop import record_failures
from headwater_operator.core.draft import Draft, Member
from headwater_operator.core.names import NameSource
from headwater_operator.core.plan import check_plan
from headwater_operator.core.removal import plan_removal
from headwater_operator.core.replacement import plan_replacement
from headwater_operator.core.rollout import plan_rollout, rolling
from headwater_operator.core.routes import settle_wait_seconds
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import PoolSnapshot
from headwater_operator.core.upkeep import note_blindness, note_capacity, plan_foundation, plan_upkeep
from headwater_operator.core.verdicts import classify_groups
from headwater_operator.core.warmpool import plan_warm_pool

_STAGES = (
    plan_foundation,
    plan_counts,
    plan_replacement,
    record_failures,
    plan_rollout,
    plan_warm_pool,
    plan_removal,
    plan_upkeep,
    note_capacity,
    note_blindness,
)


def decide(snapshot: PoolSnapshot, settings: DecisionSettings, now: datetime, names: NameSource) -> Plan:
    """What to do about a pool, in order, and why.

    Raises PlanRuleBrokenError if the plan would break a rule of ``plan.py``: a fault of this program, never of a spec.
    """
    if snapshot.terminating:
        # Owner references and the engines' own drain do the cleaning, with or without this operator.
        return Plan((), (), 0, 0, Reason.SUSPENDED, None)
    health = classify_groups(snapshot, now)
    members = tuple(Member(group, health[group.name], group.role) for group in snapshot.groups)
    draft = Draft(snapshot, settings, now, names, members)
    for stage in _STAGES:
        stage(draft)
    _plan_next_look(draft)
    plan = Plan(
        actions=draft.actions,
        events=tuple(draft.events),
        desired_active=draft.desired_active,
        desired_standby=draft.desired_standby,
        desired_reason=draft.desired_reason,
        update_revision=draft.update_revision,
        problem=draft.problem,
        requeue_after_seconds=draft.requeue_after_seconds,
        rolling=rolling(draft),
        hold=draft.hold,
        failures=draft.failures,
    )
    check_plan(snapshot, plan)
    return plan


def _plan_next_look(draft: Draft) -> None:
    """Deadlines that no event announces."""
    deadline = parse_duration(draft.snapshot.spec.health.startup_deadline)
    for member in draft.having(Role.ACTIVE, Role.STANDBY):
        started = [pod.started_at for pod in member.group.pods if pod.started_at is not None]
        if not member.health.loaded and started:
            draft.look_again(deadline - draft.elapsed(min(started)))
        for pod in member.group.pods:
            if pod.waiting_reason and draft.elapsed(pod.created_at) < draft.settings.fault_grace_seconds:
                draft.look_again(draft.settings.fault_grace_seconds - draft.elapsed(pod.created_at))
        wait = settle_wait_seconds(member.group, draft.snapshot, draft.settings, draft.now)
        if wait is not None:
            draft.look_again(wait)
