"""Single writes of one pool to the API server: each noted while its outcome is open, none to what others own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import PoolKey
from headwater_operator.adapters.expectations import Expectations, Write
from headwater_operator.adapters.store import controller_of
from headwater_operator.core.snapshot import ForeignObject
from headwater_operator.desired.refs import PoolRef
from headwater_operator.ports import ClusterReader, ClusterWriter
from headwater_operator.reconcile.ownership import Ownership, ownership


@dataclass(frozen=True, slots=True)
class Writes:
    """The writes of one plan. Raises OperatorError."""

    reader: ClusterReader
    writer: ClusterWriter
    expectations: Expectations[PoolKey]
    pool: PoolRef
    foreign: list[ForeignObject] = field(default_factory=list)
    """Objects of others that were in the way."""

    async def apply(self, body: dict[str, Any]) -> None:
        """Applies a whole object of ours."""
        await self._write(self._named(body), lambda: self.writer.apply(body))

    async def create(self, body: dict[str, Any], *, reusable: bool = False) -> None:
        """Creates an object. ``reusable``: if no answer comes, its name is the first to be tried again."""
        await self._write(self._named(body, creates=reusable), lambda: self.writer.create(body))

    async def delete(self, kind: str, name: str, uid: str) -> None:
        """Deletes one object of this uid."""
        write = Write(kind, self.pool.namespace, name)
        await self._write(write, lambda: self.writer.delete(kind, write.namespace, name, uid=uid))

    async def delete_revision(self, name: str) -> None:
        """Deletes a revision, if it is there and ours."""
        known = self.reader.get(kinds.REVISION.name, self.pool.namespace, name)
        if known is not None and ownership(known, self.pool.name, self.pool.uid) is Ownership.OURS:
            await self.delete(kinds.REVISION.name, name, known["metadata"]["uid"])

    async def ensure(self, kind: str, name: str, body: dict[str, Any]) -> None:
        """Creates an object under a name that others may use too, or applies it to our own."""
        known = self.reader.get(kind, self.pool.namespace, name)
        if ownership(known, self.pool.name, self.pool.uid) is Ownership.ABSENT:
            try:
                return await self.create(body)
            except errors.AlreadyExists:
                known = await self.writer.refresh(kind, self.pool.namespace, name)
        whose = ownership(known, self.pool.name, self.pool.uid)
        if known is None or whose is Ownership.LEFTOVER:
            raise errors.Stale(f"{kind} {name} of an earlier pool of this name is still being deleted")
        if whose is Ownership.FOREIGN:
            self.foreign.append(ForeignObject(kind, name))
            raise errors.Refused(f"{kind} {name} exists and is not this pool's", reason="NameConflict")
        return await self.apply(body | {"metadata": body["metadata"] | {"uid": known["metadata"]["uid"]}})

    async def check_ours(self, kind: str, name: str, owner_uid: str) -> None:
        """After AlreadyExists: a create of ours, thought lost, came through. Raises Stale if it is another's."""
        known = await self.writer.refresh(kind, self.pool.namespace, name)
        owner = None if known is None else controller_of(known)
        if owner is None or owner["uid"] != owner_uid:
            if known is not None:
                self.foreign.append(ForeignObject(kind, name))
            raise errors.Stale(f"{kind} {name} was there a moment ago and is not ours")

    def _named(self, body: dict[str, Any], *, creates: bool = False) -> Write:
        return Write(body["kind"], self.pool.namespace, body["metadata"]["name"], creates=creates)

    async def _write(self, write: Write, call: Callable[[], Awaitable[object]]) -> None:
        with self.expectations.writing((self.pool.namespace, self.pool.name), write):
            await call()
