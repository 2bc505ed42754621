"""InferencePool: the spec that an admin writes. Its parts are re-exported here."""

from __future__ import annotations

from typing import ClassVar

from headwater_operator.api.base import ApiModel, Cel
from headwater_operator.api.engine import Backend, Engine, Simulation
from headwater_operator.api.model import (
    HuggingFaceSource,
    Model,
    ModelCache,
    ModelSource,
    PersistentVolumeClaimSource,
    SecretKey,
)
from headwater_operator.api.placement import Placement, Resources, TaintEffect, Toleration, TolerationOperator
from headwater_operator.api.policy import (
    Admission,
    Autoscaling,
    Degradation,
    Drain,
    Failure,
    Health,
    Rollout,
    Slo,
    WarmPool,
    WarmPoolTier,
)
from headwater_operator.api.pool_status import Decision, Desired, InferencePoolStatus, Signals, Summary
from headwater_operator.api.scalars import Replicas

__all__ = [
    "Admission",
    "Autoscaling",
    "Backend",
    "Decision",
    "Degradation",
    "Desired",
    "Drain",
    "Engine",
    "Failure",
    "Health",
    "HuggingFaceSource",
    "InferencePoolSpec",
    "InferencePoolStatus",
    "Model",
    "ModelCache",
    "ModelSource",
    "PersistentVolumeClaimSource",
    "Placement",
    "Resources",
    "Rollout",
    "SecretKey",
    "Signals",
    "Simulation",
    "Slo",
    "Summary",
    "TaintEffect",
    "Toleration",
    "TolerationOperator",
    "WarmPool",
    "WarmPoolTier",
]


class InferencePoolSpec(ApiModel):
    """What the pool serves, on what, and how many groups of it."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "!has(self.replicas) || !has(self.autoscaling)",
            "replicas and autoscaling exclude each other: remove replicas and set autoscaling.minReplicas and "
            "maxReplicas, or remove autoscaling for a fixed number",
            at=".replicas",
        ),
        Cel(
            "!has(self.degradation) || !has(self.degradation.maxOutputTokens) "
            "|| self.degradation.maxOutputTokens <= self.engine.maxModelLen",
            "must be at most engine.maxModelLen: lower degradation.maxOutputTokens",
            at=".degradation.maxOutputTokens",
        ),
    )

    model: Model
    """The model that the pool serves."""
    engine: Engine = Engine()
    """How the engine of each pod runs."""
    placement: Placement = Placement()
    """Which nodes the pods may use."""
    resources: Resources = Resources()
    """CPU and memory of each pod."""
    replicas: Replicas | None = None
    """Fixed number of active groups; an HPA sets it through /scale. Not together with autoscaling. Neither of the two:
    one group."""
    autoscaling: Autoscaling | None = None
    """Lets the operator set the number of active groups. Not together with replicas."""
    slo: Slo | None = None
    """Targets of the service: time to first token, gap between tokens, use of the KV cache. They steer autoscaling and
    set the edges of the latency histograms."""
    admission: Admission | None = None
    """When the gateway refuses a request instead of queueing it."""
    degradation: Degradation | None = None
    """What the gateway does under overload before it refuses requests."""
    warm_pool: WarmPool = WarmPool()
    """Loaded groups that take no traffic until one is needed."""
    health: Health = Health()
    """When a group counts as unhealthy."""
    drain: Drain = Drain()
    """How a group leaves the Service."""
    rollout: Rollout = Rollout()
    """How a change of the template reaches the groups."""
    failure: Failure = Failure()
    """How failed groups are replaced."""
    suspend: bool = False
    """Drains all groups and holds none."""
