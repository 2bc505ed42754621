"""The Lease on a real API server, in quick time."""

from __future__ import annotations

import asyncio
from copy import copy

import pytest

from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.clock import SystemClock
from headwater_operator.adapters.lease import Lease, LeaseTimings
from headwater_operator.adapters.rest import KubeClient
from support.operator_cluster import Cluster

QUICK = LeaseTimings(duration_seconds=2.0, give_up_seconds=1.3, renew_seconds=0.2, look_seconds=0.1)


def lease(cluster: Cluster, identity: str, client: KubeClient | None = None) -> Lease:
    return Lease(
        client or cluster.client,
        SystemClock(),
        namespace=cluster.namespace,
        name="operator",
        identity=identity,
        timings=QUICK,
    )


async def holder(cluster: Cluster) -> str:
    found = await cluster.get(kinds.LEASE, "operator")
    assert found is not None
    return str(found["spec"].get("holderIdentity"))


async def test_a_free_lease_is_taken_and_a_second_operator_waits_while_it_is_renewed(cluster: Cluster) -> None:
    first, second = lease(cluster, "one"), lease(cluster, "two")
    await first.acquire()
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(first.keep())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second.acquire(), 3 * QUICK.duration_seconds)
        keeping.cancel()
    assert await holder(cluster) == "one"
    assert not second.held


async def test_a_holder_that_died_is_followed_after_the_leases_duration(cluster: Cluster) -> None:
    first, second = lease(cluster, "one"), lease(cluster, "two")
    await first.acquire()
    began = SystemClock().monotonic()
    await second.acquire()
    assert SystemClock().monotonic() - began >= QUICK.duration_seconds
    assert await holder(cluster) == "two"


async def test_a_restarted_container_of_the_same_pod_continues_its_lease_at_once(cluster: Cluster) -> None:
    await lease(cluster, "pod-1_uid").acquire()
    again = lease(cluster, "pod-1_uid")
    await asyncio.wait_for(again.acquire(), QUICK.duration_seconds / 2)
    found = await cluster.get(kinds.LEASE, "operator")
    assert found is not None
    assert found["spec"]["leaseTransitions"] == 1


async def test_a_released_lease_is_free_at_once(cluster: Cluster) -> None:
    first, second = lease(cluster, "one"), lease(cluster, "two")
    await first.acquire()
    await first.release()
    assert not first.held
    await asyncio.wait_for(second.acquire(), 10)
    assert await holder(cluster) == "two"


async def test_a_holder_whose_lease_was_taken_must_end(cluster: Cluster) -> None:
    first = lease(cluster, "one")
    await first.acquire()
    await cluster.patch(kinds.LEASE, "operator", {"spec": {"holderIdentity": "thief"}})
    with pytest.raises(errors.LeaseLost, match="thief"):
        await asyncio.wait_for(first.keep(), 10)
    await first.release()
    assert await holder(cluster) == "thief"


async def test_a_holder_that_cannot_renew_tries_again_and_then_gives_up(cluster: Cluster) -> None:
    configuration = copy(cluster.configuration)
    client = await asyncio.to_thread(KubeClient, configuration)
    first = lease(cluster, "one", client)
    before = SystemClock().monotonic()
    await first.acquire()
    configuration.host = "https://127.0.0.1:1"
    try:
        with pytest.raises(errors.LeaseLost, match="renewed"):
            await asyncio.wait_for(first.keep(), 30)
        assert SystemClock().monotonic() - before >= QUICK.give_up_seconds
    finally:
        await client.close()
