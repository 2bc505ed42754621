"""What the pool's conditions are read off: the snapshot as the plan leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from headwater_contracts.reasons import ConditionType, Role
from headwater_operator.core.actions import CreateGroup, DeleteGroup, Plan, SetRole
from headwater_operator.core.facts import leader_ready, routable
from headwater_operator.core.health import Health
from headwater_operator.core.pod_faults import Fault, group_fault, lasting_fault, refused_group
from headwater_operator.core.routes import serving
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.signals import PoolSignals, pool_signals
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot
from headwater_operator.core.verdicts import classify_groups


@dataclass(frozen=True, slots=True)
class PoolView:
    """Groups by what they are for after the plan; ``serving`` are active before and after it."""

    snapshot: PoolSnapshot
    plan: Plan
    settings: DecisionSettings
    now: datetime
    health: Mapping[str, Health]
    signals: PoolSignals
    active: tuple[GroupObservation, ...]
    standby: tuple[GroupObservation, ...]
    draining: tuple[GroupObservation, ...]
    serving: tuple[GroupObservation, ...]
    warm: tuple[GroupObservation, ...]

    @property
    def needed(self) -> int:
        """Active groups that must serve for the pool to be ready: never none where some are wanted."""
        want = self.plan.desired_active
        return max(1, want - self.snapshot.spec.rollout.max_unavailable) if want else 0

    @property
    def kept_old(self) -> int:
        """Active groups of another revision than the spec's."""
        return sum(group.revision != self.plan.update_revision for group in self.active)

    @property
    def leaving(self) -> bool:
        """A group is on its way out, or goes with this plan, and frees what it holds."""
        going = any(isinstance(action, DeleteGroup) for action in self.plan.actions)
        return going or bool(self.draining) or any(group.terminating for group in self.snapshot.groups)

    def fault(self) -> Fault | None:
        """The first start-up fault among active and standby groups, and those that are still to be made."""
        found = (group_fault(group, self.snapshot) for group in (*self.active, *self.standby))
        return next((fault for fault in found if fault is not None), self._refused_group())

    def lasting_fault(self) -> Fault | None:
        """The first start-up fault that asks for a person."""
        grace = self.settings.fault_grace_seconds
        groups = (*self.active, *self.standby)
        found = (lasting_fault(group, self.snapshot, self.now, grace) for group in groups)
        return next((fault for fault in found if fault is not None), self._refused_group(grace))

    def _refused_group(self, lasting_seconds: float = 0.0) -> Fault | None:
        wanted = any(isinstance(action, CreateGroup) for action in self.plan.actions)
        return refused_group(self.snapshot, lasting_seconds) if wanted else None

    def unschedulable(self) -> str | None:
        """The scheduler's message for the first pod that fits on no node."""
        for group in (*self.active, *self.standby, *self.draining):
            for pod in group.pods:
                if pod.scheduled is False and not pod.terminating:
                    return f"pod {pod.name}: {pod.unschedulable_message or 'no node fits'}"
        return None


def view_pool(snapshot: PoolSnapshot, plan: Plan, settings: DecisionSettings, now: datetime) -> PoolView:
    """The view that all of the pool's status is derived from."""
    roles = {group.name: group.role for group in snapshot.groups if not group.terminating}
    roles |= {action.group: action.role for action in plan.actions if isinstance(action, SetRole)}
    gone = {action.group for action in plan.actions if isinstance(action, DeleteGroup)}
    staying = [group for group in snapshot.groups if group.name in roles and group.name not in gone]

    def having(role: Role) -> tuple[GroupObservation, ...]:
        return tuple(group for group in staying if roles[group.name] is role)

    def serves(group: GroupObservation) -> bool:
        # What is not known keeps a pool ready, and never makes it so.
        proven = was_ready or routable(group, snapshot) is True
        return proven and serving(group, snapshot, settings, now)

    was_ready = any(
        item.get("type") == ConditionType.READY and item.get("status") == "True"
        for item in snapshot.status.get("conditions") or ()
    )
    health = classify_groups(snapshot, now)
    active, standby = having(Role.ACTIVE), having(Role.STANDBY)
    return PoolView(
        snapshot=snapshot,
        plan=plan,
        settings=settings,
        now=now,
        health=health,
        signals=pool_signals(snapshot.groups),
        active=active,
        standby=standby,
        draining=having(Role.DRAINING),
        serving=tuple(group for group in active if serves(group)),
        warm=tuple(group for group in standby if health[group.name].loaded and leader_ready(group)),
    )
