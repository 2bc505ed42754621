"""The same cluster by kind, where a Docker engine answers."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e.cluster.commands import docker_answers, find, run
from e2e.cluster.node_config import GPU_PRODUCT
from e2e.cluster.nodes import GPU_RESOURCE
from e2e.cluster.state import Settings, State, write

PROVIDER = "HEADWATER_CLUSTER_PROVIDER"


def available() -> bool:
    """Whether kind can be used here; HEADWATER_CLUSTER_PROVIDER=kind or bundled decides by itself."""
    forced = os.environ.get(PROVIDER, "")
    if forced:
        return forced == "kind"
    return bool(find("kind") and docker_answers())


def name(state: State) -> str:
    """Name of the kind cluster of a state directory."""
    return f"headwater-{state.id}"


def container(state: State, node: str) -> str:
    """kind's name of node1, node2, …: NAME-worker, NAME-worker2, …"""
    number = node.removeprefix("node")
    return f"{name(state)}-worker{'' if number == '1' else number}"


def up(state: State, settings: Settings, progress: Callable[[str], None] = print) -> Settings:
    """Create the cluster and give its workers their GPUs."""
    state.save(settings)
    roles = [{"role": "control-plane"}, *({"role": "worker"} for _ in settings.nodes)]
    config: dict[str, object] = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": roles}
    file = write(state.conf / "kind.yaml", config)
    progress("creating the cluster with kind ...")
    run(
        "kind", "create", "cluster", "--name", name(state), "--config", file,
        "--kubeconfig", state.kubeconfig, "--wait", "180s",
    )  # fmt: skip
    mend(state, settings, progress)
    return state.mark_complete(settings)


def mend(state: State, settings: Settings, progress: Callable[[str], None] = print) -> list[str]:
    """Start stopped workers again; returns their names."""
    alive = set(run("docker", "ps", "--format", "{{.Names}}").split())
    dead = [node for node in settings.nodes if container(state, node) not in alive]
    if dead:
        progress(f"starting again: {', '.join(dead)}")
    start_nodes(state, settings, dead)
    if settings.gpus_per_node:
        for node in settings.nodes:
            _give_gpus(state, container(state, node), settings.gpus_per_node)
    return dead


def down(state: State) -> None:
    """Delete the cluster and its files."""
    run("kind", "delete", "cluster", "--name", name(state), "--kubeconfig", state.kubeconfig)
    state.remove_files()


def load(state: State, archives: Sequence[Path], progress: Callable[[str], None] = print) -> None:
    """Import image archives on every node."""
    for archive in archives:
        run("kind", "load", "image-archive", archive, "--name", name(state))
        progress(f"imported {archive.name}")


def start_nodes(state: State, settings: Settings, nodes: Sequence[str]) -> None:
    """Switch workers on and wait until they are Ready."""
    for node in nodes:
        run("docker", "start", container(state, node))
        _kubectl(state, "wait", "--for=condition=Ready", f"node/{container(state, node)}", "--timeout=120s")
        if settings.gpus_per_node:
            _give_gpus(state, container(state, node), settings.gpus_per_node)


def stop_nodes(state: State, nodes: Sequence[str]) -> None:
    """Cut the power of workers."""
    for node in nodes:
        run("docker", "kill", container(state, node))


def _give_gpus(state: State, node: str, count: int) -> None:
    parts = ("capacity", "allocatable")
    patch = [{"op": "add", "path": f"/status/{part}/{GPU_RESOURCE}", "value": str(count)} for part in parts]
    _kubectl(state, "patch", "node", node, "--subresource=status", "--type=json", f"--patch={json.dumps(patch)}")
    _kubectl(state, "label", "--overwrite", "node", node, f"nvidia.com/gpu.product={GPU_PRODUCT}")


def _kubectl(state: State, *arguments: str) -> str:
    return run("kubectl", "--kubeconfig", state.kubeconfig, *arguments)
