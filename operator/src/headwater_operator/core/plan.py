"""Rules that every plan keeps, whatever the stages decided. A broken one is a fault of this program.

1. No group is created while active + standby ≥ desired active + desired standby + maxSurge (draining and
   quarantined are counted apart).
2. No voluntary step takes ready active groups below min(those observed, desired active − maxUnavailable).
3. A rollout has at most one voluntary removal in flight.
4. An active group is never deleted; a standby only while no stream is known to run on it; a draining one only
   after its drain.
5. No promotion beyond the desired number (a rollout: one more, until the old one drains), and none of a group
   that has not loaded.
6. One group gets at most one new role, and nothing after its deletion.
7. Under a problem of the spec nothing of the refused revision is created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.actions import CreateGroup, DeleteGroup, Plan, SetRole
from headwater_operator.core.facts import leader_ready, running_streams, was_loaded
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot


class PlanRuleBrokenError(Exception):
    """A plan that breaks a rule; it must not be executed."""


def check_plan(snapshot: PoolSnapshot, plan: Plan) -> None:
    """Raises PlanRuleBrokenError with all rules that the plan breaks."""
    broken = list(broken_rules(snapshot, plan))
    if broken:
        raise PlanRuleBrokenError("; ".join(broken))


def broken_rules(snapshot: PoolSnapshot, plan: Plan) -> Iterator[str]:
    """One sentence for each rule that the plan breaks."""
    facts = _Facts(snapshot, plan)
    yield from _creation(facts)
    yield from _availability(facts)
    yield from _one_removal(facts)
    yield from _deletions(facts)
    yield from _promotions(facts)
    yield from _one_role(facts)
    yield from _problem(facts)


class _Facts:
    """Roles before and after the plan."""

    def __init__(self, snapshot: PoolSnapshot, plan: Plan) -> None:
        self.snapshot, self.plan = snapshot, plan
        self.groups = {group.name: group for group in snapshot.groups if not group.terminating}
        self.roles = [action for action in plan.actions if isinstance(action, SetRole)]
        self.deletions = [action for action in plan.actions if isinstance(action, DeleteGroup)]
        self.creations = [action for action in plan.actions if isinstance(action, CreateGroup)]
        self.before = {name: group.role for name, group in self.groups.items()}
        self.after = {**self.before, **{action.group: action.role for action in self.roles}}
        for deletion in self.deletions:
            self.after.pop(deletion.group, None)

    def ready(self, name: str) -> bool:
        return leader_ready(self.groups[name]) and was_loaded(self.groups[name])

    def drained_by_choice(self) -> list[GroupObservation]:
        gone = [a.group for a in self.roles if a.role is Role.DRAINING and self.before.get(a.group) is Role.ACTIVE]
        return [self.groups[name] for name in gone]


def _creation(facts: _Facts) -> Iterator[str]:
    held = sum(role in (Role.ACTIVE, Role.STANDBY) for role in facts.after.values())
    surge = facts.snapshot.spec.rollout.max_surge
    limit = facts.plan.desired_active + facts.plan.desired_standby + surge
    if facts.creations and held + len(facts.creations) > limit:
        yield f"rule 1: creates {len(facts.creations)} groups beside {held}, {limit} are allowed"
    if any(action.role is not Role.STANDBY for action in facts.creations):
        yield "rule 1: a group starts in another role than standby"


def _availability(facts: _Facts) -> Iterator[str]:
    """Failures are not voluntary: a quarantined group is not counted before either."""
    lost = {action.group for action in facts.roles if action.role is Role.QUARANTINED}
    before = [n for n, role in facts.before.items() if role is Role.ACTIVE and n not in lost and facts.ready(n)]
    after = [n for n, role in facts.after.items() if role is Role.ACTIVE and facts.ready(n)]
    floor = facts.plan.desired_active - facts.snapshot.spec.rollout.max_unavailable
    if facts.drained_by_choice() and len(after) < min(len(before), floor):
        yield f"rule 2: ready active groups go from {len(before)} to {len(after)}, {floor} are promised"


def _one_removal(facts: _Facts) -> Iterator[str]:
    chosen = {group.name for group in facts.drained_by_choice()}
    steps = [a for a in facts.roles if a.group in chosen and a.reason is Reason.RETIRED]
    draining = [name for name, role in facts.before.items() if role is Role.DRAINING]
    if len(steps) > 1 or (steps and draining):
        yield f"rule 3: the rollout drains {[a.group for a in steps]} while {draining} drain"


def _deletions(facts: _Facts) -> Iterator[str]:
    for deletion in facts.deletions:
        group = facts.groups.get(deletion.group)
        if group is None or group.uid != deletion.uid:
            yield f"rule 4: deletes {deletion.group}, which is not a live group of the pool"
        elif group.role is Role.ACTIVE:
            yield f"rule 4: deletes {group.name} while it is active"
        elif group.role is Role.STANDBY and running_streams(group):
            yield f"rule 4: deletes standby {group.name} with running streams"


def _promotions(facts: _Facts) -> Iterator[str]:
    promoted = [a.group for a in facts.roles if a.role is Role.ACTIVE]
    active = sum(role is Role.ACTIVE for role in facts.after.values())
    limit = facts.plan.desired_active + (1 if facts.plan.rolling else 0)
    if promoted and active > limit:
        yield f"rule 5: promotes to {active} active groups, {limit} are allowed"
    for name in promoted:
        if not was_loaded(facts.groups[name]):
            yield f"rule 5: promotes {name}, which has not loaded"


def _one_role(facts: _Facts) -> Iterator[str]:
    changes = Counter([a.group for a in facts.roles] + [a.group for a in facts.deletions])
    for name, count in changes.items():
        if count > 1:
            yield f"rule 6: {name} is changed {count} times"


def _problem(facts: _Facts) -> Iterator[str]:
    current = facts.snapshot.status.get("currentRevision")
    for action in facts.creations if facts.plan.problem else ():
        if action.revision != current:
            yield f"rule 7: creates {action.name} of revision {action.revision} although the spec has a problem"
