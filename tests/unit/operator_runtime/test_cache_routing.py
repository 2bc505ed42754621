"""Which pool a change of an object wakes."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import Cache
from headwater_operator.adapters.kinds import Kind


class Woken(list[tuple[str, str]]):
    def __call__(self, key: tuple[str, str]) -> None:
        self.append(key)


def item(kind: Kind, name: str, version: int = 1, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": f"{kind.name}-{name}", "resourceVersion": str(version)}
    metadata |= more.pop("metadata", {})
    return {"kind": kind.name, "metadata": metadata} | more


LABELLED = {"labels": {"headwater.dev/pool": "p"}}
OWNED = {"ownerReferences": [{"controller": True, "kind": "InferencePool", "name": "p", "uid": "pu"}]}


@pytest.mark.parametrize(
    ("kind", "name", "metadata"),
    [
        (kinds.POOL, "p", {}),
        (kinds.SERVICE, "p", {}),
        (kinds.GROUP, "p-abc-x", OWNED),
        (kinds.POD, "p-abc-x-0", LABELLED),
        (kinds.REVISION, "p-abc", LABELLED),
        (kinds.ENDPOINT_SLICE, "p-xyz", LABELLED),
    ],
    ids=lambda value: value.name if isinstance(value, Kind) else "",
)
def test_each_kind_leads_to_its_pool_when_it_comes_changes_and_goes(
    kind: Kind, name: str, metadata: dict[str, Any]
) -> None:
    woken = Woken()
    cache = Cache(woken)
    cache.observe(item(kind, name, 1, metadata=metadata))
    cache.observe(item(kind, name, 2, metadata=metadata))
    cache.forget(kind.name, f"{kind.name}-{name}")
    assert woken == [("n", "p")] * 3


def test_an_object_that_changes_its_pool_wakes_both() -> None:
    woken = Woken()
    cache = Cache(woken)
    cache.observe(item(kinds.POD, "x", 1, metadata=LABELLED))
    cache.observe(item(kinds.POD, "x", 2, metadata={"labels": {"headwater.dev/pool": "q"}}))
    assert set(woken[1:]) == {("n", "p"), ("n", "q")}


def node(version: int, ready: str, beat: str) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": beat}
    metadata = {"name": "node-1", "uid": "node-uid", "resourceVersion": str(version)}
    return {"kind": "Node", "metadata": metadata, "spec": {}, "status": {"conditions": [condition]}}


def test_a_node_wakes_the_pools_that_have_pods_on_it_when_it_fails_and_not_when_it_beats() -> None:
    woken = Woken()
    cache = Cache(woken)
    cache.observe(item(kinds.POD, "here", metadata=LABELLED, spec={"nodeName": "node-1"}))
    elsewhere = {"labels": {"headwater.dev/pool": "q"}}
    cache.observe(item(kinds.POD, "there", metadata=elsewhere, spec={"nodeName": "node-2"}))
    cache.observe(node(1, "True", "one"))
    woken.clear()
    cache.observe(node(2, "True", "two"))
    assert woken == []
    cache.observe(node(3, "Unknown", "two"))
    assert woken == [("n", "p")]


def test_kinds_that_are_not_watched_are_ignored_when_a_write_returns_them() -> None:
    woken = Woken()
    Cache(woken).observe(item(kinds.EVENT, "e"))
    assert woken == []
