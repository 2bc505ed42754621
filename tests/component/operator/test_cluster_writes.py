"""Writes through the real API server: what server-side apply does, and what our adapter makes of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import Cache
from headwater_operator.adapters.clock import SystemClock
from headwater_operator.adapters.events import EventPoster
from headwater_operator.adapters.expectations import Expectations, Write
from headwater_operator.adapters.kube import KubeWriter
from headwater_operator.adapters.rest import KubeClient
from support.api_proxy import ApiProxy, plain_configuration
from support.operator_cluster import Cluster

Object = dict[str, Any]


@dataclass
class Desk:
    writer: KubeWriter
    cache: Cache
    cluster: Cluster
    client: KubeClient

    async def group(self, name: str = "g", **metadata: Any) -> Object:
        body = self.body(name) | {"spec": {"role": "standby", "revision": "r", "template": template()}}
        body["metadata"] |= metadata
        return dict(await self.writer.create(body))

    def body(self, name: str = "g") -> Object:
        return {
            "apiVersion": kinds.GROUP.api_version,
            "kind": kinds.GROUP.name,
            "metadata": {"name": name, "namespace": self.cluster.namespace},
        }

    def role(self, made: Object, role: str, **annotations: str) -> Object:
        body = self.body(made["metadata"]["name"])
        body["metadata"] |= {"uid": made["metadata"]["uid"], "annotations": annotations}
        return body | {"spec": {"role": role}}


def template() -> Object:
    return {
        "model": {"name": "m", "source": {"imagePath": "/m"}},
        "engine": {"backend": "sim", "image": "i:1"},
        "placement": {},
        "resources": {},
    }


@pytest.fixture
async def desk(cluster: Cluster) -> Desk:
    cache = Cache(lambda _key: None)
    return Desk(KubeWriter(cluster.client, cache), cache, cluster, cluster.client)


async def test_a_created_object_is_in_the_cache_before_any_watch_has_shown_it(desk: Desk) -> None:
    made = await desk.group()
    cached = desk.cache.get("ReplicaGroup", desk.cluster.namespace, "g")
    assert cached is not None
    assert cached["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_name_that_is_taken_is_refused_and_the_object_left_alone(desk: Desk) -> None:
    made = await desk.group()
    with pytest.raises(errors.AlreadyExists):
        await desk.group()
    now = await desk.cluster.get(kinds.GROUP, "g")
    assert now is not None
    assert now["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_role_change_leaves_the_template_and_drops_annotations_that_are_no_longer_given(desk: Desk) -> None:
    made = await desk.group(annotations={"headwater.dev/role-reason": "A", "theirs": "kept"})
    await desk.writer.apply(
        desk.role(made, "draining", **{"headwater.dev/role-reason": "B", "headwater.dev/draining-since": "t"})
    )
    got = await desk.writer.apply(desk.role(made, "active", **{"headwater.dev/role-reason": "C"}))
    assert got["spec"]["role"] == "active"
    assert got["spec"]["template"]["engine"]["image"] == "i:1"
    assert got["metadata"]["annotations"] == {"headwater.dev/role-reason": "C", "theirs": "kept"}


async def test_an_apply_never_brings_a_deleted_object_back(desk: Desk) -> None:
    made = await desk.group()
    await desk.cluster.delete(kinds.GROUP, "g")
    with pytest.raises(errors.Stale):
        await desk.writer.apply(desk.role(made, "active"))
    assert await desk.cluster.get(kinds.GROUP, "g") is None


async def test_an_apply_never_reaches_a_successor_of_the_same_name(desk: Desk) -> None:
    first = await desk.group()
    await desk.cluster.delete(kinds.GROUP, "g")
    await desk.group()
    with pytest.raises(errors.Stale):
        await desk.writer.apply(desk.role(first, "active"))
    now = await desk.cluster.get(kinds.GROUP, "g")
    assert now is not None
    assert now["spec"]["role"] == "standby"


async def test_an_apply_without_uid_is_a_fault_of_ours(desk: Desk) -> None:
    with pytest.raises(ValueError, match="without its uid"):
        await desk.writer.apply(desk.body())


async def test_an_apply_that_changes_nothing_makes_no_new_version(desk: Desk) -> None:
    made = await desk.group()
    one = await desk.writer.apply(desk.role(made, "active", a="1"))
    two = await desk.writer.apply(desk.role(made, "active", a="1"))
    assert one["metadata"]["resourceVersion"] == two["metadata"]["resourceVersion"]


async def test_status_is_applied_by_a_manager_of_its_own_and_does_not_touch_spec(desk: Desk) -> None:
    made = await desk.group()
    body = desk.body()
    body["metadata"]["uid"] = made["metadata"]["uid"]
    got = await desk.writer.apply(body | {"status": {"phase": "Warm"}}, subresource="status")
    assert got["status"] == {"phase": "Warm"}
    assert got["spec"]["role"] == "standby"
    managers = {(entry["manager"], entry.get("subresource")) for entry in got["metadata"]["managedFields"]}
    assert ("headwater-status", "status") in managers


async def test_an_unknown_field_is_refused_for_good_and_not_retried_as_an_outage(desk: Desk) -> None:
    made = await desk.group()
    body = desk.role(made, "active")
    body["spec"]["nonsense"] = 1
    with pytest.raises(errors.Refused):
        await desk.writer.apply(body)


async def test_a_deletion_takes_only_the_object_of_the_given_uid_and_is_no_error_when_it_is_gone(desk: Desk) -> None:
    first = await desk.group()
    await desk.cluster.delete(kinds.GROUP, "g")
    second = await desk.group()
    ns = desk.cluster.namespace
    await desk.writer.delete("ReplicaGroup", ns, "g", uid=first["metadata"]["uid"])
    now = await desk.cluster.get(kinds.GROUP, "g")
    assert now is not None
    assert now["metadata"]["uid"] == second["metadata"]["uid"]
    await desk.writer.delete("ReplicaGroup", ns, "g", uid=second["metadata"]["uid"])
    assert await desk.cluster.get(kinds.GROUP, "g") is None
    assert desk.cache.get("ReplicaGroup", ns, "g") is None
    await desk.writer.delete("ReplicaGroup", ns, "g", uid=second["metadata"]["uid"])


async def test_a_write_whose_answer_is_lost_is_of_unknown_outcome_and_a_look_settles_it(
    desk: Desk, proxy: ApiProxy
) -> None:
    proxy.lose_answer = lambda _number, _what: True
    client = await asyncio.to_thread(KubeClient, plain_configuration(proxy))
    try:
        lossy = Desk(KubeWriter(client, desk.cache), desk.cache, desk.cluster, client)
        expectations: Expectations[str] = Expectations()
        write = Write("ReplicaGroup", desk.cluster.namespace, "g", creates=True)
        with pytest.raises(errors.OutcomeUnknown), expectations.writing("p", write):
            await lossy.group()
        assert expectations.open("p") == [write]
        assert desk.cache.get("ReplicaGroup", desk.cluster.namespace, "g") is None
        assert await lossy.writer.refresh(write.kind, write.namespace, write.name) is not None
        assert desk.cache.get("ReplicaGroup", desk.cluster.namespace, "g") is not None
    finally:
        await client.close()


async def test_an_api_server_that_cannot_be_connected_to_has_done_nothing(desk: Desk, proxy: ApiProxy) -> None:
    configuration = plain_configuration(proxy)
    configuration.host = "http://127.0.0.1:1"
    client = await asyncio.to_thread(KubeClient, configuration)
    try:
        with pytest.raises(errors.Failed) as caught:
            await Desk(KubeWriter(client, desk.cache), desk.cache, desk.cluster, client).group()
        assert not isinstance(caught.value, errors.OutcomeUnknown)
    finally:
        await client.close()


async def test_the_same_event_is_written_once_and_another_beside_it(desk: Desk) -> None:
    pool = await desk.cluster.create_pool()
    events = EventPoster(desk.client, SystemClock(), instance="op")
    for _ in range(5):
        await events.emit(pool, "Promoted", "g takes traffic", warning=False)
    await events.emit(pool, "Promoted", "h takes traffic", warning=False)
    got = await desk.cluster.events("Promoted")
    assert sorted(event["message"] for event in got) == ["g takes traffic", "h takes traffic"]
    assert {event["involvedObject"]["uid"] for event in got} == {pool["metadata"]["uid"]}


async def test_an_event_that_cannot_be_written_harms_nobody(desk: Desk) -> None:
    pool = await desk.cluster.create_pool()
    elsewhere = pool | {"metadata": pool["metadata"] | {"namespace": "no-such-namespace"}}
    await EventPoster(desk.client, SystemClock(), instance="op").emit(elsewhere, "Promoted", "x", warning=False)
    assert await desk.cluster.events("Promoted") == []
