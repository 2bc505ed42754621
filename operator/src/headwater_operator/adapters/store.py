"""Objects of one kind as last seen, indexed by uid, by name and by controller owner.

Three sources feed a store: lists, watches, and the answers to our own writes. They may come in any order, so a
store keeps the newest version of each uid and remembers uids that are gone:

    what comes in                      stored version   result
    event or write answer, newer       older            replaces it
    event or write answer, older       newer            ignored
    any, uid known to be gone          -                ignored
    list without the uid, list newer   older            a deletion, made up
    list without the uid, list older   newer            kept: created after the list was taken

That an own write is in the store before its watch event is what keeps a second reconcile from repeating it.
Resource versions of one kind are compared as numbers, which the API server's storage guarantees.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Object = Mapping[str, Any]
OnChange = Callable[[Object | None, Object | None], None]
"""(new, old): old is None for an addition, new is None for a deletion."""
Trim = Callable[[Object], Object]

_REMEMBERED_DELETIONS = 10_000


def uid_of(item: Object) -> str:
    """The object's uid."""
    return str(item["metadata"]["uid"])


def version_of(item: Object) -> int:
    """The object's resource version as a number; 0 if it has none."""
    return int(item["metadata"].get("resourceVersion") or 0)


def key_of(item: Object) -> tuple[str, str]:
    """(namespace, name); the namespace is empty for cluster-scoped kinds."""
    metadata = item["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def controller_of(item: Object) -> Mapping[str, Any] | None:
    """The owner reference that is marked as controller."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


class Store:
    """See the module's table."""

    def __init__(self, on_change: OnChange, *, trim: Trim | None = None) -> None:
        self._on_change = on_change
        self._trim = trim or (lambda item: item)
        self._items: dict[str, Object] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._owned: dict[str, dict[str, None]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, namespace: str, name: str) -> Object | None:
        """One object by name."""
        uid = self._names.get((namespace, name))
        return None if uid is None else self._items.get(uid)

    def owned(self, owner_uid: str) -> list[Object]:
        """Objects whose controller has this uid, oldest known first."""
        return [self._items[uid] for uid in self._owned.get(owner_uid, ())]

    def all(self) -> list[Object]:
        """All objects."""
        return list(self._items.values())

    def observe(self, item: Object) -> None:
        """Takes in an object from a list, a watch event or a write answer."""
        uid = uid_of(item)
        old = self._items.get(uid)
        if uid in self._gone or (old is not None and version_of(old) >= version_of(item)):
            return
        new = self._trim(item)
        if old is not None:
            self._unlink(uid, old)
        self._items[uid] = new
        self._names[key_of(new)] = uid
        owner = controller_of(new)
        if owner is not None:
            self._owned.setdefault(str(owner["uid"]), {})[uid] = None
        self._on_change(new, old)

    def forget(self, uid: str) -> None:
        """Takes in a deletion."""
        self._gone[uid] = None
        while len(self._gone) > _REMEMBERED_DELETIONS:
            self._gone.popitem(last=False)
        old = self._items.pop(uid, None)
        if old is not None:
            self._unlink(uid, old)
            self._on_change(None, old)

    def end_list(self, listed: Iterable[str], list_version: int, *, namespace: str | None) -> None:
        """Makes up a deletion for each object, in the listed namespace, that a complete list no longer shows."""
        present = set(listed)
        for uid, item in list(self._items.items()):
            inside = namespace is None or key_of(item)[0] == namespace
            if inside and uid not in present and version_of(item) <= list_version:
                self.forget(uid)

    def _unlink(self, uid: str, old: Object) -> None:
        if self._names.get(key_of(old)) == uid:
            del self._names[key_of(old)]
        owner = controller_of(old)
        siblings = self._owned.get(str(owner["uid"])) if owner is not None else None
        if owner is not None and siblings is not None:
            siblings.pop(uid, None)
            if not siblings:
                del self._owned[str(owner["uid"])]
