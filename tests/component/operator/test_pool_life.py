"""A pool from its creation to its end, over a real API server."""

from __future__ import annotations

from typing import Any

from headwater_operator.adapters import kinds
from support.fake_kubelet import FakeKubelet
from support.operator_cluster import Cluster, Object, until
from support.operator_runs import RunOperator, reconciled


async def a_running_pool(cluster: Cluster, **spec: Any) -> None:
    await cluster.create_pool(**spec)
    await cluster.until_condition("Ready", "True")
    await cluster.until_condition("WarmPoolReady", "True")


async def test_an_applied_pool_serves_with_a_warm_group_beside_it(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=2, warmPool={"size": 1})
        await cluster.until_counts(active=2, standby=1)
        pool = await cluster.get(kinds.POOL, "p")
        assert pool is not None
        assert pool["status"]["summary"]["active"] == "2/2"
        assert pool["status"]["summary"]["warm"] == "1/1"
        assert pool["status"]["replicas"] == 2
        want = {f"{group['metadata']['name']}-0" for group in await cluster.groups("active")}

        async def routed() -> bool:
            slices = await cluster.all(kinds.ENDPOINT_SLICE, "kubernetes.io/service-name=p")
            ready = [end for item in slices for end in item["endpoints"] or () if end["conditions"]["ready"]]
            return {end["targetRef"]["name"] for end in ready} == want

        await until(routed, "the Service leads to the active groups and to them alone")
        assert sum(engine.refused_tokens for engine in kubelet.engines.values()) == 0


