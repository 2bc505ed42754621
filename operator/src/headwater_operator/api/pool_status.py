"""Status of an InferencePool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from headwater_operator.api.base import ApiModel, SchemaExtra
from headwater_operator.api.condition import Conditions, Timestamp
from headwater_operator.api.scalars import Count

ShortText = Annotated[str, StringConstraints(max_length=128)]
Message = Annotated[str, StringConstraints(max_length=1024)]


class Desired(ApiModel):
    """Numbers of groups that the operator works towards."""

    active: Count
    """Groups that take traffic."""
    standby: Count
    """Warm groups."""
    reason: ShortText
    """Why this many are active."""


class Signals(ApiModel):
    """What the engines last reported. A field without data is absent, never 0."""

    kv_cache_utilization_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Used share of the KV cache of all active groups, in percent."""
    ttft_p90: ShortText | None = None
    """Time to the first token that 90% of recent requests stayed under."""
    inter_token_latency_p99: ShortText | None = None
    """Gap between two tokens that 99% of recent gaps stayed under."""
    running: Count | None = None
    """Requests that are being computed."""
    waiting: Count | None = None
    """Requests queued in the engines."""
    groups_reporting: Count | None = None
    """Active groups that these figures come from."""
    groups_expected: Count | None = None
    """Active groups that should have reported."""


class Summary(ApiModel):
    """Texts for print columns only."""

    active: ShortText | None = None
    """Ready active groups of those desired."""
    warm: ShortText | None = None
    """Loaded standby groups of those desired."""
    kv: ShortText | None = None
    """Used share of the KV cache."""
    ttft: ShortText | None = None
    """90th percentile of the time to the first token."""


class Decision(ApiModel):
    """One change that the operator decided on."""

    at: Timestamp
    """When."""
    action: ShortText
    """What was done."""
    from_: Count | None = Field(default=None, alias="from")
    """Number before."""
    to: Count | None = None
    """Number after."""
    reason: ShortText
    """Why, as one word."""
    message: Message = ""
    """Why, with the figures that led to it."""


class FailureRecord(ApiModel):
    """One failed group that counts against ``failure.maxReplacements``."""

    at: Timestamp
    """When it failed."""
    group: ShortText
    """Its name."""
    revision: ShortText
    """Its revision: failures of an older one do not hold up a newer one."""
    reason: ShortText
    """Why, as one word."""


class InferencePoolStatus(ApiModel):
    """What the operator last saw and decided."""

    observed_generation: Count | None = None
    """Generation of the spec that this status is about."""
    replicas: Count | None = None
    """Active groups."""
    ready_replicas: Count | None = None
    """Active groups that serve."""
    standby_replicas: Count | None = None
    """Loaded warm groups."""
    selector: Annotated[str, StringConstraints(max_length=512)] | None = None
    """Label selector of the pods that serve, for /scale."""
    desired: Desired | None = None
    """Numbers of groups that the operator works towards."""
    current_revision: ShortText | None = None
    """Revision that the active groups had when the last rollout finished."""
    update_revision: ShortText | None = None
    """Revision of the present spec."""
    signals: Signals | None = None
    """What the engines last reported."""
    summary: Summary | None = None
    """Texts for print columns only."""
    decisions: (
        Annotated[tuple[Decision, ...], Field(max_length=10), SchemaExtra(x_kubernetes_list_type="atomic")] | None
    ) = None
    """The last changes that the operator decided on, newest last."""
    failures: (
        Annotated[tuple[FailureRecord, ...], Field(max_length=32), SchemaExtra(x_kubernetes_list_type="atomic")] | None
    ) = None
    """Groups that failed within failure.window, newest last. Kept here so that a hold survives an operator restart."""
    conditions: Conditions | None = None
    """Ready, Reconciling, Stalled, WarmPoolReady, ScalingActive, ScalingLimited, CapacityAvailable, SLOMet, RolledOut,
    SpecHonored."""
