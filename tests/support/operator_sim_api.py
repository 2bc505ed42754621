"""An API server's state in memory: create, apply, delete, owner references, a watch log and a history.

Each write makes a new version and leaves the old one as it was, so versions are shared, not copied. Only as much as
the operator relies on. Merging is that of server-side apply for what the operator applies: labels,
annotations, spec fields, and a whole status.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater_operator import errors
from headwater_operator.core.times import format_time

Object = dict[str, Any]
Key = tuple[str, str]
"""(kind, name); there is one namespace."""
NAMESPACE = "serving"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Write:
    """One accepted write: when, what, and the object before and after."""

    at: float
    verb: str
    kind: str
    name: str
    before: Object | None
    after: Object | None


@dataclass
class SimApi:
    """See the module's note."""

    now: float = 0.0
    objects: dict[Key, Object] = field(default_factory=dict)
    history: list[Write] = field(default_factory=list)
    watch: list[tuple[str, Object]] = field(default_factory=list)
    """("MODIFIED" | "DELETED", object), in order."""
    before_write: Callable[[str, str, str], None] = lambda verb, kind, name: None
    """May raise to refuse a write, or to crash its caller."""
    after_write: Callable[[str, str, str], None] = lambda verb, kind, name: None
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _uids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def wall(self) -> datetime:
        """The wall clock."""
        return EPOCH + timedelta(seconds=self.now)

    def get(self, kind: str, name: str) -> Object | None:
        """One object."""
        return self.objects.get((kind, name))

    def of_kind(self, kind: str) -> list[Object]:
        """All objects of a kind, by name."""
        return [item for (each, _), item in sorted(self.objects.items()) if each == kind]

    def create(self, body: Object) -> Object:
        """POST."""
        key = body["kind"], body["metadata"]["name"]
        self.before_write("create", *key)
        if key in self.objects:
            raise errors.AlreadyExists(f"{key[0]} {key[1]} already exists", status=409, reason="AlreadyExists")
        item = _copy(dict(body))
        item["metadata"] |= {
            "uid": f"uid-{next(self._uids)}",
            "generation": 1,
            "creationTimestamp": format_time(self.wall()),
            "namespace": NAMESPACE,
        }
        if key[0] == "Pod":
            item["status"] = {"phase": "Pending"}
        return self._store("create", key, None, item)

    def apply(self, body: Object, *, status: bool = False) -> Object:
        """Server-side apply with force; ``metadata.uid`` must match."""
        key = body["kind"], body["metadata"]["name"]
        self.before_write("status" if status else "apply", *key)
        before = self.objects.get(key)
        if before is None or before["metadata"]["uid"] != body["metadata"]["uid"]:
            raise errors.Stale(f"{key[0]} {key[1]} has another uid, or is gone")
        item = _copy(before)
        if status:
            item["status"] = _copy(dict(body["status"]))
        else:
            self._merge(item, body)
        if item == before:
            return before
        if item.get("spec") != before.get("spec"):
            item["metadata"]["generation"] += 1
        return self._store("status" if status else "apply", key, before, item)

    def _merge(self, item: Object, body: Object) -> None:
        metadata = body["metadata"]
        item["metadata"].setdefault("labels", {}).update(metadata.get("labels", {}))
        if "annotations" in metadata:
            item["metadata"]["annotations"] = dict(metadata["annotations"])
        for name, value in body.items():
            if name not in ("apiVersion", "kind", "metadata", "status"):
                old = item.get(name)
                item[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value

    def delete(self, kind: str, name: str, *, uid: str | None = None) -> None:
        """DELETE: pods linger until their kubelet is done; children of others go by owner reference."""
        self.before_write("delete", kind, name)
        item = self.objects.get((kind, name))
        if item is None or (uid is not None and item["metadata"]["uid"] != uid):
            return
        if kind == "Pod":
            self.modify(
                kind, name, lambda pod: pod["metadata"].setdefault("deletionTimestamp", format_time(self.wall()))
            )
            self.after_write("delete", kind, name)
        else:
            self.remove(kind, name)
            self.after_write("delete", kind, name)

    @contextmanager
    def by_others(self) -> Iterator[None]:
        """Writes inside are not the operator's: no faults strike them."""
        hooks = self.before_write, self.after_write
        self.before_write = self.after_write = lambda verb, kind, name: None
        try:
            yield
        finally:
            self.before_write, self.after_write = hooks

    def remove(self, kind: str, name: str) -> None:
        """The object is gone; the garbage collector deletes its children."""
        item = self.objects.pop((kind, name))
        item = _copy(item)
        item["metadata"]["resourceVersion"] = str(next(self._versions))
        self.watch.append(("DELETED", item))
        self.history.append(Write(self.now, "delete", kind, name, item, None))
        for child_kind, child_name in list(self.objects):
            child = self.objects.get((child_kind, child_name))
            owners = (child or {}).get("metadata", {}).get("ownerReferences") or []
            if any(owner["uid"] == item["metadata"]["uid"] for owner in owners):
                with self.by_others():
                    self.delete(child_kind, child_name)

    def modify(self, kind: str, name: str, change: Callable[[Object], object], *, spec: bool = False) -> None:
        """A write by somebody else: kubelet, scheduler, user."""
        before = self.objects[kind, name]
        item = _copy(before)
        change(item)
        if item == before:
            return
        if spec:
            item["metadata"]["generation"] += 1
        with self.by_others():
            self._store("other", (kind, name), before, item)

    def _store(self, verb: str, key: Key, before: Object | None, item: Object) -> Object:
        item["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[key] = item
        self.watch.append(("MODIFIED", item))
        self.history.append(Write(self.now, verb, key[0], key[1], before, item))
        self.after_write(verb, *key)
        return item


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in value]
    return value
