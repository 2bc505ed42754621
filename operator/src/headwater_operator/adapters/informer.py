"""List and watch of one kind into a store.

Nothing here trusts the connection: a list has a deadline, a watch that falls silent for longer than bookmarks
come is dead, an expired version leads to a new list, and what a new list no longer shows was deleted.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from headwater_operator import errors
from headwater_operator.adapters.kinds import Kind
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.adapters.store import Store, uid_of
from headwater_operator.ports import Clock

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WatchTimings:
    """Every wait of an informer, each with its reason."""

    list_seconds: float = 60.0
    """One page of a list. The API server itself gives up on a request after 60 s."""
    silence_seconds: float = 70.0
    """Longest silence of a watch. Bookmarks come about once a minute; silence beyond that is a dead connection."""
    server_seconds: tuple[int, int] = (240, 480)
    """The API server ends a watch after a time in this range: reconnects spread, and hit other servers."""
    first_backoff_seconds: float = 0.05
    last_backoff_seconds: float = 5.0
    """Cap of the wait between attempts: an API server that restarts is found again within it."""
    steady_seconds: float = 1.0
    """A watch that stood this long was a good one: the next attempt follows at once."""
    forbidden_seconds: float = 60.0
    """Between attempts at a kind that may be done without and that we may not read."""
    page_size: int = 500
    """Objects a page: parsing one page blocks the loop for some ten milliseconds."""


class Informer:
    """Keeps a store in line with the API server until cancelled."""

    def __init__(
        self,
        client: KubeClient,
        kind: Kind,
        store: Store,
        clock: Clock,
        *,
        namespace: str | None = None,
        labels: str = "",
        optional: bool = False,
        timings: WatchTimings | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.synced = asyncio.Event()
        self.error: errors.OperatorError | None = None
        """What stopped the last attempt; None while the watch stands."""
        self.lists = 0
        self._client = client
        self._store = store
        self._clock = clock
        self._labels = labels
        self._optional = optional
        self._timings = timings or WatchTimings()
        self._sleep = sleep
        self._version: str | None = None
        self._last_data = clock.monotonic()

    def age_seconds(self) -> float:
        """Since the last data; a bookmark counts, and so does a watch that the API server accepted."""
        return self._clock.monotonic() - self._last_data

    async def run(self) -> None:
        """Lists, watches, and begins again after whatever ends the watch."""
        backoff = self._timings.first_backoff_seconds
        while True:
            started = self._clock.monotonic()
            try:
                if self._version is None:
                    self._version = await self._list()
                await self._watch(self._version)
            except errors.WatchExpired as error:
                self._version = None
                self._note(error)
            except errors.Refused as error:
                self._note(error)
                if self._optional:
                    self.synced.set()
                    self._last_data = self._clock.monotonic()
                    await self._sleep(self._timings.forbidden_seconds)
            except errors.OperatorError as error:
                self._note(error)
            if self._clock.monotonic() - started >= self._timings.steady_seconds:
                backoff = self._timings.first_backoff_seconds
            await self._sleep(backoff * random.uniform(0.8, 1.2))
            backoff = min(backoff * 2, self._timings.last_backoff_seconds)

    def _note(self, error: errors.OperatorError) -> None:
        # One line for an outage, not one for each attempt.
        if self.error is None:
            hint = "is its CustomResourceDefinition installed?" if isinstance(error, errors.NotFound) else None
            log.warning(
                "watch interrupted", kind=self.kind.plural, namespace=self.namespace, error=str(error), hint=hint
            )
        self.error = error

    async def _list(self) -> str:
        seen: list[str] = []
        query = {"limit": str(self._timings.page_size)} | self._selector()
        while True:
            page = await self._client.call(
                "GET", self.kind.path(self.namespace), query=query, timeout_seconds=self._timings.list_seconds
            )
            self._last_data = self._clock.monotonic()
            for item in page.get("items") or ():
                seen.append(uid_of(item))
                self._store.observe(self._named(item))
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        version = str(metadata["resourceVersion"])
        self._store.end_list(seen, int(version), namespace=self.namespace)
        self.lists += 1
        self.error = None
        self.synced.set()
        return version

    def _named(self, item: dict[str, Any]) -> dict[str, Any]:
        """Items of a list carry no kind of their own."""
        item.setdefault("kind", self.kind.name)
        item.setdefault("apiVersion", self.kind.api_version)
        return item

    def _selector(self) -> dict[str, str]:
        return {"labelSelector": self._labels} if self._labels else {}

    async def _watch(self, version: str) -> None:
        """Follows one watch to its end."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(*self._timings.server_seconds)),
        } | self._selector()
        silence = self._timings.silence_seconds
        async with self._client.stream(self.kind.path(self.namespace), query, silence_seconds=silence) as content:
            self.error = None
            self._last_data = self._clock.monotonic()
            async for event in _events(content):
                self._last_data = self._clock.monotonic()
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        item = event["object"]
        match event["type"]:
            case "ERROR" if item.get("code") == 410:
                raise errors.WatchExpired(str(item.get("message")))
            case "ERROR":
                # The place in the history is in doubt: only a list is sure.
                self._version = None
                raise errors.Failed(str(item.get("message")))
            case "DELETED":
                self._store.forget(uid_of(item))
            case "BOOKMARK":
                pass
            case _:
                self._store.observe(item)
        self._version = item["metadata"]["resourceVersion"]


async def _events(content: Any) -> AsyncIterator[dict[str, Any]]:
    """JSON objects of a watch, one a line, whatever chunks they come in."""
    rest = bytearray()
    async for chunk in content.iter_any():
        start = len(rest)
        rest += chunk
        if rest.find(b"\n", start) < 0:
            continue
        *lines, tail = bytes(rest).split(b"\n")
        rest = bytearray(tail)
        for line in lines:
            if line.strip():
                yield json.loads(line)
