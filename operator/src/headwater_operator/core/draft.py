"""The plan while the stages fold over it: who has which role by now, and what is to be done in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from headwater_contracts.labels import (
    ANNOTATION_DRAINING_SINCE,
    ANNOTATION_QUARANTINED_SINCE,
    ANNOTATION_ROLE_REASON,
)
from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.actions import Action, CreateGroup, DeleteGroup, EventNote, FailureNote, SetRole
from headwater_operator.core.facts import leader_ready, running_streams
from headwater_operator.core.health import Health, Verdict
from headwater_operator.core.names import NameSource, fresh_group_name
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot
from headwater_operator.core.times import format_time, parse_time, seconds_between

_NAMES_LISTED = 3


class Step(IntEnum):
    """Order of actions in a plan: what restores service first, what may hang on an engine's answer last."""

    FOUNDATION = 0
    QUARANTINE = 1
    PROMOTE = 2
    LABEL = 3
    DRAIN = 4
    DELETE = 5
    CREATE = 6
    CREATE_POD = 7
    UNDRAIN = 8
    START_DRAIN = 9
    CLEAN_UP = 10


@dataclass(slots=True)
class Member:
    """A group of the pool with its verdict and the role that the plan so far gives it."""

    group: GroupObservation
    health: Health
    role: Role
    deleted: bool = False

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def live(self) -> bool:
        """Neither being deleted nor planned to be."""
        return not self.deleted and not self.group.terminating

    @property
    def changed(self) -> bool:
        """The plan gives it another role than it has."""
        return self.role is not self.group.role

    @property
    def promotable(self) -> bool:
        """Loaded, not unhealthy, and ready by the kubelet's word: requests succeed at once."""
        return self.health.loaded and self.health.verdict is not Verdict.UNHEALTHY and leader_ready(self.group)

    @property
    def running(self) -> int | None:
        return running_streams(self.group)

    @property
    def unschedulable(self) -> bool:
        """A pod of it fits on no node now."""
        return any(pod.scheduled is False and not pod.terminating for pod in self.group.pods)

    def since(self, annotation: str) -> datetime | None:
        """Time in one of our annotations, None if it is not there."""
        return parse_time(self.group.annotations.get(annotation))


@dataclass(frozen=True, slots=True)
class Target:
    """The revision that new groups are made of."""

    revision: str
    template: Mapping[str, Any]


@dataclass(slots=True)
class Draft:
    """What the stages read and add to. Local to one ``decide``; nothing keeps it."""

    snapshot: PoolSnapshot
    settings: DecisionSettings
    now: datetime
    names: NameSource
    members: tuple[Member, ...]
    target: Target | None = None
    update_revision: str | None = None
    desired_active: int = 0
    desired_standby: int = 0
    desired_reason: Reason = Reason.FIXED_REPLICAS
    problem: EventNote | None = None
    hold: EventNote | None = None
    failures: tuple[FailureNote, ...] = ()
    created: int = 0
    events: list[EventNote] = field(default_factory=list)
    requeue_after_seconds: float | None = None
    _actions: list[tuple[Step, Action]] = field(default_factory=list)
    _names_taken: set[str] = field(default_factory=set)

    def having(self, *roles: Role) -> list[Member]:
        """Live members that the plan so far has in one of these roles, oldest first."""
        found = [member for member in self.members if member.live and member.role in roles]
        return sorted(found, key=lambda member: (member.group.created_at, member.name))

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions so far, in the order of their steps."""
        return tuple(action for _, action in sorted(self._actions, key=lambda item: item[0]))

    @property
    def serving_or_warm(self) -> int:
        """Active and standby groups, loading and newly planned ones included."""
        return len(self.having(Role.ACTIVE, Role.STANDBY)) + self.created

    @property
    def unmet(self) -> int:
        """Active groups that are still wanted."""
        return max(0, self.desired_active - len(self.having(Role.ACTIVE)))

    def is_old(self, member: Member) -> bool:
        """Of another revision than the one that new groups are made of."""
        return self.target is not None and member.group.revision != self.target.revision

    def act(self, step: Step, *actions: Action) -> None:
        """Adds actions to a step, after those that are in it."""
        self._actions.extend((step, action) for action in actions)

    def note(
        self,
        reason: Reason,
        message: str,
        *,
        warning: bool = False,
        cause: Reason | None = None,
        counts: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Adds an event; ``counts`` are the numbers before and after."""
        self.events.append(EventNote(reason, message, warning, cause, counts[0], counts[1]))

    def look_again(self, seconds: float) -> None:
        """Asks for another reconcile at the latest after so long."""
        seconds = max(0.1, seconds)
        self.requeue_after_seconds = min(seconds, self.requeue_after_seconds or seconds)

    def elapsed(self, since: datetime) -> float:
        """Seconds since then."""
        return seconds_between(since, self.now)

    def set_role(self, step: Step, member: Member, role: Role, reason: Reason, message: str) -> None:
        """Gives a member another role, with the annotations that survive a restart."""
        annotations: dict[str, str | None] = {ANNOTATION_ROLE_REASON: str(reason)}
        stamps = {Role.DRAINING: ANNOTATION_DRAINING_SINCE, Role.QUARANTINED: ANNOTATION_QUARANTINED_SINCE}
        for stamped, annotation in stamps.items():
            if stamped is role:
                annotations[annotation] = format_time(self.now)
            elif annotation in member.group.annotations:
                annotations[annotation] = None
        member.role = role
        self.act(step, SetRole(member.name, role, reason, message, annotations))

    def create(self, count: int, purpose: Reason, why: str) -> None:
        """Plans new standby groups of the target revision; one event tells of all."""
        if self.target is None or count <= 0:
            return
        target, names = self.target, [self._fresh_name(self.target.revision) for _ in range(count)]
        # The event bears the actions' message: that is how it is left out if none of them comes about.
        message = f"{_listed(names)} made: {why}"
        for name in names:
            action = CreateGroup(name, Role.STANDBY, target.revision, target.template, purpose, message)
            self.act(Step.CREATE, action)
        self.created += count
        self.note(Reason.WARM_POOL_REFILL, message, cause=purpose)

    def _fresh_name(self, revision: str) -> str:
        taken = self._names_taken | {member.name for member in self.members}
        name = fresh_group_name(self.snapshot.name, revision, self.names, taken)
        self._names_taken.add(name)
        return name

    def delete(self, member: Member, reason: Reason, message: str) -> None:
        """Plans the end of a member."""
        member.deleted = True
        self.act(Step.DELETE, DeleteGroup(member.name, member.group.uid, reason, message))


def _listed(names: list[str]) -> str:
    """``group a is``, ``groups a, b are``, or ``5 groups (a, b, c, …) are``."""
    if len(names) == 1:
        return f"group {names[0]} is"
    if len(names) <= _NAMES_LISTED:
        return f"groups {', '.join(names)} are"
    return f"{len(names)} groups ({', '.join(names[:_NAMES_LISTED])}, …) are"
