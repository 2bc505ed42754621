"""Everything a decision may look at, frozen. What is not known is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headwater_contracts.admin import EngineState
from headwater_contracts.reasons import Role
from headwater_operator.api.pool import InferencePoolSpec


@dataclass(frozen=True, slots=True)
class PodObservation:
    """One pod of a group, as the API server last showed it."""

    name: str
    uid: str
    rank: int
    role_label: str | None
    """Value of the pod's role label; it may lag behind the group's ``spec.role``."""
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    ready: bool
    """The kubelet's Ready condition, which follows the engine's ``/readyz``."""
    terminating: bool
    created_at: datetime
    node: str | None = None
    ip: str | None = None
    scheduled: bool | None = None
    unschedulable_message: str | None = None
    waiting_reason: str | None = None
    """Reason of a container that waits, such as ErrImagePull or CreateContainerConfigError."""
    waiting_message: str | None = None
    exit_code: int | None = None
    exit_reason: str | None = None
    exit_message: str | None = None
    """The container's termination message: the engine's own, else the end of its log."""
    pod_reason: str | None = None
    """``status.reason``, such as Evicted or NodeLost."""
    pod_message: str | None = None
    """``status.message``: the kubelet's or the node controller's words for it."""
    started_at: datetime | None = None
    """When the engine container started (running or terminated state), None while it has not."""


@dataclass(frozen=True, slots=True)
class EngineReading:
    """Answer of one group's leader to a probe. ``state`` is None when the last probe failed."""

    state: EngineState | None
    age_seconds: float
    """Since the probe that gave this reading."""
    error: str | None = None
    window_start: EngineState | None = None
    """The oldest state of the same engine process within the signal window, for histogram deltas."""
    silent_seconds: float | None = None
    """Since the last answered probe, or since this operator's first probe if none was answered yet."""
    token_refused: bool = False
    """The engine lives, but was started under another admin token."""


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """One ReplicaGroup with its pods and the last word of its engine."""

    name: str
    uid: str
    role: Role
    revision: str
    template: Mapping[str, Any]
    created_at: datetime
    terminating: bool
    generation: int
    annotations: Mapping[str, str]
    status: Mapping[str, Any]
    pods: tuple[PodObservation, ...] = ()
    engine: EngineReading | None = None


@dataclass(frozen=True, slots=True)
class RevisionObservation:
    """One ControllerRevision of the pool: its hash name, number and resolved template."""

    name: str
    """Name of the ControllerRevision object."""
    revision: str
    number: int
    template: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ForeignObject:
    """An object that has a name which the pool needs, and another owner or none."""

    kind: str
    name: str


NEW_GROUP = "ReplicaGroup"
"""What a refused group is noted under: each attempt has another name, and all stand for the same want."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the API server said to a create, and for how long it has refused it."""

    message: str
    for_seconds: float


@dataclass(frozen=True, slots=True)
class NodeObservation:
    name: str
    ready: bool | None
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """One pool and all that belongs to it at one moment."""

    namespace: str
    name: str
    uid: str
    generation: int
    terminating: bool
    spec: InferencePoolSpec
    spec_fields_set: Mapping[str, Any]
    """The spec as stored, for naming the fields that a user set."""
    status: Mapping[str, Any]
    groups: tuple[GroupObservation, ...]
    revisions: tuple[RevisionObservation, ...]
    nodes: tuple[NodeObservation, ...]
    service_exists: bool
    foreign: tuple[ForeignObject, ...] = ()
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    """Pod name, or NEW_GROUP, → a create that the API server refused (quota, admission)."""
    endpoints_ready: frozenset[str] | None = None
    """Names of the pods that the Service's EndpointSlices list as ready; None if slices are not observed."""
