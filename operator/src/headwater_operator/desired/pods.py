"""The whole pod of one rank of a group, within the restricted pod security standard."""

from __future__ import annotations

import math
from typing import Any

from headwater_contracts.labels import LABEL_GROUP, LABEL_POOL, LABEL_RANK, LABEL_REVISION, LABEL_ROLE
from headwater_contracts.network import ENGINE_ADMIN_PORT, ENGINE_HTTP_PORT, READY_PATH
from headwater_contracts.reasons import Role
from headwater_operator.api.duration import parse_duration
from headwater_operator.api.group import GroupTemplate
from headwater_operator.api.parsing import parse_template
from headwater_operator.api.placement import Placement
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.names import pod_name
from headwater_operator.core.snapshot import GroupObservation, PodObservation
from headwater_operator.desired.engine_container import (
    HOME,
    ModelMounts,
    PodIdentity,
    engine_environment,
    model_mounts,
)
from headwater_operator.desired.refs import BuildSettings, PoolRef, group_owner
from headwater_operator.desired.services import HTTP_PORT_NAME

ENGINE_CONTAINER = "engine"
ENGINE_USER = 10001
PRODUCT_LABEL = "nvidia.com/gpu.product"
_EXIT_MARGIN_SECONDS = 15
_PROBE_PERIOD_SECONDS = 2
_PROBE_TIMEOUT_SECONDS = 5


def build_pod(
    group: GroupObservation,
    rank: int,
    spec: InferencePoolSpec,
    pool: PoolRef,
    settings: BuildSettings,
    token_digest: str,
) -> dict[str, Any]:
    """The pod, to be created (POST). ``token_digest`` is that of the group's admin token.

    Raises InvalidSpec if the group's stored template does not fit the API.
    """
    template = parse_template(group.template)
    identity = PodIdentity(pool.name, group.name, token_digest, settings.log_level)
    model = model_mounts(template)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(group.name, rank),
            "namespace": pool.namespace,
            "labels": _labels(group, rank, pool),
            "ownerReferences": group_owner(group),
        },
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": grace_period_seconds(spec),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": ENGINE_USER,
                "runAsGroup": ENGINE_USER,
                "fsGroup": ENGINE_USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **_placement(template.placement),
            "containers": [_container(template, spec, model, identity, settings)],
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": template.resources.shared_memory}},
                *model.volumes,
            ],
        },
    }


def build_pod_role(namespace: str, pod: PodObservation, role: Role) -> dict[str, Any]:
    """What brings a pod's role label in line (server-side apply): the label alone, on this very pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": namespace,
            "uid": pod.uid,
            "labels": {LABEL_ROLE: str(role)},
        },
    }


def grace_period_seconds(spec: InferencePoolSpec) -> int:
    """Time from SIGTERM to SIGKILL: the whole drain, and a margin to exit."""
    drain = parse_duration(spec.drain.endpoint_settle) + parse_duration(spec.drain.timeout)
    return math.ceil(drain) + _EXIT_MARGIN_SECONDS


def _labels(group: GroupObservation, rank: int, pool: PoolRef) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "headwater-engine",
        "app.kubernetes.io/managed-by": "headwater",
        LABEL_POOL: pool.name,
        LABEL_GROUP: group.name,
        LABEL_REVISION: group.revision,
        LABEL_ROLE: str(group.role),
        LABEL_RANK: str(rank),
    }


def _placement(placement: Placement) -> dict[str, Any]:
    selector = dict(placement.node_selector)
    if placement.accelerator_product:
        selector[PRODUCT_LABEL] = placement.accelerator_product
    parts: dict[str, Any] = {
        "nodeSelector": selector,
        "tolerations": [toleration.to_object() for toleration in placement.tolerations],
        "priorityClassName": placement.priority_class_name,
    }
    return {key: value for key, value in parts.items() if value}


def _container(
    template: GroupTemplate,
    spec: InferencePoolSpec,
    model: ModelMounts,
    identity: PodIdentity,
    settings: BuildSettings,
) -> dict[str, Any]:
    return {
        "name": ENGINE_CONTAINER,
        "image": template.engine.image,
        "imagePullPolicy": settings.image_pull_policy,
        # A dead engine's last words then stand in the pod's status, and so in events and conditions.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": engine_environment(template, spec, model, identity),
        "ports": [
            {"name": HTTP_PORT_NAME, "containerPort": ENGINE_HTTP_PORT, "protocol": "TCP"},
            {"name": "admin", "containerPort": ENGINE_ADMIN_PORT, "protocol": "TCP"},
        ],
        "resources": _resources(template),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": _probe(_startup_failures(spec)),
        "readinessProbe": _probe(2),
        "volumeMounts": [
            {"name": "tmp", "mountPath": HOME},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - where tensor-parallel workers share memory
            *model.mounts,
        ],
    }


def _resources(template: GroupTemplate) -> dict[str, Any]:
    """Requests as asked; no CPU limit, since throttling stalls token streams and the request is share enough."""
    memory: dict[str, str] = {"memory": template.resources.memory}
    if template.placement.accelerator_resource:
        memory[template.placement.accelerator_resource] = str(template.engine.tensor_parallel_size)
    return {"requests": {"cpu": template.resources.cpu, **memory}, "limits": memory}


def _startup_failures(spec: InferencePoolSpec) -> int:
    """Later than the operator's own verdict on the start-up deadline, which says more than a killed container."""
    deadline = parse_duration(spec.health.startup_deadline)
    return math.ceil(deadline / _PROBE_PERIOD_SECONDS) + 60


def _probe(failures: int) -> dict[str, Any]:
    # Timeouts are long: a probe that fails on a busy node would take a working engine out.
    return {
        "httpGet": {"path": READY_PATH, "port": HTTP_PORT_NAME, "scheme": "HTTP"},
        "periodSeconds": _PROBE_PERIOD_SECONDS,
        "timeoutSeconds": _PROBE_TIMEOUT_SECONDS,
        "failureThreshold": failures,
        "successThreshold": 1,
    }
