"""Serves ``/metrics`` and ``/readyz`` of the operator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from headwater_contracts.network import METRICS_PATH, READY_PATH

Exposition = Callable[[], tuple[bytes, str]]


@asynccontextmanager
async def metrics_server(
    exposition: Exposition, ready: Callable[[], str | None], *, host: str, port: int
) -> AsyncIterator[int]:
    """Listens while entered; yields the port. ``ready`` returns what is still waited for, or None."""

    async def metrics(_: web.Request) -> web.Response:
        body, content_type = exposition()
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def readyz(_: web.Request) -> web.Response:
        waiting = ready()
        return web.Response(text=waiting or "ok", status=503 if waiting else 200)

    app = web.Application()
    app.add_routes([web.get(METRICS_PATH, metrics), web.get(READY_PATH, readyz)])
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
