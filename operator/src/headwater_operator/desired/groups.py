"""ReplicaGroup objects: whole for a create, and the part that a role change applies."""

from __future__ import annotations

from typing import Any

from headwater_contracts.labels import (
    ANNOTATION_DRAINING_SINCE,
    ANNOTATION_QUARANTINED_SINCE,
    ANNOTATION_ROLE_REASON,
    API_GROUP,
    API_VERSION,
    LABEL_POOL,
    LABEL_REVISION,
)
from headwater_operator.core.actions import CreateGroup, SetRole
from headwater_operator.core.snapshot import GroupObservation
from headwater_operator.desired.refs import PoolRef, pool_owner

_OUR_ANNOTATIONS = (ANNOTATION_DRAINING_SINCE, ANNOTATION_QUARANTINED_SINCE, ANNOTATION_ROLE_REASON)
_TYPE = {"apiVersion": f"{API_GROUP}/{API_VERSION}", "kind": "ReplicaGroup"}


def build_group(pool: PoolRef, action: CreateGroup) -> dict[str, Any]:
    """The ReplicaGroup that a CreateGroup action asks for, to be created (POST)."""
    return {
        **_TYPE,
        "metadata": {
            "name": action.name,
            "namespace": pool.namespace,
            "labels": {LABEL_POOL: pool.name, LABEL_REVISION: action.revision},
            "annotations": {ANNOTATION_ROLE_REASON: str(action.reason)},
            "ownerReferences": pool_owner(pool),
        },
        "spec": {"role": str(action.role), "revision": action.revision, "template": dict(action.template)},
    }


def build_group_role(namespace: str, group: GroupObservation, action: SetRole) -> dict[str, Any]:
    """What a SetRole action applies (server-side apply): role and our annotations, nothing else.

    Groups are created by POST, so this apply owns only what it names; an annotation that is dropped from
    the set goes away.
    """
    annotations = {key: group.annotations[key] for key in _OUR_ANNOTATIONS if key in group.annotations}
    for key, value in action.annotations.items():
        annotations.pop(key, None)
        if value is not None:
            annotations[key] = value
    return {
        **_TYPE,
        "metadata": {"name": group.name, "namespace": namespace, "uid": group.uid, "annotations": annotations},
        "spec": {"role": str(action.role)},
    }
