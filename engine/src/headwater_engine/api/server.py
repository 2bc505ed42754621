"""uvicorn, with the sequence of start and stop in our own hands.

uvicorn closes its listeners before anything else when told to stop, and takes over the process's signals.
Here it does neither: the owner of a ``Server`` decides when it ends, after drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headwater_engine.api.exchange import TRANSPORT, App

SEND_BUFFER_BYTES = 16 * 1024
"""Per client, in the kernel and again in the transport. By default the kernel takes megabytes from a client that
never reads, and nobody notices."""
_BACKLOG = 2048
# Longer than the idle timeout of any usual load balancer, which must be the one to close.
_IDLE_SECONDS = 620
_GRACE_SECONDS = 5
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class BoundedProtocol(HttpToolsProtocol):
    """HTTP with a small write buffer, and the transport in the scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bounds the transport's buffer."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=SEND_BUFFER_BYTES)

    def on_message_begin(self) -> None:
        """Puts the transport where handlers find it."""
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[TRANSPORT] = self.transport


class Server(uvicorn.Server):
    """One port. ``should_exit`` ends it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals alone."""
        yield


def listen(port: int) -> socket.socket:
    """A socket on all addresses, of both families where the host has both. Raises OSError."""
    if socket.has_dualstack_ipv6():
        try:
            return _bounded(
                socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
            )
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return _bounded(socket.create_server(("0.0.0.0", port), backlog=_BACKLOG))  # noqa: S104 - a pod's server


def make_server(app: App) -> Server:
    """A server for one application; give its listening socket to ``serve``."""
    config = uvicorn.Config(
        cast("Any", app),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=_BACKLOG,
    )
    return Server(config)


def _bounded(listener: socket.socket) -> socket.socket:
    # Accepted sockets inherit it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    listener.setblocking(False)
    return listener
