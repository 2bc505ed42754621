"""One door to the API server: kubernetes.aio's connection and credentials, our paths, timeouts and errors.

The generated methods of ``kubernetes.aio`` differ a method a kind, lose the body of a 201 and default to a
timeout of five minutes; the generic call beneath them has none of these and keeps TLS and token refresh.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration

from headwater_operator import errors

CONNECT_SECONDS = 5.0
"""A dead API server address is noticed this fast; the next attempt may reach another."""
WRITE_SECONDS = 15.0
"""A dead pooled connection hangs for this long; admission of a write takes milliseconds."""

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

OnCall = Callable[[str, str, int], None]
"""(verb, plural, HTTP status or 0) after each call, for metrics."""


class KubeClient:
    """Calls to the API server. Raises the errors of ``headwater_operator.errors`` and no other."""

    def __init__(self, configuration: Configuration, *, on_call: OnCall | None = None) -> None:
        """Reads certificates from files: make it before the loop runs, or in a thread."""
        self._api = ApiClient(configuration)
        self._api.user_agent = "headwater-operator"
        self._on_call = on_call or (lambda _verb, _plural, _status: None)

    async def close(self) -> None:
        """Closes the connection pool."""
        await self._api.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout_seconds: float = WRITE_SECONDS,
    ) -> dict[str, Any]:
        """One request, whole answer. A write without an answer raises OutcomeUnknown."""
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_SECONDS)
        status = 0
        try:
            response = await self._request(method, path, query, body, content_type, timeout)
            async with response:
                status = response.status
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(method, path, error) from error
        finally:
            self._on_call(_VERBS.get(method, method.lower()), _plural(path), status)
        if status >= 400:
            raise translate(status, text, writing=method != "GET")
        return _json(text)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence_seconds: float
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """A GET whose body is read as it comes; silence for longer than given raises Failed."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds)
        try:
            response = await self._request("GET", path, query, None, "application/json", timeout)
            self._on_call("watch", _plural(path), response.status)
            async with response:
                if response.status >= 400:
                    raise translate(response.status, await response.text(), writing=False)
                yield response.content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer("GET", path, error) from error

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "User-Agent": self._api.user_agent, "Content-Type": content_type}
        await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = self._api.configuration.host + quote(path) + (f"?{urlencode(query)}" if query else "")
        answer = await self._api.rest_client.request(method, url, headers=headers, body=body, _request_timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        return response


def translate(status: int, text: str, *, writing: bool) -> errors.OperatorError:
    """The API server's Status answer as one of our errors; the only place that reads HTTP codes."""
    answer = _json(text)
    message = str(answer.get("message") or text[:300] or f"HTTP {status}")
    reason = str(answer.get("reason") or "")
    details = answer.get("details") or {}
    if status == 404:
        return errors.NotFound(message)
    if status == 410:
        return errors.WatchExpired(message)
    if status == 409:
        kind = errors.AlreadyExists if reason == "AlreadyExists" else None
        return kind(message, status=status, reason=reason) if kind else errors.Stale(message)
    if status == 422 and any(cause.get("field") == "metadata.uid" for cause in details.get("causes") or ()):
        return errors.Stale(message)
    # The one 500 that is about the request: an unknown field, or a list key given twice.
    if status == 500 and "typed patch object" in message:
        return errors.Refused(message, status=status, reason="InvalidPatch")
    if status == 401 or status == 429 or status >= 500:
        kind_of_failure = errors.OutcomeUnknown if writing and status >= 500 else errors.Failed
        return kind_of_failure(message, retry_after_seconds=_number(details.get("retryAfterSeconds")))
    return errors.Refused(message, status=status, reason=reason)


def _no_answer(method: str, path: str, error: BaseException) -> errors.Failed:
    text = f"{method} {path}: {type(error).__name__} {error}".rstrip()
    # A connection that never stood carried no request, so nothing can have happened.
    sent = method != "GET" and not isinstance(error, aiohttp.ClientConnectorError)
    return errors.OutcomeUnknown(text) if sent else errors.Failed(text)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


_PLURAL = re.compile(r"^/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([^/]+)(?:/[^/]+(?:/([^/]+))?)?$")


def _plural(path: str) -> str:
    """``/apis/g/v/namespaces/n/things/x/status`` → ``things/status``, to keep metric labels few."""
    match = _PLURAL.match(path)
    if match is None:
        return "other"
    return "/".join(part for part in match.groups() if part)
