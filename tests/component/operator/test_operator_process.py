"""The operator as a process: ports, probes, signals, what it leaves on objects."""

from __future__ import annotations

import json
from pathlib import Path

from headwater_operator.adapters import kinds
from support.api_proxy import ApiProxy
from support.fake_kubelet import FakeKubelet
from support.operator_cluster import Cluster, until
from support.operator_runs import RunOperator, operator_process, plain_kubeconfig


async def test_a_running_operator_answers_on_its_ports_and_leaves_no_mark_on_a_pool(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    async with operator_process(cluster, kubeconfig, tmp_path, engine_admin_port=kubelet.port) as operator:
        await operator.until_ready()
        await cluster.create_pool(replicas=1, warmPool={"size": 1})
        await cluster.until_condition("Ready", "True")
        pool = await cluster.get(kinds.POOL, "p")
        assert pool is not None
        assert "finalizers" not in pool["metadata"]
        assert "annotations" not in pool["metadata"]
        assert {entry["manager"] for entry in pool["metadata"]["managedFields"]} <= {
            "headwater-operator",
            "headwater-status",
        }
        assert (await operator.get(operator.probe_port, "/healthz"))[0] == 200
        status, text = await operator.get(operator.metrics_port, "/metrics")
        assert status == 200
        groups = f'headwater_groups{{namespace="{cluster.namespace}",phase="Serving",pool="p",role="active"}} 1.0'
        assert groups in text
        assert 'headwater_reconcile_duration_seconds_count{result="ok"}' in text
        assert 'headwater_api_calls_total{code="201",resource="replicagroups",verb="create"} 2.0' in text
        assert await operator.terminate() == 0
        lease = await cluster.get(kinds.LEASE, "headwater-operator")
        assert lease is not None
        assert lease["spec"].get("holderIdentity", "") == ""
        lines = [json.loads(line) for line in operator.log.read_text().splitlines()]
        created = [line for line in lines if line.get("action") == "CreateGroup"]
        assert {(line["pool"], line["namespace"], line["reason"]) for line in created} == {
            ("p", cluster.namespace, "FixedReplicas")
        }
        assert all(line["group"].startswith("p-") for line in created)
        told_at_info = {line["logger"] for line in lines if line["level"] == "info"}
        assert not {name for name in told_at_info if not name.startswith("headwater_operator.")}


async def test_a_second_operator_waits_and_takes_over_when_the_first_is_told_to_stop(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    (tmp_path / "second").mkdir()
    async with (
        operator_process(cluster, kubeconfig, tmp_path, engine_admin_port=kubelet.port) as first,
        operator_process(cluster, kubeconfig, tmp_path / "second", pod_name="operator-2", pod_uid="2") as second,
    ):

        async def one_is_ready() -> bool:
            return 200 in [(await each.get(each.metrics_port, "/readyz"))[0] for each in (first, second)]

        await until(one_is_ready, "one of the two is ready")
        answers = [await each.get(each.metrics_port, "/readyz") for each in (first, second)]
        leader, other = (first, second) if answers[0][0] == 200 else (second, first)
        status, _ = await other.get(other.metrics_port, "/readyz")
        assert status in (0, 503)
        assert await leader.terminate() == 0
        await other.until_ready()


async def test_with_no_namespace_named_pools_of_all_are_served(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port, namespaces=()):
        await cluster.create_pool(replicas=1, warmPool={"size": 0})
        await cluster.until_condition("Ready", "True")


async def test_of_several_namespaces_only_those_named_are_served(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port, namespaces=("default", cluster.namespace)):
        elsewhere = Cluster(cluster.client, cluster.configuration, "kube-public")
        await elsewhere.create_pool(name="other", replicas=1)
        await cluster.create_pool(replicas=1, warmPool={"size": 0})
        await cluster.until_condition("Ready", "True")
        other = await elsewhere.get(kinds.POOL, "other")
        await elsewhere.delete(kinds.POOL, "other")
        assert other is not None
        assert "status" not in other
        assert await elsewhere.groups() == []


async def test_an_operator_whose_lease_is_stolen_ends_with_an_error(
    cluster: Cluster, proxy: ApiProxy, tmp_path: Path
) -> None:
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    async with operator_process(cluster, kubeconfig, tmp_path) as operator:
        await operator.until_ready()
        await cluster.patch(kinds.LEASE, "headwater-operator", {"spec": {"holderIdentity": "thief"}})
        assert await operator.wait() == 1
        assert "held by thief" in operator.tail()


async def test_without_a_way_to_the_api_server_the_start_says_so(cluster: Cluster, tmp_path: Path) -> None:
    async with operator_process(cluster, tmp_path / "no-such-file", tmp_path) as operator:
        assert await operator.wait() == 2
        assert "no way to reach a Kubernetes API" in operator.tail()
