"""The full demo with a real model, and what lost clients do to real vLLM in a real pod."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from e2e.conftest import Demo, cluster_down, run_demo
from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import SYSTEM_NAMESPACE, service_url, wait_counts, wait_ready
from e2e.kit.streams import Stream, wait_all
from e2e.kit.wait import wait_until
from headwater_contracts.labels import LABEL_POOL

STREAMS, KILLED = 16, 8
GONE_WITHIN_SECONDS = 1.0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """``make demo`` with vLLM on CPU and the quickstart model."""
    state = tmp_path_factory.mktemp("vllm-cluster")
    try:
        yield run_demo("vllm", state, nodes=1)
    finally:
        cluster_down(state)


@pytest.mark.vllm
@pytest.mark.timeout(3600)
def test_demo_streams_the_answer_of_a_real_model_and_prints_its_timing(demo: Demo) -> None:
    assert "Paris" in demo.output
    assert re.search(r"TTFT\s+[\d.]+ ?m?s", demo.output)
    assert re.search(r"ITL\b.*[\d.]+ ?ms", demo.output)


@pytest.mark.vllm
@pytest.mark.timeout(900)
def test_streams_of_lost_clients_leave_vllm_and_the_others_finish_byte_exact(demo: Demo) -> None:
    (pool,) = demo.site.kubectl.list("ipool", "-A")
    kubectl = demo.site.kubectl.in_namespace(pool["metadata"]["namespace"])
    roll_to_exact_arithmetic(kubectl, pool["metadata"]["name"])
    url = service_url(kubectl, pool["metadata"]["name"])
    (pod,) = kubectl.list("pods")
    metrics = f"http://{pod['status']['podIP']}:8001/metrics"
    model = pool["spec"]["model"]["name"]

    def body(i: int) -> dict[str, Any]:
        prompt = f"Count from {i} upwards, one number a line:"
        return {"model": model, "prompt": prompt, "max_tokens": 100, "temperature": 0, "ignore_eos": True}

    path = "/v1/completions"
    survivors = range(KILLED, STREAMS)
    solo = [httpx.post(f"{url}{path}", json=body(i), timeout=120).json()["choices"][0]["text"] for i in survivors]

    streams = [Stream(url, body(i), path=path) for i in range(STREAMS)]
    wait_until(lambda: running(metrics) == STREAMS, timeout=60, what=f"{STREAMS} running requests")
    for stream in streams[:KILLED]:
        stream.kill()
    for stream in streams[:KILLED]:
        assert stream.record.done.wait(30)
    wait_until(lambda: running(metrics) <= STREAMS - KILLED, timeout=GONE_WITHIN_SECONDS, interval=0.05, what="aborts")
    assert running(metrics) == STREAMS - KILLED, "none of the others ended yet"
    records = wait_all(streams[KILLED:], timeout=180)

    assert [record.error for record in records] == [None] * len(records)
    assert [record.text for record in records] == solo
    wait_until(lambda: running(metrics) == 0, timeout=30, what="an empty engine")


def roll_to_exact_arithmetic(kubectl: Kubectl, pool: str) -> None:
    """Replaces the demo's group by one in float32: in bf16 the greedy text changes with the batch."""
    # A smaller request than the demo's: for a while both groups stand on a node of two cores.
    change = {"spec": {"engine": {"extraArgs": {"dtype": "float32"}}, "resources": {"cpu": "500m"}}}
    kubectl.run("patch", "ipool", pool, "--type=merge", "-p", json.dumps(change))
    wait_ready(kubectl, pool, timeout=600)
    wait_counts(kubectl, pool, active=1, standby=0, timeout=300)
    wait_until(lambda: len(kubectl.list("pods")) == 1, timeout=120, what="the new group's pod alone")


def running(metrics: str) -> int:
    """Requests that vLLM's scheduler runs or holds waiting, by its own metrics."""
    found = re.findall(
        r"^vllm:num_requests_(?:running|waiting)(?:\{[^}]*\})? ([\d.e+]+)$",
        httpx.get(metrics, timeout=10).text,
        re.MULTILINE,
    )
    assert len(found) == 2
    return int(sum(float(value) for value in found))


@pytest.mark.vllm
@pytest.mark.timeout(900)
def test_uninstall_leaves_nothing_but_the_crds(demo: Demo) -> None:
    from e2e.kit.install import uninstall

    admin = demo.site.kubectl
    (pool,) = admin.list("ipool", "-A")
    kubectl = admin.in_namespace(pool["metadata"]["namespace"])
    of_pool = (
        "rgroup,pods,services,controllerrevisions,endpointslices",
        "-l",
        f"{LABEL_POOL}={pool['metadata']['name']}",
    )
    assert kubectl.list(*of_pool), "the selector finds what the pool has"
    kubectl.run("delete", "ipool", pool["metadata"]["name"])
    uninstall(demo.site.state / "kubeconfig")
    wait_until(lambda: not kubectl.list(*of_pool), timeout=120, what="end of the pool's objects")
    kinds = "deployments,pods,services,serviceaccounts,secrets,roles,rolebindings,leases,configmaps"
    wait_until(lambda: not admin.in_namespace(SYSTEM_NAMESPACE).list("pods"), timeout=120, what="no operator pod")
    left = {(o["kind"], o["metadata"]["name"]) for o in admin.in_namespace(SYSTEM_NAMESPACE).list(kinds)}
    assert left == {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}
    cluster_wide = admin.list("clusterroles,clusterrolebindings,crds")
    ours = {f"{o['kind']}/{o['metadata']['name']}" for o in cluster_wide if "headwater" in o["metadata"]["name"]}
    assert ours == {
        "CustomResourceDefinition/inferencepools.headwater.dev",
        "CustomResourceDefinition/replicagroups.headwater.dev",
    }
