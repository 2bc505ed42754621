"""Calls to engines' admin ports over one HTTP session."""

from __future__ import annotations

import json
from typing import Any, Self

import aiohttp

from headwater_contracts.admin import EngineState
from headwater_contracts.network import ADMIN_DRAIN_PATH, ADMIN_STATE_PATH, ADMIN_UNDRAIN_PATH, ENGINE_ADMIN_PORT
from headwater_operator import errors

_LARGEST_ANSWER_BYTES = 1 << 20
"""A state is a few KiB; an engine that sends more is not an engine."""


class HttpEngineControl:
    """Implements EngineControl. To be entered inside the loop that uses it."""

    def __init__(self, *, port: int = ENGINE_ADMIN_PORT, timeout_seconds: float = 2.0) -> None:
        """The timeout is that of a probe: an answer later than the next probe is due helps nobody."""
        self._port = port
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Pod addresses are reached directly, never through a proxy from the environment.
        self._session = aiohttp.ClientSession(
            timeout=self._timeout,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def state(self, ip: str, token: str) -> EngineState:
        """``GET /admin/state``."""
        text = await self._call("GET", ip, ADMIN_STATE_PATH, token, None)
        try:
            return EngineState.from_json(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise errors.EngineUnreachable(f"{ip}: not an engine state: {error}") from error

    async def drain(self, ip: str, token: str, *, timeout_seconds: float, settle_seconds: float) -> None:
        """``POST /admin/drain``."""
        body = {"timeout_seconds": timeout_seconds, "settle_seconds": settle_seconds}
        await self._call("POST", ip, ADMIN_DRAIN_PATH, token, body)

    async def undrain(self, ip: str, token: str) -> None:
        """``POST /admin/undrain``."""
        await self._call("POST", ip, ADMIN_UNDRAIN_PATH, token, {})

    async def _call(self, method: str, ip: str, path: str, token: str, body: dict[str, Any] | None) -> str:
        if self._session is None:
            raise RuntimeError("HttpEngineControl is used before it is entered")
        host = f"[{ip}]" if ":" in ip else ip
        headers = {"authorization": f"Bearer {token}"}
        try:
            async with self._session.request(
                method, f"http://{host}:{self._port}{path}", headers=headers, json=body, allow_redirects=False
            ) as response:
                if response.status in (401, 403):
                    raise errors.TokenRefused(f"{ip}: {method} {path}: HTTP {response.status}")
                if response.status >= 300:
                    raise errors.EngineUnreachable(f"{ip}: {method} {path}: HTTP {response.status}")
                return await _text(ip, response)
        except TimeoutError as error:
            raise errors.EngineUnreachable(f"{ip}: no answer within {self._timeout.total:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise errors.EngineUnreachable(f"{ip}: {error or type(error).__name__}") from error


async def _text(ip: str, response: aiohttp.ClientResponse) -> str:
    """The whole body, however many pieces it comes in."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _LARGEST_ANSWER_BYTES:
            raise errors.EngineUnreachable(f"{ip}: an answer of more than {_LARGEST_ANSWER_BYTES} bytes")
    return body.decode(errors="replace")