async def test_a_pool_is_not_ready_while_its_engines_load(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    kubelet.loading = True
    async with run_operator(engine_admin_port=kubelet.port):
        await cluster.create_pool(replicas=1, warmPool={"size": 0})
        await cluster.until_condition("Ready", "False")
        await until(lambda: _phase(cluster, "Loading"), "a group that loads")
        condition = await cluster.condition("Ready")
        assert condition is not None
        assert condition["status"] == "False"
        await kubelet.finish_loading()
        await cluster.until_condition("Ready", "True")


async def _phase(cluster: Cluster, phase: str) -> bool:
    return any((group.get("status") or {}).get("phase") == phase for group in await cluster.groups())


async def test_a_killed_active_group_is_replaced_by_the_warm_one_and_the_warm_pool_refilled(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=2, warmPool={"size": 1}, failure={"retainFailed": "1h"})
        victim = (await cluster.groups("active"))[0]["metadata"]["name"]
        warm = (await cluster.groups("standby"))[0]["metadata"]["name"]
        await kubelet.kill(f"{victim}-0")

        async def promoted() -> bool:
            pod = await cluster.get(kinds.POD, f"{warm}-0")
            return pod is not None and pod["metadata"]["labels"]["headwater.dev/role"] == "active"

        await until(promoted, "the warm group's pod carries the active label")
        await cluster.until_counts(active=2, standby=1, quarantined=1)
        await cluster.until_condition("Ready", "True")
        dead = await cluster.get(kinds.POD, f"{victim}-0")
        assert dead is not None
        assert dead["metadata"]["labels"]["headwater.dev/role"] == "quarantined"
        events = await until(lambda: cluster.events("Replaced"), "an event that says why")
        assert victim in events[0]["message"]
        assert events[0]["involvedObject"]["kind"] == "InferencePool"


async def test_an_engine_that_calls_itself_unhealthy_is_replaced_without_its_pod_having_ended(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=1, warmPool={"size": 1}, failure={"retainFailed": "1h"})
        victim = (await cluster.groups("active"))[0]["metadata"]["name"]
        kubelet.of_group(victim).change(healthy=False, failure_reason="stalled", failure_message="no step for 15 s")
        await until(lambda: _gone(cluster, kinds.GROUP, victim), "the unhealthy group is gone")
        await cluster.until_counts(active=1, standby=1)
        events = await until(lambda: cluster.events("Replaced"), "an event that says why")
        assert "no step for 15 s" in events[0]["message"]


async def test_scaling_follows_the_scale_subresource_and_streams_on_the_victim_finish(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(
            cluster, replicas=1, warmPool={"size": 0}, drain={"timeout": "10m", "endpointSettle": "0s"}
        )
        await cluster.patch(kinds.POOL, "p", {"spec": {"replicas": 2}}, subresource="scale")
        await cluster.until_counts(active=2)
        await cluster.until_condition("Ready", "True")
        for engine in kubelet.engines.values():
            engine.change(running=3)
        await cluster.patch(kinds.POOL, "p", {"spec": {"replicas": 1}}, subresource="scale")
        await cluster.until_counts(active=1, draining=1)
        victim = (await cluster.groups("draining"))[0]
        engine = kubelet.of_group(victim["metadata"]["name"])

        async def asked_to_drain() -> bool:
            return "drain" in engine.calls

        await until(asked_to_drain, "the engine was told to drain")
        await until(lambda: _label(cluster, engine.pod, "draining"), "the victim is out of the Service")
        still = await cluster.get(kinds.GROUP, victim["metadata"]["name"])
        assert still is not None, "a group with running streams was deleted"
        engine.end_streams()
        await cluster.until_counts(active=1)
        await until(lambda: _gone(cluster, kinds.POD, engine.pod["metadata"]["name"]), "the victim's pod is gone")


async def _label(cluster: Cluster, pod: Object, role: str) -> bool:
    found = await cluster.get(kinds.POD, pod["metadata"]["name"])
    return found is not None and found["metadata"]["labels"]["headwater.dev/role"] == role


async def _gone(cluster: Cluster, kind: kinds.Kind, name: str) -> bool:
    return await cluster.get(kind, name) is None


async def test_a_deleted_pool_leaves_nothing_behind(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=2, warmPool={"size": 1})
        await cluster.delete(kinds.POOL, "p")

        async def nothing() -> bool:
            for kind in (kinds.GROUP, kinds.POD, kinds.SERVICE, kinds.REVISION, kinds.POOL):
                if await cluster.all(kind):
                    return False
            return True

        await until(nothing, "groups, pods, Service and revisions are gone")


async def test_a_pool_made_again_under_its_old_name_at_once_becomes_ready(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=1, warmPool={"size": 0})
        await cluster.delete(kinds.POOL, "p")
        again = await cluster.create_pool(replicas=1, warmPool={"size": 0})
        await cluster.until_condition("Ready", "True")
        service = await cluster.get(kinds.SERVICE, "p")
        assert service is not None
        assert service["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


async def test_a_service_that_somebody_changed_or_deleted_is_restored(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=1, warmPool={"size": 0})
        await cluster.patch(kinds.SERVICE, "p", {"spec": {"selector": {"headwater.dev/role": "standby"}}})
        await until(lambda: _selects(cluster, "active"), "the selector is as it was")
        await cluster.delete(kinds.SERVICE, "p")
        await until(lambda: _selects(cluster, "active"), "the Service is there again")


async def _selects(cluster: Cluster, role: str) -> bool:
    service = await cluster.get(kinds.SERVICE, "p")
    return service is not None and service["spec"]["selector"]["headwater.dev/role"] == role


async def test_a_group_deleted_by_hand_is_replaced(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port):
        await a_running_pool(cluster, replicas=1, warmPool={"size": 1})
        victim = (await cluster.groups("active"))[0]["metadata"]["name"]
        await cluster.delete(kinds.GROUP, victim)
        await cluster.until_counts(active=1, standby=1)
        assert victim not in {group["metadata"]["name"] for group in await cluster.groups()}


async def test_nothing_is_written_at_rest_while_engines_keep_answering(
    cluster: Cluster, kubelet: FakeKubelet, run_operator: RunOperator
) -> None:
    async with run_operator(engine_admin_port=kubelet.port) as operator:
        await a_running_pool(cluster, replicas=2, warmPool={"size": 1})
        before = await _versions(cluster)

        async def settled() -> bool:
            nonlocal before
            await reconciled(operator, cluster, 3)
            now = await _versions(cluster)
            same, before = now == before, now
            return same

        await until(settled, "objects at rest")
        for number in range(40):
            for engine in kubelet.engines.values():
                engine.change(step=100 + number, last_progress_age_seconds=number / 10)
            await reconciled(operator, cluster, 1)
        assert await _versions(cluster) == before


async def _versions(cluster: Cluster) -> dict[str, str]:
    """Resource versions of all that the operator writes; pods left out, which the kubelet writes too."""
    found = {}
    for kind in (kinds.POOL, kinds.GROUP, kinds.SERVICE, kinds.REVISION, kinds.EVENT):
        for item in await cluster.all(kind):
            found[item["metadata"]["uid"]] = item["metadata"]["resourceVersion"]
    return found
