"""One client's connection: uvicorn's HTTP, with bounds on what a client may send, hold and keep waiting.

- The head of a request, or anything else that is neither body nor the end of a message, is bounded in bytes and time.
- One request at a time. What a client sends after it is dropped and the connection closed with its answer: uvicorn
  would stop reading until then, and not notice that the client has hung up.
- An offer to upgrade (HTTP/2 in clear text, which Java's client makes with each first request) is passed over. The
  parser would stop at it and lose the body.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headwater_engine.api.exchange import TRANSPORT

SEND_BUFFER_BYTES = 16 * 1024
"""Per client, in the kernel and again in the transport. By default the kernel takes megabytes from a client that
never reads, and nobody notices."""
MAX_HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
_OF_AN_UPGRADE = (b"upgrade", b"connection", b"http2-settings")


class BoundedProtocol(HttpToolsProtocol):
    """HTTP with bounds, and the transport in the scope."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._late: asyncio.TimerHandle | None = None
        self._within = False
        """A message has begun and not ended."""
        self._unparsed = 0
        """Bytes since the parser last got anywhere."""
        self._deaf = False
        """Nothing more is read from this client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bounds the transport's buffer, and the wait for a first request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=SEND_BUFFER_BYTES)
        self._wait_for_a_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timers."""
        self._unset_keepalive_if_required()
        self._unset_late()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses, and judges how far that got."""
        if self._deaf or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._unparsed += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received.")
            return
        if self._unparsed > MAX_HEAD_BYTES:
            self._refuse("The head of the request is too large.")
            return
        self._wait()

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._deaf:
                return
            self.parser = httptools.HttpRequestParser(self)
            self._parse(self._head_without_upgrade() + data[upgrade.args[0] :])

    def _head_without_upgrade(self) -> bytes:
        lines = [self.scope["method"].encode() + b" " + self.url + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.headers if name not in _OF_AN_UPGRADE]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _refuse(self, message: str) -> None:
        if self._busy and not self._within:
            # In the middle of an answer it would be taken for a part of that.
            self._hear_no_more()
        else:
            self.logger.warning(message)
            self.send_400_response(message)

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _hear_no_more(self) -> None:
        self._deaf = True
        self.cycle.keep_alive = False

    def _wait(self) -> None:
        if self._busy or not self._within:
            self._unset_late()
            if not self._busy and self.timeout_keep_alive_task is None:
                self._wait_for_a_request()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _wait_for_a_request(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _unset_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def on_response_complete(self) -> None:
        """Waits for the next request, or for the rest of one that was answered early."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    # What the parser says

    def on_message_begin(self) -> None:
        """Puts the transport where handlers find it."""
        self._within = not self._busy
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[TRANSPORT] = self.transport

    def on_headers_complete(self) -> None:
        """Starts the request, unless another one is running."""
        self._unparsed = 0
        if self._busy:
            self._hear_no_more()
        elif self.parser.should_upgrade():
            self.scope["method"] = self.parser.get_method().decode("ascii")
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unparsed = 0
        if not self._deaf:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request."""
        self._unparsed = 0
        self._within = False
        if not self._deaf and not self.parser.should_upgrade():
            super().on_message_complete()
