"""Who a built object belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater_contracts.labels import API_GROUP, API_VERSION
from headwater_operator.core.snapshot import GroupObservation, PoolSnapshot


@dataclass(frozen=True, slots=True)
class PoolRef:
    """Identity of an InferencePool."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, snapshot: PoolSnapshot) -> PoolRef:
        """The pool of a snapshot."""
        return cls(snapshot.namespace, snapshot.name, snapshot.uid)


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Operator settings that end up in built objects."""

    image_pull_policy: str = "IfNotPresent"
    log_level: str = "info"


def pool_owner(pool: PoolRef) -> list[dict[str, Any]]:
    """Owner references of a pool's direct children."""
    return [_controller("InferencePool", pool.name, pool.uid)]


def group_owner(group: GroupObservation) -> list[dict[str, Any]]:
    """Owner references of a group's pods."""
    return [_controller("ReplicaGroup", group.name, group.uid)]


def _controller(kind: str, name: str, uid: str) -> dict[str, Any]:
    # blockOwnerDeletion would need a right on the owner's finalizers on clusters that check it.
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
