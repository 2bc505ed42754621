"""Reads the caches into one frozen snapshot of a pool. No API call, no waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headwater_contracts.labels import LABEL_RANK
from headwater_operator.adapters import kinds
from headwater_operator.adapters.store import uid_of
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.snapshot import (
    EngineReading,
    ForeignObject,
    GroupObservation,
    NodeObservation,
    PoolSnapshot,
    Refusal,
)
from headwater_operator.desired.refs import PoolRef
from headwater_operator.desired.services import build_service
from headwater_operator.ports import ClusterReader, Object
from headwater_operator.reconcile.observe import covers, observe_group, observe_node, observe_revision, ready_pods
from headwater_operator.reconcile.ownership import Ownership, ownership


class Readings(Protocol):
    """Last words of the engines."""

    def reading(self, pod_uid: str) -> EngineReading | None:
        """What the engine in a pod last said; None if it was not asked yet."""


class NodeMemo:
    """Observations of all nodes, made again only when one changed: a thousand pools share a thousand nodes."""

    def __init__(self) -> None:
        self._seen: list[Object] = []
        self._observed: tuple[NodeObservation, ...] = ()

    def observed(self, reader: ClusterReader) -> tuple[NodeObservation, ...]:
        """All nodes, as the reader has them now."""
        items = reader.all(kinds.NODE.name)
        if len(items) != len(self._seen) or any(a is not b for a, b in zip(items, self._seen, strict=True)):
            self._seen, self._observed = items, tuple(observe_node(item) for item in items)
        return self._observed


def gather_snapshot(
    pool: Object,
    spec: InferencePoolSpec,
    reader: ClusterReader,
    readings: Readings,
    *,
    nodes: tuple[NodeObservation, ...],
    refused: Mapping[str, Refusal],
    foreign: tuple[ForeignObject, ...] = (),
) -> PoolSnapshot:
    """The pool and all that belongs to it, as the caches have it now. ``foreign``: found by refused creates."""
    metadata = pool["metadata"]
    namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
    service = reader.get(kinds.SERVICE.name, namespace, name)
    whose = ownership(service, name, uid)
    if whose is Ownership.FOREIGN:
        foreign = (ForeignObject(kinds.SERVICE.name, name), *foreign)
    service_exists = whose is Ownership.OURS and covers(service, build_service(PoolRef(namespace, name, uid)))
    return PoolSnapshot(
        namespace=namespace,
        name=name,
        uid=uid,
        generation=int(metadata.get("generation") or 0),
        terminating="deletionTimestamp" in metadata,
        spec=spec,
        spec_fields_set=pool.get("spec") or {},
        status=pool.get("status") or {},
        groups=tuple(gather_group(item, reader, readings) for item in reader.owned(kinds.GROUP.name, namespace, uid)),
        revisions=tuple(observe_revision(item) for item in reader.owned(kinds.REVISION.name, namespace, uid)),
        nodes=nodes,
        service_exists=service_exists,
        foreign=foreign,
        refused=refused,
        endpoints_ready=_endpoints(service, whose, reader, namespace),
    )


def gather_group(item: Object, reader: ClusterReader, readings: Readings) -> GroupObservation:
    """One group, its pods and its leader's last word."""
    pods = reader.owned(kinds.POD.name, item["metadata"]["namespace"], uid_of(item))
    leader = next((pod for pod in pods if (pod["metadata"].get("labels") or {}).get(LABEL_RANK) == "0"), None)
    return observe_group(item, pods, None if leader is None else readings.reading(uid_of(leader)))


def _endpoints(service: Object | None, whose: Ownership, reader: ClusterReader, namespace: str) -> frozenset[str]:
    """Slices are owned by the Service: of a foreign one, or of none, there are none of ours."""
    if service is None or whose is not Ownership.OURS:
        return frozenset()
    return ready_pods(reader.owned(kinds.ENDPOINT_SLICE.name, namespace, uid_of(service)))
