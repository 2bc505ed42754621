"""Pools in a running cluster: making them, looking at them, reaching them, and breaking them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.kit.kubectl import Kubectl, Object
from e2e.kit.wait import wait_until
from headwater_contracts.labels import LABEL_POOL
from headwater_contracts.reasons import Role

SYSTEM_NAMESPACE = "headwater-system"


@dataclass(frozen=True)
class Site:
    """A cluster with Headwater in it. ``state`` is the directory of the bundled cluster."""

    state: Path
    kubectl: Kubectl


def sim_pool(name: str, **spec: Any) -> Object:
    """An InferencePool of CPU-only sim engines that start at once; ``spec`` overrides its fields."""
    return {
        "apiVersion": "headwater.dev/v1alpha1",
        "kind": "InferencePool",
        "metadata": {"name": name},
        "spec": {
            "model": {"name": "sim", "source": {"imagePath": "/models/none"}},
            "engine": {"backend": "sim", "tensorParallelSize": 1},
            "placement": {"acceleratorResource": ""},
            "resources": {"cpu": "20m", "memory": "128Mi", "sharedMemory": "16Mi"},
            "replicas": 1,
            "warmPool": {"size": 0},
            "drain": {"timeout": "60s", "endpointSettle": "2s"},
            **spec,
        },
    }


def wait_ready(kubectl: Kubectl, pool: str, timeout: float = 120) -> None:
    """``kubectl wait --for=condition=Ready``, with the pool's description if it does not come."""
    done = kubectl.attempt(
        "wait", "--for=condition=Ready", f"ipool/{pool}", f"--timeout={timeout:.0f}s", timeout=timeout + 30
    )
    assert done.returncode == 0, done.stderr + describe(kubectl, pool)


def describe(kubectl: Kubectl, pool: str) -> str:
    """What a person would look at next."""
    return "\n".join(
        kubectl.attempt(*command).stdout
        for command in (
            ("get", "ipool,rgroup,pods,endpointslices", "-o", "wide"),
            ("describe", "ipool", pool),
            ("get", "events", "--sort-by=.lastTimestamp"),
        )
    )


def service_url(kubectl: Kubectl, pool: str) -> str:
    """Address of the pool's Service as the host reaches it."""
    service = kubectl.get("service", pool)
    assert service is not None, f"pool {pool} has no Service"
    return f"http://{service['spec']['clusterIP']}"


def groups(kubectl: Kubectl, pool: str, role: Role | None = None) -> list[Object]:
    """ReplicaGroups of a pool that are not being deleted, by role if given."""
    found = [
        group
        for group in kubectl.list("rgroup", "-l", f"{LABEL_POOL}={pool}")
        if "deletionTimestamp" not in group["metadata"]
    ]
    return [group for group in found if role is None or group["spec"]["role"] == role.value]


def names(objects: list[Object]) -> set[str]:
    """The objects' names."""
    return {obj["metadata"]["name"] for obj in objects}


def wait_counts(kubectl: Kubectl, pool: str, *, active: int, standby: int, timeout: float = 120) -> None:
    """Waits until the status shows these ready groups, and there are no others but one kept for its logs."""

    def reached() -> bool:
        status = (kubectl.get("ipool", pool) or {}).get("status") or {}
        return (
            status.get("readyReplicas") == active
            and status.get("standbyReplicas") == standby
            and len(groups(kubectl, pool)) - len(groups(kubectl, pool, Role.QUARANTINED)) == active + standby
            and status.get("summary", {}).get("warm") == f"{standby}/{standby}"
        )

    wait_until(
        reached,
        timeout=timeout,
        what=f"{active} active and {standby} standby groups of {pool}",
        describe=lambda: describe(kubectl, pool),
    )


def pod_pids(pod: str) -> list[int]:
    """Host pids of the processes in a pod of the bundled cluster, known by the host name in their environment."""
    wanted = f"HOSTNAME={pod}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:  # the process ended, or is not ours to read
                continue
            if wanted in environment:
                found.append(int(entry.name))
    return found


def kill_pod_processes(pod: str) -> None:
    """kill -9 of every process of one pod, as if its program crashed."""
    pids = pod_pids(pod)
    assert pids, f"no process of pod {pod} on this machine"
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it went with its parent
            continue


def operator_pod(site: Site) -> str:
    """Name of the operator's pod."""
    pods = site.kubectl.in_namespace(SYSTEM_NAMESPACE).list("pods", "-l", "app.kubernetes.io/component=operator")
    assert len(pods) == 1, f"one operator pod expected, found {sorted(names(pods))}"
    name: str = pods[0]["metadata"]["name"]
    return name
