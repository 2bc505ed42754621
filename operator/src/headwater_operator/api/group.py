"""ReplicaGroup: one servable copy of the model. Made by the operator only."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from headwater_contracts.reasons import Phase, Role
from headwater_operator.api.base import ApiModel, Cel, Rules, SchemaExtra
from headwater_operator.api.condition import Conditions, Timestamp
from headwater_operator.api.engine import Engine
from headwater_operator.api.model import Model
from headwater_operator.api.placement import Placement, Resources
from headwater_operator.api.policy import WarmPoolTier
from headwater_operator.api.scalars import Count

_IMMUTABLE = "cannot be changed: the operator replaces a group, it never alters one; change the InferencePool instead"


class GroupTemplate(ApiModel):
    """All that the pods of a group are built from, with the default image filled in."""

    rules: ClassVar[tuple[Cel, ...]] = (Cel("self == oldSelf", _IMMUTABLE),)

    model: Model
    """The model that the group serves."""
    engine: Engine
    """How its engine runs."""
    placement: Placement
    """Which nodes its pods may use."""
    resources: Resources
    """CPU and memory of each pod."""
    tier: WarmPoolTier = WarmPoolTier.HOT
    """How warm the group is kept while it is a standby."""


class ReplicaGroupSpec(ApiModel):
    """What the group is for, and what it is built from."""

    role: Role
    """active: takes traffic. standby: loaded and waiting. draining: finishing its streams. quarantined: failed."""
    revision: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63),
        Rules(Cel("self == oldSelf", _IMMUTABLE)),
    ]
    """Hash of the template."""
    template: GroupTemplate
    """All that the pods are built from. Cannot be changed."""


class GroupFailure(ApiModel):
    """Why the group failed."""

    reason: Annotated[str, StringConstraints(max_length=128)]
    """Why, as one word."""
    message: Annotated[str, StringConstraints(max_length=4096)] = ""
    """Why, in full."""
    at: Timestamp
    """When it was noticed."""


class ReplicaGroupStatus(ApiModel):
    """What the operator last saw of the group."""

    observed_generation: Count | None = None
    """Generation of the spec that this status is about."""
    phase: Phase | None = None
    """One-word summary of the conditions, for people."""
    conditions: Conditions | None = None
    """Scheduled, Loaded, Healthy, Routable."""
    nodes: (
        Annotated[
            tuple[Annotated[str, StringConstraints(max_length=253)], ...],
            Field(max_length=32),
            SchemaExtra(x_kubernetes_list_type="atomic"),
        ]
        | None
    ) = None
    """Nodes of the pods, by rank."""
    cold_start_seconds: Count | None = None
    """Time from creation until the model was loaded."""
    running: Count | None = None
    """Requests that are being computed."""
    waiting: Count | None = None
    """Requests queued in the engine."""
    kv_cache_utilization_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Used share of the KV cache, in percent."""
    failure: GroupFailure | None = None
    """Why the group failed."""
