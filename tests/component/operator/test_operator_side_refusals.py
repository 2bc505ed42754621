"""What only the operator, or the cluster's policy, can refuse: said in conditions, without a loop."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from headwater_operator.adapters import kinds
from headwater_operator.adapters.kinds import Kind
from support.api_proxy import ApiProxy, plain_configuration
from support.fake_kubelet import FakeKubelet
from support.operator_cluster import Cluster, until
from support.operator_runs import RunOperator, reconciled

QUOTA = Kind("ResourceQuota", "", "v1", "resourcequotas")


@pytest.mark.parametrize(
    ("engine", "reason", "names"),
    [
        ({"image": "evil.example/miner:1"}, "ImageNotAllowed", ["evil.example/miner:1", "spec.engine.image"]),
        ({"extraArgs": {"seed": "1"}}, "EngineArgumentNotAllowed", ["seed", "spec.engine.extraArgs"]),
    ],
)
async def test_a_spec_that_the_installation_does_not_allow_is_stalled_with_the_remedy_and_not_tried_again(
    cluster: Cluster,
    run_operator: RunOperator,
    proxy: ApiProxy,
    engine: dict[str, Any],
    reason: str,
    names: list[str],
) -> None:
    async with run_operator(plain_configuration(proxy)) as operator:
        await cluster.create_pool(engine={"backend": "sim", "tensorParallelSize": 8} | engine)
        got = await cluster.until_condition("Stalled", "True", reason=reason)
        assert all(name in got["message"] for name in names), got["message"]
        assert (await cluster.until_condition("Reconciling", "False"))["status"] == "False"
        await reconciled(operator, cluster, 2)
        before = len(proxy.writes)
        await reconciled(operator, cluster, 20)
        assert proxy.writes[before:] == []
        assert await cluster.groups() == []


async def test_a_mended_spec_is_taken_up_at_once(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await cluster.create_pool(engine={"backend": "sim", "image": "evil.example/miner:1"}, replicas=1)
        await cluster.until_condition("Stalled", "True")
        await cluster.patch(kinds.POOL, "p", {"spec": {"engine": {"image": None}}})
        await cluster.until_condition("Ready", "True")
        await cluster.until_condition("Stalled", "False")


async def test_a_foreign_service_of_the_pools_name_is_never_taken_over(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    spec = {"selector": {"app": "theirs"}, "ports": [{"port": 1234}]}
    theirs = await cluster.create(kinds.SERVICE, {"metadata": {"name": "p"}, "spec": spec})
    async with run_operator(engine_admin_port=kubelet.port) as operator:
        await cluster.create_pool(replicas=1, warmPool={"size": 0})
        got = await cluster.until_condition("Stalled", "True", reason="NameConflict")
        assert "Service" in got["message"]
        await reconciled(operator, cluster, 10)
        now = await cluster.get(kinds.SERVICE, "p")
        assert now is not None
        assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
        await cluster.delete(kinds.SERVICE, "p")
        await cluster.until_condition("Ready", "True")


async def test_a_foreign_revision_of_the_pools_name_is_never_taken_over_and_does_not_make_a_loop(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator, proxy: ApiProxy
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await cluster.create_pool(replicas=1, warmPool={"size": 0})
        await cluster.until_condition("Ready", "True")
        name = (await cluster.all(kinds.REVISION))[0]["metadata"]["name"]
        await cluster.delete(kinds.POOL, "p")

        async def gone() -> bool:
            return not await cluster.all(kinds.REVISION)

        await until(gone, "the first pool's revision is gone")
    theirs = await cluster.create(kinds.REVISION, {"metadata": {"name": name}, "revision": 7, "data": {"mine": 1}})
    async with run_operator(plain_configuration(proxy), engine_admin_port=kubelet.port) as operator:
        await cluster.create_pool(replicas=1, warmPool={"size": 0})
        await cluster.until_condition("Stalled", "True", reason="NameConflict")
        await reconciled(operator, cluster, 3)
        before = len(proxy.writes)
        await reconciled(operator, cluster, 10)
        assert proxy.writes[before:] == []
        now = await cluster.get(kinds.REVISION, name)
        assert now is not None
        assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
        await cluster.delete(kinds.REVISION, name)
        operator.wake((cluster.namespace, "p"))
        await cluster.until_condition("Ready", "True")


async def test_a_pod_that_a_quota_refuses_is_named_with_the_servers_words_and_comes_when_there_is_room(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator, proxy: ApiProxy
) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    await cluster.create(QUOTA, quota)

    async def counted() -> bool:
        found = await cluster.get(QUOTA, "q")
        return found is not None and "pods" in (found.get("status") or {}).get("used", {})

    await until(counted, "the quota is in force")
    async with run_operator(plain_configuration(proxy), engine_admin_port=kubelet.port) as operator:
        await cluster.create_pool(replicas=2, warmPool={"size": 0})
        got = await cluster.until_condition("Ready", "False", reason="PodRefused")
        assert "exceeded quota: q" in got["message"]
        events = await until(lambda: cluster.events("PodRefused"), "a warning that says why")
        assert "exceeded quota: q" in events[0]["message"]
        await cluster.until_counts(active=1, standby=1)
        before = len(proxy.writes)
        await reconciled(operator, cluster, 20)
        pod_creates = [write for write in proxy.writes[before:] if write.endswith("/pods")]
        assert len(pod_creates) <= 4, "a refused pod was asked for again and again"
        await cluster.patch(QUOTA, "q", {"spec": {"hard": {"pods": "10"}}})
        await cluster.until_condition("Ready", "True")


async def test_a_group_that_a_quota_refuses_makes_no_loop_and_comes_when_there_is_room(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator, proxy: ApiProxy
) -> None:
    count = "count/replicagroups.headwater.dev"
    await cluster.create(QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": {count: "1"}}})
    changes = itertools.count(1)

    async def counted() -> bool:
        # A quota made before its controller knows the kind is counted when it changes, and not by itself. Without a
        # count of what there is, the server refuses everything: "status unknown for quota".
        await cluster.patch(QUOTA, "q", {"spec": {"hard": {"count/secrets": str(1000 + next(changes))}}})
        await asyncio.sleep(0.5)
        found = await cluster.get(QUOTA, "q")
        return found is not None and count in (found.get("status") or {}).get("used", {})

    await until(counted, "the quota is in force", seconds=180.0)
    async with run_operator(plain_configuration(proxy), engine_admin_port=kubelet.port) as operator:
        await cluster.create_pool(replicas=2, warmPool={"size": 0})
        await cluster.until_counts(active=1)
        got = await cluster.until_condition("Ready", "False", reason="GroupRefused")
        assert "exceeded quota: q" in got["message"]
        events = await until(lambda: cluster.events("GroupRefused"), "a warning that says why")
        assert "exceeded quota: q" in events[0]["message"]
        await reconciled(operator, cluster, 3)
        before = len(proxy.writes)
        await reconciled(operator, cluster, 20)
        assert len(proxy.writes) - before <= 4, proxy.writes[before:]
        await cluster.patch(QUOTA, "q", {"spec": {"hard": {count: "10"}}})
        await cluster.until_condition("Ready", "True")
