"""A plain HTTP proxy before the API server that counts writes and can misbehave as networks do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from kubernetes.aio.client import Configuration

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass
class ApiProxy:
    """Faults are switched on by setting fields."""

    upstream: str
    tls: ssl.SSLContext
    url: str = ""
    writes: list[str] = field(default_factory=list)
    """``METHOD path`` of every write that came in, Lease renewals left out."""
    user: str = ""
    """Calls are made in this user's name, so with its rights."""
    calls: set[tuple[str, str]] = field(default_factory=set)
    """(verb, resource) of every call, as RBAC names them."""
    forbidden: list[str] = field(default_factory=list)
    """What the API server's authorizer refused."""
    before_write: Callable[[int, str], None] = lambda _number, _what: None
    """Called with the number of the write, before it goes on."""
    after_write: Callable[[int, str], None] = lambda _number, _what: None
    """Called when the API server has done it, before the answer goes back."""
    lose_answer: Callable[[int, str], bool] = lambda _number, _what: False
    """True: the API server does it and the client gets a broken connection."""
    silent: bool = False
    """Watches stay open and bring nothing more, as behind a firewall that forgot them."""
    refuse_watches: int = 0
    """So many watches get 410 Gone."""
    refuse_all: bool = False
    watches: int = 0
    lists: int = 0
    _streams: set[asyncio.Task[None]] = field(default_factory=set)
    _session: aiohttp.ClientSession | None = None

    def cut_streams(self) -> None:
        """Breaks every open watch."""
        for stream in self._streams:
            stream.cancel()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.refuse_all:
            return web.Response(status=503)
        if request.query.get("watch") in ("true", "1"):
            return await self._watch(request)
        self.lists += request.method == "GET" and "limit" in request.query
        body = await request.read()
        what = f"{request.method} {request.path}"
        counted = request.method in WRITES and "/leases" not in request.path
        if counted:
            self.writes.append(what)
            number = len(self.writes)
            self.before_write(number, what)
        async with self._forward(request, body) as answer:
            content = await answer.read()
            if answer.status == 403 and b"cannot" in content:
                self.forbidden.append(content.decode())
        if counted:
            self.after_write(number, what)
            if self.lose_answer(number, what):
                assert request.transport is not None
                request.transport.abort()
        return web.Response(status=answer.status, body=content, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watches += 1
        if self.refuse_watches > 0:
            self.refuse_watches -= 1
            return web.json_response(
                {"kind": "Status", "code": 410, "reason": "Expired", "message": "gone"}, status=410
            )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with self._forward(request, b"") as answer:
            response.set_status(answer.status)
            await response.prepare(request)
            pump = asyncio.ensure_future(self._pump(answer, response))
            self._streams.add(pump)
            try:
                await asyncio.wait({pump})
            finally:
                self._streams.discard(pump)
                pump.cancel()
            if pump.cancelled() and request.transport is not None:
                request.transport.abort()
        return response

    async def _pump(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        async for chunk in answer.content.iter_any():
            if not self.silent:
                await response.write(chunk)

    def _forward(self, request: web.Request, body: bytes) -> aiohttp.client._RequestContextManager:
        assert self._session is not None
        self.calls.add(rbac_call(request))
        headers = {name: request.headers[name] for name in ("Content-Type", "Accept") if name in request.headers}
        if self.user:
            headers["Impersonate-User"] = self.user
        return self._session.request(
            request.method, self.upstream + str(request.rel_url), data=body or None, headers=headers, ssl=self.tls
        )


def rbac_call(request: web.Request) -> tuple[str, str]:
    """(verb, group/resource[/subresource]) of a request, as RBAC sees it."""
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    resource = "/".join(part for part in (group, *rest[:1], *rest[2:3]) if part)
    named = len(rest) > 1
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    if request.method == "GET":
        watching = request.query.get("watch") in ("true", "1")
        return ("watch" if watching else "get" if named else "list"), resource
    return verbs[request.method], resource


def _tls_of(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


@asynccontextmanager
async def proxy_to(configuration: Configuration) -> AsyncIterator[ApiProxy]:
    """Listens on loopback while entered; logs in as the configuration's user."""
    tls = await asyncio.to_thread(_tls_of, configuration)
    proxy = ApiProxy(configuration.host, tls)
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.1)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 21) as proxy._session:
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield proxy
        finally:
            proxy.cut_streams()
            await runner.cleanup()


def plain_configuration(proxy: ApiProxy) -> Configuration:
    """Client configuration that leads to the proxy."""
    configuration = Configuration()
    configuration.host = proxy.url
    return configuration
