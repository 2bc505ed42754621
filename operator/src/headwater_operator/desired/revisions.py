"""ControllerRevision objects: what a group of a revision is built from, fixed when the revision is made."""

from __future__ import annotations

from typing import Any

from headwater_contracts.labels import LABEL_POOL, LABEL_REVISION
from headwater_operator.core.actions import CreateRevision
from headwater_operator.core.names import revision_name
from headwater_operator.desired.refs import PoolRef, pool_owner


def build_revision(pool: PoolRef, action: CreateRevision) -> dict[str, Any]:
    """The whole ControllerRevision, for server-side apply: applied again with a higher number on a rollback."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(pool.name, action.revision),
            "namespace": pool.namespace,
            "labels": {LABEL_POOL: pool.name, LABEL_REVISION: action.revision},
            "ownerReferences": pool_owner(pool),
        },
        "revision": action.number,
        "data": {"template": dict(action.template)},
    }
