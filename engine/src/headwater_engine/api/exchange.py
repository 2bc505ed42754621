"""One HTTP request on the bare ASGI interface: the few things that the stream path needs, and nothing between."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import orjson

from headwater_contracts import headers
from headwater_engine.errors import CallerError

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

TRANSPORT = "headwater.transport"
"""Scope key under which the server puts the connection's asyncio transport."""

_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_BODY_SECONDS = 30.0


class ClientGoneError(Exception):
    """The client hung up before its request was complete."""


class Exchange:
    """A request and the means to answer it. ``headers`` go onto the answer, whatever it is."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, headers: Headers, request_id: str) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._headers = headers
        self.request_id = request_id
        self.started = False

    def connection_lost(self) -> bool:
        """The connection is closed or closing."""
        transport = self.scope.get(TRANSPORT)
        return transport is not None and transport.is_closing()

    def cut(self) -> None:
        """Drops the connection without waiting for what is still unsent."""
        transport = self.scope.get(TRANSPORT)
        if transport is not None:
            transport.abort()

    async def body(self, limit: int) -> bytes:
        """The request's body. Raises CallerError (413, 408) and ClientGoneError."""
        length = header(self.scope, b"content-length")
        if length is not None and length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                return await self._read(limit)
        except TimeoutError as error:
            raise CallerError("the body did not arrive in time", code="timeout", status=408) from error

    async def _read(self, limit: int) -> bytes:
        data = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            data += message.get("body", b"")
            if len(data) > limit:
                raise _too_large(limit)
            if not message.get("more_body", False):
                return bytes(data)

    async def disconnected(self) -> None:
        """Returns when the client hangs up; the body must have been read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Sends status line and headers at once."""
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *self._headers]})

    async def write(self, data: bytes) -> None:
        """Sends a piece of the body, now; waits while the client is behind."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self, data: bytes = b"") -> None:
        """Sends the last piece."""
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def json(self, status: int, body: Any, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """A whole JSON answer."""
        data = orjson.dumps(body)
        length = (b"content-length", str(len(data)).encode())
        await self.start(status, [(b"content-type", b"application/json"), length, *headers])
        await self.finish(data)


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of that name."""
    return next((value for key, value in scope["headers"] if key == name), None)


def request_id(scope: Scope) -> str:
    """The caller's request id if it is a sane one, else a new one."""
    given = header(scope, headers.REQUEST_ID.encode())
    if given is not None and _VALID_REQUEST_ID.fullmatch(given):
        return given.decode()
    return uuid.uuid4().hex


def _too_large(limit: int) -> CallerError:
    return CallerError(f"the body is larger than {limit} bytes", code="body_too_large", status=413)
