"""kill -9 of the real operator process at every write of a scenario: it converges, without orphan or double group."""

from __future__ import annotations

from pathlib import Path

from headwater_operator.adapters import kinds
from support.api_proxy import ApiProxy
from support.fake_kubelet import FakeKubelet
from support.operator_cluster import Cluster, until
from support.operator_runs import operator_process, plain_kubeconfig


async def _converged(cluster: Cluster, active: int, standby: int) -> None:
    await cluster.until_counts(active=active, standby=standby)
    await cluster.until_condition("Ready", "True")
    await cluster.until_condition("Reconciling", "False")


async def _no_orphan(cluster: Cluster) -> None:
    """Every pod belongs to a group that exists, every group has exactly one pod, and no more was ever made."""
    groups = {group["metadata"]["uid"] for group in await cluster.groups()}

    async def matched() -> bool:
        pods = await cluster.all(kinds.POD)
        return sorted(pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods) == sorted(groups)

    await until(matched, "one pod a group and no other")


async def test_killed_right_after_each_kind_of_write_of_a_pools_creation_it_makes_no_group_twice(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    """Killed when the API server has done a write and the operator does not know it yet: the worst moment."""
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    created: list[str] = []
    killed: list[str] = []
    async with operator_process(cluster, kubeconfig, tmp_path, engine_admin_port=kubelet.port) as operator:
        await operator.until_ready()

        def kill(_number: int, what: str) -> None:
            if what.startswith("POST") and what.endswith("/replicagroups"):
                created.append(what)
            # Twice for group creates: the second group must not be made twice either.
            often = 2 if what.endswith("/replicagroups") else 1
            if operator.alive and killed.count(what) < often and not what.endswith("/events"):
                killed.append(what)
                operator.kill()

        proxy.after_write = kill
        await cluster.create_pool(replicas=1, warmPool={"size": 1})

        async def done() -> bool:
            if not operator.alive:
                await operator.wait()
                await operator.start()
            counts = [len(await cluster.groups(role)) for role in ("active", "standby")]
            condition = await cluster.condition("Ready")
            return counts == [1, 1] and condition is not None and condition["status"] == "True" and operator.alive

        await until(done, f"convergence; killed at {killed}", 180)
        await _converged(cluster, 1, 1)
        await _no_orphan(cluster)
    kinds_of_writes = {what.rpartition("/")[2] if what.startswith("POST") else what.split()[0] for what in killed}
    assert {"controllerrevisions", "services", "replicagroups", "pods", "PATCH"} <= kinds_of_writes, killed
    assert len(created) == 2, f"{len(created)} groups were made for 2: {created}"


async def test_killed_between_quarantine_and_promotion_the_next_one_promotes(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    async with operator_process(cluster, kubeconfig, tmp_path, engine_admin_port=kubelet.port) as operator:
        await operator.until_ready()
        await cluster.create_pool(replicas=1, warmPool={"size": 1})
        await _converged(cluster, 1, 1)
        victim = (await cluster.groups("active"))[0]["metadata"]["name"]
        warm = (await cluster.groups("standby"))[0]["metadata"]["name"]

        def kill(_number: int, what: str) -> None:
            if what.endswith(f"/replicagroups/{victim}") and what.startswith("PATCH"):
                operator.kill()

        proxy.after_write = kill
        await kubelet.kill(f"{victim}-0")

        async def dead() -> bool:
            return not operator.alive

        await until(dead, "the operator was killed right after the quarantine")
        proxy.after_write = lambda _number, _what: None
        roles = {group["metadata"]["name"]: group["spec"]["role"] for group in await cluster.groups()}
        assert roles == {victim: "quarantined", warm: "standby"}
        await operator.wait()
        await operator.start()

        async def promoted() -> bool:
            found = await cluster.get(kinds.GROUP, warm)
            return found is not None and found["spec"]["role"] == "active"

        await until(promoted, "the warm group is active")

        async def refilled() -> bool:
            return [len(await cluster.groups(role)) for role in ("active", "standby")] == [1, 1]

        await until(refilled, "the warm pool is refilled")


async def test_a_pool_deleted_while_no_operator_runs_leaves_nothing_behind_and_nothing_comes_back(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    async with operator_process(cluster, kubeconfig, tmp_path, engine_admin_port=kubelet.port) as operator:
        await operator.until_ready()
        await cluster.create_pool(replicas=1, warmPool={"size": 1})
        await _converged(cluster, 1, 1)
        operator.kill()
        await operator.wait()
        await cluster.delete(kinds.POOL, "p")

        async def nothing() -> bool:
            return not [item for kind in (kinds.GROUP, kinds.POD, kinds.SERVICE) for item in await cluster.all(kind)]

        await until(nothing, "everything is gone without an operator")
        await operator.start()
        await operator.until_ready()
        assert await cluster.groups() == []


async def test_a_lost_answer_to_the_create_of_a_group_does_not_make_a_second_one(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    made: list[str] = []

    def lose(_number: int, what: str) -> bool:
        if what.startswith("POST") and what.endswith("/replicagroups"):
            made.append(what)
            return len(made) == 1
        return False

    proxy.lose_answer = lose
    async with operator_process(cluster, kubeconfig, tmp_path, engine_admin_port=kubelet.port) as operator:
        await operator.until_ready()
        await cluster.create_pool(replicas=2, warmPool={"size": 0})
        await _converged(cluster, 2, 0)
        assert len(made) == 2
        assert await cluster.groups("draining") == []
