"""What one group's observation says, before any judgement."""

from __future__ import annotations

from headwater_contracts.admin import EnginePhase, EngineState
from headwater_contracts.reasons import GroupConditionType, Role
from headwater_operator.core.snapshot import GroupObservation, PodObservation, PoolSnapshot

STALE_SECONDS = 10.0
"""A reading older than this says nothing about now: five probe ticks."""

_LOADED_PHASES = frozenset({EnginePhase.READY, EnginePhase.DRAINING, EnginePhase.SLEEPING})
_EXITED_PHASES = frozenset({"Failed", "Succeeded"})


def leader(group: GroupObservation) -> PodObservation | None:
    """The pod of rank 0, which serves; None while it does not exist."""
    return next((pod for pod in group.pods if pod.rank == 0), None)


def fresh_state(group: GroupObservation) -> EngineState | None:
    """The engine's last answer if it is recent, else None (not known)."""
    reading = group.engine
    if reading is None or reading.state is None or reading.age_seconds > STALE_SECONDS:
        return None
    return reading.state


def token_refused(group: GroupObservation) -> bool:
    """The engine answers and refuses the operator's admin token."""
    return group.engine is not None and group.engine.token_refused


def running_streams(group: GroupObservation) -> int | None:
    """Requests that run or wait in the group's engine, None if not known."""
    state = fresh_state(group)
    return None if state is None else state.running + state.waiting + state.suspended


def condition_status(group: GroupObservation, kind: GroupConditionType) -> str | None:
    """Status of a condition that an earlier reconcile wrote, None if it never did."""
    for condition in group.status.get("conditions") or ():
        if condition.get("type") == kind:
            return str(condition.get("status"))
    return None


def pod_exited(pod: PodObservation) -> bool:
    """The engine's process has ended. Pods have restartPolicy Never, so it stays ended."""
    return pod.phase in _EXITED_PHASES or pod.exit_code is not None


def all_exited(group: GroupObservation) -> bool:
    """Nothing of the group runs any more: its GPUs are free and its streams are over."""
    return all(pod_exited(pod) for pod in group.pods)


def was_loaded(group: GroupObservation) -> bool:
    """Weights were loaded at some time, by what is seen now or by what an earlier reconcile wrote down."""
    pod, state = leader(group), fresh_state(group)
    if pod is not None and pod.ready:
        return True
    if state is not None and state.phase in _LOADED_PHASES:
        return True
    return condition_status(group, GroupConditionType.LOADED) == "True"


def leader_ready(group: GroupObservation) -> bool:
    """The kubelet calls the leader ready and nobody has asked it to go."""
    pod = leader(group)
    return pod is not None and pod.ready and not pod.terminating and not pod_exited(pod)


def routable(group: GroupObservation, snapshot: PoolSnapshot) -> bool | None:
    """Requests sent to the Service reach the group. None if a part of the evidence is missing."""
    pod = leader(group)
    if group.role is not Role.ACTIVE or group.terminating or pod is None:
        return False
    if pod.role_label != Role.ACTIVE or not leader_ready(group) or not snapshot.service_exists:
        return False
    if snapshot.endpoints_ready is not None and pod.name not in snapshot.endpoints_ready:
        return False
    state = fresh_state(group)
    if state is not None:
        return state.admitting
    # The engine tells us nothing, and never will; its own readiness reaches the endpoints by the kubelet.
    return True if token_refused(group) and snapshot.endpoints_ready is not None else None
