"""Writes to the API server: server-side apply, create, delete. Each answer goes into the cache at once."""

from __future__ import annotations

from typing import Any, Protocol

from headwater_contracts.labels import FIELD_MANAGER, STATUS_FIELD_MANAGER
from headwater_operator import errors
from headwater_operator.adapters.kinds import KINDS
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.ports import Object

_APPLY = "application/apply-patch+yaml"


class WriteThrough(Protocol):
    """Where the answers of writes go."""

    def observe(self, item: Object) -> None:
        """An object as a write returned it."""

    def forget(self, kind: str, uid: str) -> None:
        """An object that a delete removed."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """An object as last seen."""


class KubeWriter:
    """Implements ClusterWriter."""

    def __init__(self, client: KubeClient, cache: WriteThrough) -> None:
        self._client = client
        self._cache = cache

    async def apply(self, body: Object, *, subresource: str | None = None) -> Object:
        """Applies an object. ``metadata.uid`` must be there: without it an apply recreates what was deleted."""
        metadata = body["metadata"]
        if not metadata.get("uid"):
            raise ValueError(f"apply of {body['kind']} {metadata['name']} without its uid")
        manager = STATUS_FIELD_MANAGER if subresource == "status" else FIELD_MANAGER
        path = KINDS[body["kind"]].path(metadata.get("namespace"), metadata["name"], subresource)
        query = {"fieldManager": manager, "force": "true"}
        return self._seen(await self._client.call("PATCH", path, query=query, body=body, content_type=_APPLY))

    async def create(self, body: Object) -> Object:
        """Creates an object; AlreadyExists when the name is taken."""
        path = KINDS[body["kind"]].path(body["metadata"].get("namespace"))
        query = {"fieldManager": FIELD_MANAGER}
        return self._seen(await self._client.call("POST", path, query=query, body=body))

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> None:
        """Deletes one object of this uid, its children in the background; no error when it is gone already."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        try:
            answer = await self._client.call("DELETE", KINDS[kind].path(namespace, name), body=body)
        except (errors.NotFound, errors.Stale):
            # Gone, or replaced by one of another uid: either way this one is no more.
            self._cache.forget(kind, uid)
            return
        if answer.get("kind") == kind:
            self._cache.observe(answer)  # it lives on, with a deletion timestamp
        else:
            self._cache.forget(kind, uid)

    async def refresh(self, kind: str, namespace: str, name: str) -> Object | None:
        """Reads one object from the API server into the cache; None if there is none."""
        known = self._cache.get(kind, namespace, name)
        try:
            return self._seen(await self._client.call("GET", KINDS[kind].path(namespace, name)))
        except errors.NotFound:
            # Only what was known before the question is gone: the cache may have met a successor meanwhile.
            if known is not None:
                self._cache.forget(kind, str(known["metadata"]["uid"]))
            return None

    def _seen(self, answer: dict[str, Any]) -> Object:
        self._cache.observe(answer)
        return answer
