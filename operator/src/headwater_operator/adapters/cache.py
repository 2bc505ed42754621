"""All stores behind one reader, and the one place that knows which pool a change belongs to."""

from __future__ import annotations

from collections.abc import Callable

from headwater_contracts.labels import LABEL_POOL
from headwater_operator.adapters import kinds, trim
from headwater_operator.adapters.kinds import Kind
from headwater_operator.adapters.store import Object, Store, Trim, controller_of, key_of

PoolKey = tuple[str, str]
"""(namespace, name) of an InferencePool."""
Listener = Callable[[Object | None, Object | None], None]
"""(new, old) of one changed object."""

WATCHED: dict[Kind, Trim] = {
    kinds.POOL: trim.trim_metadata,
    kinds.GROUP: trim.trim_metadata,
    kinds.POD: trim.trim_pod,
    kinds.SERVICE: trim.trim_service,
    kinds.REVISION: trim.trim_metadata,
    kinds.ENDPOINT_SLICE: trim.trim_endpoint_slice,
    kinds.NODE: trim.trim_node,
}
"""Every kind with a store."""

LABELLED = frozenset({kinds.POD, kinds.REVISION, kinds.ENDPOINT_SLICE})
"""Kinds of which only objects with a pool label are watched. Services are not among them: a foreign one in the
way carries no label of ours."""


class Cache:
    """Implements ClusterReader; takes in what the informers see and what our writes return."""

    def __init__(self, wake: Callable[[PoolKey], None]) -> None:
        self._wake = wake
        self._stores = {kind.name: Store(self._routed(kind), trim=trimmed) for kind, trimmed in WATCHED.items()}
        self._listeners: dict[str, list[Listener]] = {}

    def store(self, kind: Kind) -> Store:
        """The store that an informer of this kind feeds."""
        return self._stores[kind.name]

    def listen(self, kind: Kind, listener: Listener) -> None:
        """Calls back on each change of a kind, after the store has it."""
        self._listeners.setdefault(kind.name, []).append(listener)

    def observe(self, item: Object) -> None:
        """Takes in the answer to an own write."""
        store = self._stores.get(item.get("kind", ""))
        if store is not None:
            store.observe(item)

    def forget(self, kind: str, uid: str) -> None:
        """Takes in that an own delete was done."""
        self._stores[kind].forget(uid)

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """One object, or None if the cache has none."""
        return self._stores[kind].get(namespace, name)

    def owned(self, kind: str, namespace: str, owner_uid: str) -> list[Object]:
        """Objects of a kind whose controller owner reference has this uid."""
        return [item for item in self._stores[kind].owned(owner_uid) if key_of(item)[0] == namespace]

    def all(self, kind: str) -> list[Object]:
        """All cached objects of a kind."""
        return self._stores[kind].all()

    def _routed(self, kind: Kind) -> Listener:
        def changed(new: Object | None, old: Object | None) -> None:
            for listener in self._listeners.get(kind.name, ()):
                listener(new, old)
            for key in self._keys(kind, new, old):
                self._wake(key)

        return changed

    def _keys(self, kind: Kind, new: Object | None, old: Object | None) -> set[PoolKey]:
        if kind is kinds.NODE:
            return self._pools_on(new, old)
        keys = {_pool_of(kind, item) for item in (new, old) if item is not None}
        return {key for key in keys if key is not None}

    def _pools_on(self, new: Object | None, old: Object | None) -> set[PoolKey]:
        """Pools with a pod on a node that changed in what decisions read; heartbeats are not."""
        if new is not None and old is not None and _node_facts(new) == _node_facts(old):
            return set()
        name = (new or old or {})["metadata"]["name"]
        pods = (pod for pod in self.all(kinds.POD.name) if pod["spec"].get("nodeName") == name)
        return {key for pod in pods if (key := _pool_of(kinds.POD, pod)) is not None}


def _node_facts(node: Object) -> tuple[object, object]:
    return node["spec"], node["status"]


def _pool_of(kind: Kind, item: Object) -> PoolKey | None:
    namespace, name = key_of(item)
    if kind in (kinds.POOL, kinds.SERVICE):
        return namespace, name
    labelled = (item["metadata"].get("labels") or {}).get(LABEL_POOL)
    if labelled:
        return namespace, labelled
    owner = controller_of(item)
    return (namespace, owner["name"]) if owner is not None and owner["kind"] == kinds.POOL.name else None
