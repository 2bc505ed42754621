"""uvicorn, with the sequence of start and stop in our own hands.

uvicorn closes its listeners before anything else when told to stop, and takes over the process's signals.
Here it does neither: the owner of a ``Server`` decides when it ends, after drain.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Any, cast

import uvicorn

from headwater_engine.api.connection import SEND_BUFFER_BYTES, BoundedProtocol
from headwater_engine.api.exchange import App

_BACKLOG = 2048
# Longer than the idle timeout of any usual load balancer, which must be the one to close.
_IDLE_SECONDS = 620
_GRACE_SECONDS = 5
TAKE_SECONDS = 60
"""A client whose machine takes nothing for so long has its connection cut by the kernel, also when the answer is
complete and only waits in buffers: closing alone would wait for ever."""
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


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
    # Accepted sockets inherit them.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, TAKE_SECONDS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKE_SECONDS * 1000)
    listener.setblocking(False)
    return listener
