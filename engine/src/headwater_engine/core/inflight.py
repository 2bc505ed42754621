"""The requests in flight, and how one is ended from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import StrEnum

from headwater_engine.errors import CallerError


class EndCause(StrEnum):
    """Why a request ended before its finish; the metric label ``cause``."""

    CLIENT_GONE = "client_gone"
    CLIENT_STALLED = "client_stalled"
    STREAM_STALLED = "stream_stalled"
    DRAIN_TIMEOUT = "drain_timeout"
    ENGINE_FAILED = "engine_failed"
    EXITING = "exiting"


class InFlight:
    """One admitted request. ``end`` is what all who may end it call; the first cause stays."""

    def __init__(self, request_id: str, connection_lost: Callable[[], bool]) -> None:
        self.request_id = request_id
        self.connection_lost = connection_lost
        self.ended: asyncio.Future[EndCause] = asyncio.get_running_loop().create_future()
        self.started = False
        """It has its first token."""
        self._answered = False

    def answered(self) -> None:
        """Its last byte is handed over: from here on nothing ends it any more."""
        self._answered = True

    def end(self, cause: EndCause) -> None:
        """Ends the request; safe to repeat."""
        if not self._answered and not self.ended.done():
            self.ended.set_result(cause)

    @property
    def cause(self) -> EndCause | None:
        """Why it was ended, if it was."""
        return self.ended.result() if self.ended.done() else None


class Registry:
    """All requests in flight, by the client's request id."""

    def __init__(self) -> None:
        self._requests: dict[str, InFlight] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InFlight]:
        return iter(tuple(self._requests.values()))

    @property
    def waiting(self) -> int:
        """Requests that have no token yet."""
        return sum(1 for request in self._requests.values() if not request.started)

    def add(self, request: InFlight) -> None:
        """Raises CallerError (409) when the id is in flight on a connection that still lives.

        A client that hangs up and asks again at once may be faster than the end of its first request.
        """
        other = self._requests.get(request.request_id)
        if other is not None:
            if not other.connection_lost():
                raise CallerError("a request with this x-request-id is in flight", code="duplicate_request", status=409)
            other.end(EndCause.CLIENT_GONE)
        self._requests[request.request_id] = request
        self._idle.clear()

    def remove(self, request: InFlight) -> None:
        """Forgets a request; one that was replaced is forgotten already."""
        if self._requests.get(request.request_id) is request:
            del self._requests[request.request_id]
            if not self._requests:
                self._idle.set()

    def end_all(self, cause: EndCause) -> None:
        """Ends every request."""
        for request in self:
            request.end(cause)

    async def idle(self) -> None:
        """Returns when nothing is in flight."""
        await self._idle.wait()
