"""What the caches keep of an object: the fields that a decision or a builder reads, and no more.

A pool of pods at full size costs some 10 KiB each; trimmed, about one.
"""

from __future__ import annotations

from typing import Any

from headwater_contracts.labels import LABEL_POOL
from headwater_operator.adapters.store import Object

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
)


def trim_metadata(item: Object) -> dict[str, Any]:
    """The object without managed fields."""
    metadata = {key: item["metadata"][key] for key in _METADATA if key in item["metadata"]}
    return {**item, "metadata": metadata}


def trim_pod(item: Object) -> dict[str, Any]:
    """Identity, node and status of a pod."""
    spec = {key: value for key, value in (item.get("spec") or {}).items() if key == "nodeName"}
    return {**trim_metadata(item), "spec": spec}


def trim_node(item: Object) -> dict[str, Any]:
    """Name, schedulability and the Ready condition's status of a node: heartbeats change nothing."""
    spec = item.get("spec") or {}
    conditions = (item.get("status") or {}).get("conditions") or ()
    return {
        "kind": "Node",
        "metadata": {key: item["metadata"][key] for key in ("name", "uid", "resourceVersion")},
        "spec": {"unschedulable": bool(spec.get("unschedulable"))},
        "status": {
            "conditions": [
                {"type": "Ready", "status": condition["status"]}
                for condition in conditions
                if condition["type"] == "Ready"
            ]
        },
    }


def trim_service(item: Object) -> dict[str, Any]:
    """A Service of a pool; of any other only what shows that its name is taken."""
    whole = trim_metadata(item)
    if LABEL_POOL in (whole["metadata"].get("labels") or {}):
        return whole
    metadata = {k: v for k, v in whole["metadata"].items() if k not in ("labels", "annotations")}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def trim_endpoint_slice(item: Object) -> dict[str, Any]:
    """Which pods a slice lists, and which of them as ready."""
    endpoints = [
        {"conditions": endpoint.get("conditions") or {}, "targetRef": endpoint.get("targetRef") or {}}
        for endpoint in item.get("endpoints") or ()
    ]
    return {**trim_metadata(item), "endpoints": endpoints, "ports": []}
