"""One enum each for roles, phases, condition types and reasons.

A reason stands in the log line, the event, the condition and the metric label of one and the same intent, so
that any of the four leads to the others.
"""

from enum import StrEnum


class Role(StrEnum):
    """What a replica group is for. ``spec.role`` of a ReplicaGroup is the truth; pod labels follow it."""

    ACTIVE = "active"
    STANDBY = "standby"
    DRAINING = "draining"
    QUARANTINED = "quarantined"


class Phase(StrEnum):
    """One-word summary of a group's conditions, for people. No code decides by it."""

    PENDING = "Pending"
    LOADING = "Loading"
    WARM = "Warm"
    SLEEPING = "Sleeping"
    WAKING = "Waking"
    SERVING = "Serving"
    DRAINING = "Draining"
    FAILED = "Failed"


class ConditionType(StrEnum):
    """Condition types of InferencePool."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    WARM_POOL_READY = "WarmPoolReady"
    SCALING_ACTIVE = "ScalingActive"
    SCALING_LIMITED = "ScalingLimited"
    CAPACITY_AVAILABLE = "CapacityAvailable"
    SLO_MET = "SLOMet"
    ROLLED_OUT = "RolledOut"
    SPEC_HONORED = "SpecHonored"


class GroupConditionType(StrEnum):
    """Condition types of ReplicaGroup."""

    SCHEDULED = "Scheduled"
    LOADED = "Loaded"
    HEALTHY = "Healthy"
    ROUTABLE = "Routable"


class Reason(StrEnum):
    """Why. Used alike in events, conditions, ``status.decisions``, logs and metrics."""

    # desired counts
    FIXED_REPLICAS = "FixedReplicas"
    DEFAULT_REPLICAS = "DefaultReplicas"
    SUSPENDED = "Suspended"
    MINIMUM_REPLICAS = "MinimumReplicas"
    AUTOSCALING_NOT_SUPPORTED = "AutoscalingNotSupported"
    # changes, each also an event
    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    PROMOTED = "Promoted"
    REPLACED = "Replaced"
    WARM_POOL_REFILL = "WarmPoolRefill"
    WARM_POOL_SHRUNK = "WarmPoolShrunk"
    QUARANTINED = "Quarantined"
    DRAINING = "Draining"
    DRAINED = "Drained"
    DRAIN_TIMED_OUT = "DrainTimedOut"
    RETIRED = "Retired"
    ROLLOUT_STARTED = "RolloutStarted"
    ROLLOUT_FINISHED = "RolloutFinished"
    # why a group is unhealthy
    ENGINE_EXITED = "EngineExited"
    ENGINE_UNHEALTHY = "EngineUnhealthy"
    POD_LOST = "PodLost"
    NODE_LOST = "NodeLost"
    LOAD_FAILED = "LoadFailed"
    STARTUP_DEADLINE_EXCEEDED = "StartupDeadlineExceeded"
    CRASH_LOOP_HOLD = "CrashLoopHold"
    # why groups are not judged
    OPERATOR_BLIND = "OperatorBlind"
    TOKEN_REFUSED = "TokenRefused"  # noqa: S105 - a reason, no token
    # conditions
    GROUPS_SERVING = "GroupsServing"
    GROUPS_NOT_READY = "GroupsNotReady"
    CONVERGED = "Converged"
    PROGRESSING = "Progressing"
    NO_PROBLEM = "NoProblem"
    WARM_POOL_FULL = "WarmPoolFull"
    WARM_POOL_SHORT = "WarmPoolShort"
    CAPACITY_AVAILABLE = "CapacityAvailable"
    CAPACITY_SHORT = "CapacityShort"
    ALL_HONORED = "AllHonored"
    FIELDS_NOT_HONORED = "FieldsNotHonored"
    WITHIN_TARGETS = "WithinTargets"
    ABOVE_TARGETS = "AboveTargets"
    NO_DATA = "NoData"
    NOT_AUTOSCALING = "NotAutoscaling"
    # conditions of a group
    SCHEDULED = "Scheduled"
    LOADED = "Loaded"
    LOADING = "Loading"
    HEALTHY = "Healthy"
    NO_ANSWER = "NoAnswer"
    IN_SERVICE = "InService"
    NOT_IN_SERVICE = "NotInService"
    # a person must act
    IMAGE_NOT_ALLOWED = "ImageNotAllowed"
    ENGINE_ARGUMENT_NOT_ALLOWED = "EngineArgumentNotAllowed"
    BACKEND_NOT_ALLOWED = "BackendNotAllowed"
    NAME_CONFLICT = "NameConflict"
    INVALID_SPEC = "InvalidSpec"
    NOT_SUPPORTED_YET = "NotSupportedYet"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    POD_REFUSED = "PodRefused"
    GROUP_REFUSED = "GroupRefused"
    CONTAINER_CONFIG_INVALID = "ContainerConfigInvalid"
