"""From Kubernetes objects to the frozen observations of a snapshot. Missing fields become None, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from headwater_contracts.labels import LABEL_RANK, LABEL_REVISION, LABEL_ROLE
from headwater_contracts.reasons import Role
from headwater_operator.core.snapshot import (
    EngineReading,
    GroupObservation,
    NodeObservation,
    PodObservation,
    RevisionObservation,
)
from headwater_operator.core.times import parse_time
from headwater_operator.desired.pods import ENGINE_CONTAINER
from headwater_operator.ports import Object

_NEVER = datetime.fromtimestamp(0, UTC)


def observe_pod(item: Object) -> PodObservation:
    """One pod."""
    metadata, status = item["metadata"], item.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled")
    waiting, running, ended = _container_states(status)
    return PodObservation(
        name=metadata["name"],
        uid=metadata["uid"],
        rank=_rank(labels.get(LABEL_RANK)),
        role_label=labels.get(LABEL_ROLE),
        phase=status.get("phase") or "Pending",
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        terminating="deletionTimestamp" in metadata,
        created_at=_time(metadata.get("creationTimestamp")),
        node=(item.get("spec") or {}).get("nodeName"),
        ip=status.get("podIP"),
        scheduled=None if scheduled is None else scheduled.get("status") == "True",
        unschedulable_message=_unschedulable(scheduled),
        waiting_reason=waiting.get("reason"),
        waiting_message=waiting.get("message"),
        exit_code=ended.get("exitCode"),
        exit_reason=ended.get("reason"),
        exit_message=ended.get("message"),
        pod_reason=status.get("reason"),
        pod_message=status.get("message"),
        started_at=parse_time(running.get("startedAt") or ended.get("startedAt")),
    )


def observe_group(item: Object, pods: Iterable[Object], engine: EngineReading | None) -> GroupObservation:
    """One ReplicaGroup with its pods, in order of rank."""
    metadata, spec = item["metadata"], item["spec"]
    return GroupObservation(
        name=metadata["name"],
        uid=metadata["uid"],
        role=Role(spec["role"]),
        revision=spec["revision"],
        template=spec.get("template") or {},
        created_at=_time(metadata.get("creationTimestamp")),
        terminating="deletionTimestamp" in metadata,
        generation=int(metadata.get("generation") or 0),
        annotations=metadata.get("annotations") or {},
        status=item.get("status") or {},
        pods=tuple(sorted((observe_pod(pod) for pod in pods), key=lambda pod: pod.rank)),
        engine=engine,
    )


def observe_revision(item: Object) -> RevisionObservation:
    """One ControllerRevision."""
    labels = item["metadata"].get("labels") or {}
    return RevisionObservation(
        name=item["metadata"]["name"],
        revision=labels.get(LABEL_REVISION, ""),
        number=int(item.get("revision") or 0),
        template=(item.get("data") or {}).get("template") or {},
    )


def observe_node(item: Object) -> NodeObservation:
    """One node; readiness is None if the node never reported it."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    ready = next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)
    return NodeObservation(
        name=item["metadata"]["name"],
        ready=None if ready is None else ready == "True",
        unschedulable=bool((item.get("spec") or {}).get("unschedulable")),
    )


def ready_pods(slices: Iterable[Object]) -> frozenset[str]:
    """Names of the pods that EndpointSlices send traffic to."""
    return frozenset(
        endpoint["targetRef"]["name"]
        for item in slices
        for endpoint in item.get("endpoints") or ()
        if endpoint.get("targetRef", {}).get("kind") == "Pod"
        # Absent means unknown, which the API tells consumers to take as ready.
        and endpoint.get("conditions", {}).get("ready", True) is not False
    )


def covers(actual: Any, desired: Any) -> bool:
    """True if everything in ``desired`` is in ``actual`` alike; more fields in ``actual`` are others' business."""
    if isinstance(desired, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and covers(actual[key], value) for key, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(desired)
            and all(covers(a, d) for a, d in zip(actual, desired, strict=True))
        )
    return bool(actual == desired)


def _container_states(
    status: Mapping[str, Any],
) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    """(waiting, running, terminated) of the engine container, each empty if it is not in that state."""
    # By name: a mesh may have added containers of its own.
    containers = status.get("containerStatuses") or ()
    engine: Mapping[str, Any] = next((each for each in containers if each.get("name") == ENGINE_CONTAINER), {})
    state = engine.get("state") or {}
    return state.get("waiting") or {}, state.get("running") or {}, state.get("terminated") or {}


def _unschedulable(condition: Mapping[str, Any] | None) -> str | None:
    if condition is None or condition.get("status") == "True" or condition.get("reason") != "Unschedulable":
        return None
    return condition.get("message") or "Unschedulable"


def _rank(label: str | None) -> int:
    return int(label) if label is not None and label.isdigit() else 0


def _time(text: object) -> datetime:
    return parse_time(text) or _NEVER
