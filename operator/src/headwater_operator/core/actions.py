"""What a plan may ask for. Each action is idempotent, says why, and is one API write or one engine call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater_contracts.reasons import Reason, Role


@dataclass(frozen=True, slots=True)
class CreateRevision:
    """Write a ControllerRevision that holds the resolved template."""

    revision: str
    number: int
    template: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteRevision:
    """Drop a revision beyond the history limit that no group uses."""

    name: str


@dataclass(frozen=True, slots=True)
class ApplyService:
    """Create the pool's Service, or restore it."""


@dataclass(frozen=True, slots=True)
class CreateGroup:
    """Make a ReplicaGroup under a name fixed in the plan."""

    name: str
    role: Role
    revision: str
    template: Mapping[str, Any]
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Make the pod of one rank of a group."""

    group: str
    rank: int


@dataclass(frozen=True, slots=True)
class SetRole:
    """Change a group's ``spec.role`` and, at once, the role label of its pods."""

    group: str
    role: Role
    reason: Reason
    message: str
    annotations: Mapping[str, str | None]
    """Annotations to set, or to drop (None), in the same write."""


@dataclass(frozen=True, slots=True)
class LabelPod:
    """Bring one pod's role label in line with its group's role."""

    pod: str
    group: str
    role: Role


@dataclass(frozen=True, slots=True)
class StartDrain:
    """Tell the engines of a group to drain. Repeated until they say that they do."""

    group: str
    timeout_seconds: float
    settle_seconds: float


@dataclass(frozen=True, slots=True)
class CancelDrain:
    """Tell the engines of a group to admit again."""

    group: str


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete a ReplicaGroup; its pods go with it, each after its own SIGTERM drain."""

    group: str
    uid: str
    reason: Reason
    message: str


Action = (
    CreateRevision
    | DeleteRevision
    | ApplyService
    | CreateGroup
    | CreatePod
    | SetRole
    | LabelPod
    | StartDrain
    | CancelDrain
    | DeleteGroup
)


@dataclass(frozen=True, slots=True)
class EventNote:
    """A Kubernetes event on the pool, and, where it says what changed, an entry of ``status.decisions``."""

    reason: Reason
    message: str
    warning: bool = False
    cause: Reason | None = None
    """Why, where ``reason`` says what; such as EngineExited behind Replaced."""
    before: int | None = None
    after: int | None = None
    """Counts around the change, where it changes a count."""


@dataclass(frozen=True, slots=True)
class FailureNote:
    """One failed group that counts against ``failure.maxReplacements``; kept in ``status.failures``."""

    at: datetime
    group: str
    revision: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered actions of one reconcile, the events that explain them, and when to look again."""

    actions: tuple[Action, ...]
    events: tuple[EventNote, ...]
    desired_active: int
    desired_standby: int
    desired_reason: Reason
    update_revision: str | None
    problem: EventNote | None = None
    """A fault of the spec that only a person can mend; the pool then changes nothing."""
    requeue_after_seconds: float | None = None
    rolling: bool = False
    """Groups of an old revision still stand where new ones should."""
    hold: EventNote | None = None
    """Why no replacement is made for now, if so. It ends by itself."""
    failures: tuple[FailureNote, ...] = ()
    """Failures within the window, oldest first, those that this plan found included."""
