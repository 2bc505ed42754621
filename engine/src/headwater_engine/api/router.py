"""Paths to handlers on bare ASGI, with the headers that every answer carries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import structlog

from headwater_contracts import headers
from headwater_engine.api import failures
from headwater_engine.api.exchange import ClientGoneError, Exchange, Headers, Receive, Scope, Send, request_id
from headwater_engine.errors import CallerError, Unavailable

Handler = Callable[[Exchange], Awaitable[None]]
Routes = Mapping[str, Mapping[str, Handler]]

_log = structlog.get_logger("headwater.http")


class Router:
    """An ASGI application. ``common`` gives further headers for the answer about to be made."""

    def __init__(self, routes: Routes, common: Callable[[], Headers]) -> None:
        self._routes = routes
        self._common = common

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request; other kinds of scope are not served."""
        if scope["type"] != "http":
            return
        name = request_id(scope)
        answer_headers = [(headers.REQUEST_ID.encode(), name.encode()), *self._common()]
        exchange = Exchange(scope, receive, send, answer_headers, name)
        try:
            await self._route(scope, answer_headers)(exchange)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the edge: what nobody expected is a 500, in OpenAI's shape
            await refuse(exchange, error)

    def _route(self, scope: Scope, answer_headers: Headers) -> Handler:
        methods = self._routes.get(scope["path"])
        if methods is None:
            raise CallerError(f"no such path: {scope['path'][:200]}", code="not_found", status=404)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        handler = methods.get(method)
        if handler is None:
            allowed = ", ".join(sorted({*methods, "HEAD"} if "GET" in methods else methods))
            answer_headers.append((b"allow", allowed.encode()))
            raise CallerError(f"use {allowed} here", code="method_not_allowed", status=405)
        return handler


async def refuse(exchange: Exchange, error: Exception) -> None:
    """Answers with an error, or cuts the connection if the answer has begun."""
    if not isinstance(error, CallerError | Unavailable):
        _log.error("request failed", request_id=exchange.request_id, exc_info=error)
    if exchange.started:
        exchange.cut()
        return
    status, body, more = failures.described(error)
    await exchange.json(status, body, more)
