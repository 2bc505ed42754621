"""The pool's Service: the active groups' leaders, and nothing else."""

from __future__ import annotations

from typing import Any

from headwater_contracts.labels import LABEL_POOL, LABEL_RANK, LABEL_ROLE
from headwater_contracts.network import SERVICE_PORT
from headwater_contracts.reasons import Role
from headwater_operator.desired.refs import PoolRef, pool_owner

HTTP_PORT_NAME = "http"


def service_selector(pool: str) -> dict[str, str]:
    """Labels of the pods that serve a pool: promotion and quarantine are a change of one of them."""
    return {LABEL_POOL: pool, LABEL_ROLE: str(Role.ACTIVE), LABEL_RANK: "0"}


def build_service(pool: PoolRef) -> dict[str, Any]:
    """The whole Service, named as the pool, port 80."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": pool.name,
            "namespace": pool.namespace,
            "labels": {LABEL_POOL: pool.name},
            "ownerReferences": pool_owner(pool),
        },
        "spec": {
            "type": "ClusterIP",
            "selector": service_selector(pool.name),
            "ports": [{"name": HTTP_PORT_NAME, "protocol": "TCP", "port": SERVICE_PORT, "targetPort": HTTP_PORT_NAME}],
        },
    }
