"""The parts of a pool's spec that say how many groups there are and how they come and go."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from headwater_operator.api.base import ApiModel, Cel, Rules
from headwater_operator.api.duration import PATTERN, Between, Duration
from headwater_operator.api.scalars import DNS_LABEL, Percent, PositiveReplicas, Replicas

ObjectivePercent = Annotated[
    str,
    StringConstraints(max_length=8),
    Rules(
        Cel(
            "self.matches('^[0-9]{2}([.][0-9]{1,4})?$') && double(self) >= 50.0",
            'must be a percentage in quotes from "50" to below "100", such as "99.9"',
        )
    ),
]
MOST_REPLACEMENTS = 30
"""The status lists each failure that counts, so their number is bounded."""
PoolName = Annotated[str, StringConstraints(pattern=DNS_LABEL, min_length=1, max_length=40)]


class Autoscaling(ApiModel):
    """Range within which the operator sets the number of active groups."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "self.minReplicas <= self.maxReplicas",
            "must not be below minReplicas: raise maxReplicas or lower minReplicas",
            at=".maxReplicas",
        ),
    )

    min_replicas: PositiveReplicas = 1
    """Fewest active groups."""
    max_replicas: PositiveReplicas
    """Most active groups."""
    scale_down_stabilization: Annotated[Duration, Between("0s", "24h")] = "5m"
    """How long a lower count must be enough before a group is removed."""


class Slo(ApiModel):
    """Targets of the service. They steer autoscaling and set the edges of the latency histograms."""

    ttft_p90: Annotated[Duration, Between("1ms", "10m")] | None = None
    """Time to the first token that 90% of requests stay under, such as 600ms."""
    inter_token_latency_p99: Annotated[Duration, Between("1ms", "1m")] | None = None
    """Gap between two tokens that 99% of gaps stay under, such as 50ms."""
    kv_cache_utilization_percent: Percent | None = None
    """Share of the KV cache that is to be in use at most, in percent."""
    objective_percent: ObjectivePercent | None = None
    """Share of requests that meet the targets, in percent and in quotes. Feeds burn-rate alerts only."""


class Admission(ApiModel):
    """When the gateway refuses a request instead of queueing it."""

    max_estimated_ttft: Annotated[Duration, Between("1ms", "10m")] | None = Field(
        default=None, alias="maxEstimatedTTFT"
    )
    """Refuses a request whose first token is expected later than this."""
    max_queue_time: Annotated[Duration, Between("0s", "1h")] | None = None
    """Refuses a request that has been queued this long."""


class Degradation(ApiModel):
    """What the gateway does under overload before it refuses requests."""

    max_output_tokens: Annotated[int, Field(ge=1, le=16_777_216)] | None = None
    """Output tokens to which answers are cut."""
    fallback_pool: PoolName | None = None
    """InferencePool of the same namespace that takes the overflow."""


class WarmPoolTier(StrEnum):
    """How warm a standby group is kept."""

    HOT = "Hot"
    SLEEPING = "Sleeping"


class WarmPool(ApiModel):
    """Loaded groups that take no traffic until one is needed."""

    size: Annotated[int, Field(ge=0, le=100)] = 0
    """Standby groups to keep, each with all accelerators of an active one."""
    tier: WarmPoolTier = WarmPoolTier.HOT
    """Hot: weights stay on the accelerator and promotion is immediate. Sleeping: weights lie in host memory and are
    woken at promotion."""


class Health(ApiModel):
    """When a group counts as unhealthy."""

    # Steps of a second and more are usual (a long prompt, any CPU): a shorter limit would end every engine for ever.
    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            f"!self.interval.matches('{PATTERN}') || "
            "duration(self.interval).getMilliseconds() * self.failureThreshold >= 3000",
            "interval times failureThreshold must be 3s at least, since one step of an engine may take that long: "
            "raise one of them",
            at=".interval",
        ),
    )

    interval: Annotated[Duration, Between("100ms", "5m")] = "5s"
    """Time between two looks at a group's progress."""
    failure_threshold: Annotated[int, Field(ge=1, le=100)] = 3
    """Looks without progress after which the group is replaced."""
    startup_deadline: Annotated[Duration, Between("1s", "24h")] = "30m"
    """How long a group may take from creation until its model is loaded."""


class Drain(ApiModel):
    """How a group leaves the Service. The two times follow each other."""

    timeout: Annotated[Duration, Between("0s", "24h")] = "5m"
    """How long running streams may go on before they are ended. A change holds at once for drains that the operator
    begins; a pod that is deleted or evicted by anything else keeps the times that it was made with."""
    endpoint_settle: Annotated[Duration, Between("0s", "5m")] = "5s"
    """How long the group still takes requests after it left the Service, since proxies learn of that late."""


class Rollout(ApiModel):
    """How a change of model, engine, placement, resources or warm-pool tier reaches the groups."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "self.maxSurge > 0 || self.maxUnavailable > 0",
            "maxSurge and maxUnavailable must not both be 0, else no group can be replaced: set one of them to 1",
            at=".maxSurge",
        ),
    )

    max_surge: Annotated[int, Field(ge=0, le=100)] = 1
    """Groups that may exist beyond the desired number."""
    max_unavailable: Annotated[int, Field(ge=0, le=100)] = 0
    """Active groups that may be missing."""
    partition: Replicas = 0
    """Active groups that stay on the old revision. One of them that fails is replaced at the new one in this
    version."""
    paused: bool = False
    """Starts no further step."""
    progress_deadline: Annotated[Duration, Between("1s", "168h")] = "1h"
    """A rollout in which no step finishes for this long is reversed."""


class Failure(ApiModel):
    """How failed groups are replaced."""

    max_replacements: Annotated[int, Field(ge=0, le=MOST_REPLACEMENTS)] = 5
    """Replacements within the window after which the pool holds and retries ever more slowly. Those caused by a node
    do not count."""
    window: Annotated[Duration, Between("1s", "168h")] = "1h"
    """Time over which replacements are counted."""
    retain_failed: Annotated[Duration, Between("0s", "168h")] = "15m"
    """How long one failed group is kept for inspection."""
