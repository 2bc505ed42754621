"""Nodes: each a process tree in network, mount and PID namespaces of its own.

Killing the one outer process ends every pod, mount and interface in it at once: that is how a node's power is cut,
and why nothing of it is left behind.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from e2e.cluster import cgroups
from e2e.cluster.api import Api
from e2e.cluster.errors import ClusterError
from e2e.cluster.network import attach, node_plan
from e2e.cluster.node_config import write_config
from e2e.cluster.processes import running, spawn, stop
from e2e.cluster.state import Settings, State
from e2e.cluster.waiting import wait_for

NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
GPU_RESOURCE = "nvidia.com~1gpu"


def start_node(state: State, settings: Settings, name: str) -> None:
    """Switch a node on and wait for its container runtime; kubelet goes on starting by itself."""
    plan, node = node_plan(state, settings.net, name), state.node(name)
    if not node.exists():
        write_config(state, settings, name)
    # A machine's /run and cgroups do not outlive its power. (Left behind, each dead
    # container's cgroup holds a starting kubelet up for three seconds.)
    shutil.rmtree(node / "run", ignore_errors=True)
    group = f"{cgroups.root(state)}/{name}"
    cgroups.remove(group)
    cgroups.create(group)
    init = [sys.executable, "-m", "e2e.cluster.node_init", state.dir, name]
    pid = spawn(state, name, ["unshare", *NAMESPACES, *init])
    own, new = Path("/proc/self/ns/net").readlink(), Path(f"/proc/{pid}/ns/net")
    wait_for(f"{name}'s namespaces", lambda: _alive(state, name) and new.readlink() != own)
    attach(state, plan, pid)
    socket = node / "run/containerd/containerd.sock"
    wait_for(f"{name}'s containerd", lambda: _alive(state, name) and socket.exists(), hint=f"see {state.logs}")


def stop_node(state: State, name: str) -> None:
    """Cut a node's power."""
    stop(state, [name])


def require_nodes(settings: Settings, names: Sequence[str]) -> None:
    """Raise ClusterError unless all of `names` are nodes of this cluster."""
    unknown = [name for name in names if name not in settings.nodes]
    if unknown:
        raise ClusterError(f"no node {', '.join(unknown)}; this cluster has: {', '.join(settings.nodes) or 'none'}")


def wait_ready(state: State, settings: Settings, names: Sequence[str], stale: Mapping[str, str] | None = None) -> None:
    """Return once the API server calls all of `names` Ready and they carry their GPUs.

    `stale` holds reports from before a node's start, which say nothing about it.
    """
    api, old = Api(state, settings.server), stale or {}

    def ready() -> bool:
        reports = ready_nodes(api)
        return all(_alive(state, name) and reports.get(name) not in (None, old.get(name)) for name in names)

    wait_for(f"{', '.join(names)} Ready", ready, hint=f"see {state.logs}")
    if settings.gpus_per_node:
        for name in names:
            wait_for(f"GPUs of {name}", partial(_give_gpus, api, name, settings.gpus_per_node))


def ready_nodes(api: Api) -> dict[str, str]:
    """Time of the last report of each node that is Ready; none while the API server does not answer."""
    try:
        items = api.get("/api/v1/nodes")["items"]
    except OSError:
        return {}
    return {
        node["metadata"]["name"]: str(condition["lastHeartbeatTime"])
        for node in items
        for condition in node["status"].get("conditions", [])
        if condition["type"] == "Ready" and condition["status"] == "True"
    }


def _give_gpus(api: Api, name: str, count: int) -> bool:
    """Write the extended resource into the node's status, where kubelet keeps it, as a device plugin's would be."""
    parts = ("capacity", "allocatable")
    with suppress(OSError):
        api.patch(
            f"/api/v1/nodes/{name}/status",
            [{"op": "add", "path": f"/status/{part}/{GPU_RESOURCE}", "value": str(count)} for part in parts],
        )
        return True
    return False


def _alive(state: State, name: str) -> bool:
    if name not in running(state):
        raise ClusterError(f"{name} ended; see {state.logs}/{name}.log")
    return True
