"""Nodes with real pods: GPUs that are pretended, power cuts, names, aggregated APIs, images."""

import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster import build, oci
from e2e.cluster.archive import write_archive
from e2e.cluster.state import State
from e2e.cluster.waiting import wait_for

from support.aggregated_api import AggregatedApi
from support.dns import resolve
from support.local_cluster import apply, cluster, get, kubectl, running_cluster, traces


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    """Two nodes with eight GPUs each."""
    directory = tmp_path_factory.mktemp("pair") / "cluster"
    with running_cluster(directory, "--nodes", 2, "--gpus-per-node", 8) as state:
        yield state


def pod(name: str, image: str = build.PAUSE_IMAGE, **spec: Any) -> dict[str, Any]:
    gpus = spec.pop("gpus", 0)
    container: dict[str, Any] = {"name": "c", "image": image, "imagePullPolicy": "Never"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def await_ready(state: State, *names: str) -> None:
    kubectl(state, "wait", "--for=condition=Ready", "--timeout=90s", *(f"pod/{name}" for name in names))


def node_condition(state: State, name: str) -> str:
    conditions = get(state, f"node/{name}")["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def allocatable(state: State, name: str) -> str:
    return str(get(state, f"node/{name}")["status"]["allocatable"].get("nvidia.com/gpu"))


def test_the_third_pod_of_eight_gpus_on_sixteen_stays_pending(pair: State) -> None:
    apply(pair, pod("gpu-1", gpus=8), pod("gpu-2", gpus=8))
    await_ready(pair, "gpu-1", "gpu-2")
    apply(pair, pod("gpu-3", gpus=8))
    kubectl(pair, "wait", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", "pod/gpu-3", "--timeout=60s")
    assert "Insufficient nvidia.com/gpu" in get(pair, "pod/gpu-3")["status"]["conditions"][0]["message"]
    kubectl(pair, "delete", "pod", "gpu-1", "--wait=false")
    await_ready(pair, "gpu-3")
    kubectl(pair, "delete", "pod", "gpu-2", "gpu-3", "--wait=false")


def test_nodes_say_which_gpu_they_pretend_to_have(pair: State) -> None:
    got = [node["metadata"]["labels"]["nvidia.com/gpu.product"] for node in get(pair, "nodes")["items"]]
    assert got == ["NVIDIA-H100-80GB-HBM3"] * 2


def test_gpus_outlive_a_killed_kubelet_and_its_pods_do_too(pair: State) -> None:
    apply(pair, pod("survivor", nodeName="node1"))
    await_ready(pair, "survivor")
    want = get(pair, "pod/survivor")["status"]["containerStatuses"][0]["containerID"]
    before = heartbeat(pair, "node1")
    os.kill(kubelet(pair, "node1"), signal.SIGKILL)
    wait_for("the next kubelet's report", lambda: heartbeat(pair, "node1") != before)
    assert allocatable(pair, "node1") == "8"
    assert get(pair, "pod/survivor")["status"]["containerStatuses"][0]["containerID"] == want


def heartbeat(state: State, name: str) -> str:
    return str(get(state, f"node/{name}")["status"]["conditions"][0]["lastHeartbeatTime"])


def kubelet(state: State, name: str) -> int:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if f"--config={state.node(name)}/kubelet.yaml" in arguments:
            return int(process.name)
    raise AssertionError(f"no kubelet of {name}")


def test_a_node_without_power_is_noticed_and_comes_back_with_its_gpus(pair: State) -> None:
    assert cluster("stop-node", "--state", pair.dir, "node2").returncode == 0
    wait_for("node2 to be missed", lambda: node_condition(pair, "node2") == "Unknown")
    started = cluster("start-node", "--state", pair.dir, "node2")
    assert started.returncode == 0, started.stderr
    assert (node_condition(pair, "node2"), allocatable(pair, "node2")) == ("True", "8")
    apply(pair, pod("after", nodeName="node2"))
    await_ready(pair, "after")


def test_an_unknown_node_is_refused_by_name(pair: State) -> None:
    got = cluster("stop-node", "--state", pair.dir, "node9")
    assert (got.returncode, got.stderr) == (1, "cluster: no node node9; this cluster has: node1, node2\n")


def test_services_have_names(pair: State) -> None:
    settings = pair.require()
    got = resolve(f"{settings.net}.0.1", "kubernetes.default.svc.cluster.local")
    assert got == [f"{settings.net}.192.1"]


def test_an_aggregated_api_is_served_with_the_callers_name(pair: State) -> None:
    net = pair.require().net
    with AggregatedApi(pair, address=f"{net}.0.1") as served:
        apply(pair, *served.objects())
        kubectl(pair, "wait", "--for=condition=Available", f"apiservice/{served.name}", "--timeout=60s")
        assert kubectl(pair, "get", "--raw", served.path) == '{"kind": "APIResourceList", "resources": []}'
        kubectl(pair, "delete", f"apiservice/{served.name}")
    assert ("admin", "system:masters") in served.callers


def test_nodes_are_sent_what_they_lack_and_share_layers_with_the_folder_beside_the_archive(
    pair: State, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_bytes(build.PAUSE.path.read_bytes() + b"another layer than the pause image's")
    program.chmod(0o755)
    for name, lacking in (("localhost/thin:1", 3), ("localhost/thin:2", 0)):
        archive = thin_archive(tmp_path, program, name)
        got = cluster("load", "--state", pair.dir, archive)
        assert got.stdout.splitlines() == [f"{n}: imported {name} ({lacking} of 3 blobs)" for n in ("node1", "node2")]
    again = cluster("load", "--state", pair.dir, archive)
    assert again.stdout.splitlines() == [f"{n}: has localhost/thin:2 already" for n in ("node1", "node2")]
    layer = max((tmp_path / "rest").glob("blobs/sha256/*"), key=lambda path: path.stat().st_size)
    assert layer.stat().st_nlink == 3, "the folder's own name, and one in each node"
    apply(pair, pod("thin", "localhost/thin:2"))
    await_ready(pair, "thin")


def thin_archive(directory: Path, program: Path, name: str) -> Path:
    """An image that leaves all but its manifest to the folder `rest`."""
    write_archive(directory / "whole.tar", name, program, user="65535")
    with tarfile.open(directory / "whole.tar") as tar:
        if not (directory / "rest").exists():
            tar.extractall(directory / "rest", filter="data")
    image = oci.read_image(directory / "whole.tar")
    assert image
    archive = directory / "thin.tar"
    with tarfile.open(archive, "w") as tar:
        oci.add_bytes(tar, "index.json", oci.index(name, image.descriptor, rest="rest"))
        path = oci.blob_path(image.digest)
        tar.add(directory / "rest" / path, path)
    return archive


def test_down_leaves_nothing_of_nodes_with_pods_and_killed_parts(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "cluster", "--nodes", 1) as state:
        net = state.require().net
        apply(state, pod("left"))
        await_ready(state, "left")
        found = " ".join(traces(state, net))
        for kind in ("process", "link", "route", "cgroup"):
            assert kind in found, "the check must see a running cluster"
        os.kill(kubelet(state, "node1"), signal.SIGKILL)
        down = cluster("down", "--state", state.dir)
        assert (down.returncode, traces(state, net)) == (0, [])
