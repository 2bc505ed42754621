"""The informer on a network that misbehaves, before a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from headwater_operator.adapters import kinds
from headwater_operator.adapters.clock import SystemClock
from headwater_operator.adapters.informer import Informer, WatchTimings
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.adapters.store import Store
from headwater_operator.ports import Object
from support.api_proxy import ApiProxy, plain_configuration
from support.operator_cluster import Cluster, until

QUICK = WatchTimings(silence_seconds=1.5, first_backoff_seconds=0.01, last_backoff_seconds=0.1, page_size=2)


@dataclass
class Seen:
    informer: Informer
    store: Store
    events: list[tuple[str, str]]

    def names(self) -> set[str]:
        return {item["metadata"]["name"] for item in self.store.all()}

    async def until_names(self, *want: str) -> None:
        async def check() -> bool:
            return self.names() == set(want)

        await until(check, f"the store holds {want}")


@asynccontextmanager
async def informer_through(proxy: ApiProxy, cluster: Cluster, timings: WatchTimings = QUICK) -> AsyncIterator[Seen]:
    events: list[tuple[str, str]] = []

    def changed(new: Object | None, old: Object | None) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        events.append((kind, (new or old or {})["metadata"]["name"]))

    store = Store(changed)
    client = await asyncio.to_thread(KubeClient, plain_configuration(proxy))
    informer = Informer(client, kinds.REVISION, store, SystemClock(), namespace=cluster.namespace, timings=timings)
    task = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.synced.wait(), 30)
        yield Seen(informer, store, events)
    finally:
        task.cancel()
        await asyncio.wait({task})
        await client.close()


async def make(cluster: Cluster, *names: str) -> None:
    for name in names:
        await cluster.create(kinds.REVISION, {"metadata": {"name": name}, "revision": 1, "data": {"x": 1}})


async def test_a_list_of_several_pages_and_the_changes_after_it_are_all_seen(proxy: ApiProxy, cluster: Cluster) -> None:
    await make(cluster, "a", "b", "c", "d", "e")
    async with informer_through(proxy, cluster) as seen:
        assert seen.names() == {"a", "b", "c", "d", "e"}
        await make(cluster, "f")
        await cluster.delete(kinds.REVISION, "a")
        await seen.until_names("b", "c", "d", "e", "f")


async def test_a_dropped_connection_is_taken_up_where_it_was_without_a_new_list(
    proxy: ApiProxy, cluster: Cluster
) -> None:
    async with informer_through(proxy, cluster) as seen:
        await make(cluster, "a")
        await seen.until_names("a")
        for name in ("b", "c", "d"):
            proxy.cut_streams()
            await make(cluster, name)
        await seen.until_names("a", "b", "c", "d")
        assert seen.informer.lists == 1
        assert sorted(seen.events) == [("added", name) for name in "abcd"]


async def test_a_deletion_in_the_gap_before_a_new_list_is_made_up(proxy: ApiProxy, cluster: Cluster) -> None:
    await make(cluster, "a", "b", "c")
    async with informer_through(proxy, cluster) as seen:
        proxy.refuse_all = True
        proxy.cut_streams()
        await cluster.delete(kinds.REVISION, "b")
        proxy.refuse_watches = 1
        proxy.refuse_all = False
        await seen.until_names("a", "c")
        assert seen.informer.lists == 2
        assert seen.events.count(("deleted", "b")) == 1


async def test_a_black_holed_watch_is_noticed_and_taken_up(proxy: ApiProxy, cluster: Cluster) -> None:
    await make(cluster, "a")
    async with informer_through(proxy, cluster) as seen:
        proxy.silent = True
        await make(cluster, "b")
        await cluster.delete(kinds.REVISION, "a")

        async def noticed() -> bool:
            return seen.informer.error is not None

        await until(noticed, "the silence is noticed")
        proxy.silent = False
        await seen.until_names("b")
        assert seen.informer.lists == 1


async def test_silence_within_the_limit_is_no_fault(proxy: ApiProxy, cluster: Cluster) -> None:
    timings = WatchTimings(silence_seconds=120.0)
    async with informer_through(proxy, cluster, timings) as seen:
        await make(cluster, "a")
        await seen.until_names("a")
        await make(cluster, "b")
        await seen.until_names("a", "b")
        assert seen.informer.error is None
        assert (proxy.watches, seen.informer.lists) == (1, 1)


async def test_an_api_server_out_of_reach_is_found_again_and_the_age_grows_meanwhile(
    proxy: ApiProxy, cluster: Cluster
) -> None:
    async with informer_through(proxy, cluster) as seen:
        proxy.refuse_all = True
        proxy.cut_streams()

        async def old() -> bool:
            return seen.informer.age_seconds() > 1.0 and seen.informer.error is not None

        await until(old, "the age of the last data is over a second")
        await make(cluster, "a")
        proxy.refuse_all = False
        await seen.until_names("a")
        assert seen.informer.age_seconds() < 30


@pytest.mark.parametrize("times", [1, 3])
async def test_an_expired_version_leads_to_a_new_list_each_time(proxy: ApiProxy, cluster: Cluster, times: int) -> None:
    await make(cluster, "a")
    async with informer_through(proxy, cluster) as seen:
        proxy.refuse_watches = times
        proxy.cut_streams()
        await make(cluster, "b")
        await seen.until_names("a", "b")

        async def listed() -> bool:
            return seen.informer.lists == 1 + times

        await until(listed, f"{times} new lists")
