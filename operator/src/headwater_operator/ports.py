"""What the reconcile needs from the world, as Protocols of one to three methods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from headwater_contracts.admin import EngineState

Object = Mapping[str, Any]
"""A Kubernetes object as plain JSON values."""


class ClusterReader(Protocol):
    """Objects as the informers last saw them. Never blocks, never calls the API server."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """One object, or None if the cache has none."""

    def owned(self, kind: str, namespace: str, owner_uid: str) -> list[Object]:
        """Objects of a kind whose controller owner reference has this uid."""

    def all(self, kind: str) -> list[Object]:
        """All cached objects of a cluster-scoped kind."""


class ClusterWriter(Protocol):
    """Writes by server-side apply with our field manager. Raises errors of ``headwater_operator.errors``."""

    async def apply(self, body: Object, *, subresource: str | None = None) -> Object:
        """Applies a whole object; ``metadata.uid`` in the body refuses a recreated one."""

    async def create(self, body: Object) -> Object:
        """Creates an object; AlreadyExists when the name is taken."""

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> None:
        """Deletes one object of this uid; no error when it is gone already."""

    async def refresh(self, kind: str, namespace: str, name: str) -> Object | None:
        """Reads one object from the API server itself into the reader's cache; None if there is none."""


class EngineControl(Protocol):
    """Calls to one engine's admin port. Raises EngineUnreachable."""

    async def state(self, ip: str, token: str) -> EngineState:
        """``GET /admin/state``."""

    async def drain(self, ip: str, token: str, *, timeout_seconds: float, settle_seconds: float) -> None:
        """``POST /admin/drain``."""

    async def undrain(self, ip: str, token: str) -> None:
        """``POST /admin/undrain``."""


class Events(Protocol):
    async def emit(self, regarding: Object, reason: str, message: str, *, warning: bool) -> None:
        """Records a Kubernetes event; a failure is logged, never raised."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall clock, UTC, for status and annotations."""

    def monotonic(self) -> float:
        """Seconds, for durations."""
