"""Streams one chat completion over HTTP, token by token as the bytes arrive."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from headwater_client.core.chunks import NO_JSON, Chunk, parse_chunk, parse_error_body, protocol_error
from headwater_client.core.failures import Failure, FailureKind, RequestError
from headwater_client.core.terminal import sendable
from headwater_contracts import headers, sse

Clock = Callable[[], float]
"""A monotonic clock, in seconds."""

Message = Mapping[str, str]

CONNECT_TIMEOUT_SECONDS = 10.0
MAX_ERROR_BODY_BYTES = 64 * 1024
_END_OF_BODY_SECONDS = 1.0
# A compressing proxy on the way would gather tokens before it sends any.
_STREAM_HEADERS = {"accept": "text/event-stream", "accept-encoding": "identity"}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A streamed chat completion. None leaves a parameter to the server's default."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    ignore_eos: bool = False
    """Generate ``max_tokens`` tokens whatever the model says; vLLM's extension, sent only when set."""

    def body(self) -> dict[str, Any]:
        """The JSON body of the request."""
        given = {"max_tokens": self.max_tokens, "temperature": self.temperature, "seed": self.seed}
        given["ignore_eos"] = self.ignore_eos or None
        return {
            "model": sendable(self.model),
            "messages": [{key: sendable(value) for key, value in message.items()} for message in self.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        } | {name: value for name, value in given.items() if value is not None}


@asynccontextmanager
async def open_client(
    url: str,
    api_key: str | None = None,
    *,
    silence_seconds: float | None = None,
    max_connections: int | None = None,
    use_proxy: bool = True,
) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client for the server at ``url`` (with or without ``/v1``).

    ``silence_seconds``: how long a response may go without a byte; None waits for ever.
    ``use_proxy``: whether the proxy variables of the environment count.
    """
    _load_transport()
    timeout = httpx.Timeout(silence_seconds, connect=CONNECT_TIMEOUT_SECONDS, pool=None)
    limits = httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_connections)
    auth = {"authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        client = httpx.AsyncClient(
            base_url=base_url(url), timeout=timeout, limits=limits, headers=auth, trust_env=use_proxy
        )
    except ValueError as error:
        # The proxy variables; the URL and the key have been checked.
        raise RequestError(Failure(FailureKind.CONNECT, str(error))) from error
    async with client:
        yield client


def _load_transport() -> None:
    # httpx imports the modules beneath it at the first connection, and the first TTFT would hold that time.
    import anyio
    from anyio.streams import tls

    _ = (anyio.get_cancelled_exc_class(), anyio.connect_tcp, anyio.move_on_after, anyio.create_task_group, tls)


def base_url(url: str) -> str:
    """``url`` without a trailing slash or ``/v1``. Raises ValueError unless it is http or https with a host."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is not a URL: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"{url!r} is not an http(s) URL, as http://127.0.0.1:8000 is")
    if (parsed.port or 0) > 65535:
        raise ValueError(f"{url!r} has a port above 65535")
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


async def first_model(client: httpx.AsyncClient) -> str:
    """Name of the first model that the server lists. Raises RequestError."""
    async with _translated():
        response = await client.get("/v1/models")
    if response.is_error:
        raise RequestError(await _http_failure(response))
    try:
        return str(response.json()["data"][0]["id"])
    except (*NO_JSON, LookupError, TypeError) as error:
        raise protocol_error(f"GET /v1/models lists no model: {response.text[:200]}") from error


async def stream_chat(client: httpx.AsyncClient, request: ChatRequest, clock: Clock) -> AsyncGenerator[Chunk]:
    """Yields each chunk of the answer once its bytes are here; returns after ``[DONE]``.

    Raises RequestError for every failure. Closing the generator closes the connection, which aborts the
    request in the engine.
    """
    async with _response(client, request.body()) as response:
        finished = False
        async with aclosing(_events(response, clock)) as events:
            async for at_seconds, data in events:
                if data == sse.DONE_DATA:
                    break
                chunk = parse_chunk(data, at_seconds)
                finished = finished or chunk.finish_reason is not None
                yield chunk
            else:
                raise _truncated("the stream ended without [DONE]")
            if not finished:
                raise _truncated("the stream ended without a finish reason")
            await _read_to_end(events)


@asynccontextmanager
async def _response(client: httpx.AsyncClient, body: dict[str, Any]) -> AsyncIterator[httpx.Response]:
    request = client.build_request("POST", "/v1/chat/completions", json=body, headers=_STREAM_HEADERS)
    async with _translated():
        response = await client.send(request, stream=True)
    try:
        if response.is_error:
            raise RequestError(await _http_failure(response))
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise protocol_error(f"content type {response.headers.get('content-type')!r}, not an event stream")
        yield response
    finally:
        await response.aclose()


async def _events(response: httpx.Response, clock: Clock) -> AsyncGenerator[tuple[float, str]]:
    """Each event's data with the time at which the read that completed it returned."""
    decoder = sse.Decoder()
    async with _translated(mid_stream=True):
        async for received in response.aiter_bytes():
            at_seconds = clock()
            for event in decoder.feed(received):
                yield at_seconds, event.data


async def _read_to_end(events: AsyncGenerator[tuple[float, str]]) -> None:
    # Closing between [DONE] and the end of the body would look like a client that left, and costs the connection.
    try:
        async with asyncio.timeout(_END_OF_BODY_SECONDS):
            async for _ in events:
                pass
    except (TimeoutError, RequestError):
        return


@asynccontextmanager
async def _translated(*, mid_stream: bool = False) -> AsyncIterator[None]:
    """Turns httpx's errors into RequestError."""
    try:
        yield
    except httpx.ConnectTimeout as error:
        message = f"no connection within {CONNECT_TIMEOUT_SECONDS:g} s"
        raise RequestError(Failure(FailureKind.CONNECT, message)) from error
    except httpx.TimeoutException as error:
        raise RequestError(Failure(FailureKind.TIMEOUT, "the server sent nothing for too long")) from error
    except httpx.TransportError as error:
        message = _cause(error)
        if mid_stream:
            raise _truncated(f"the connection was lost before [DONE]: {message}") from error
        raise RequestError(Failure(FailureKind.CONNECT, message)) from error
    except httpx.DecodingError as error:
        raise protocol_error(f"content that cannot be decoded: {error}") from error


def _cause(error: BaseException) -> str:
    """The system's own words ("Connection refused") where they lie below httpx's."""
    text = str(error) or type(error).__name__
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.strerror:
            text = os.strerror(below.errno) if below.errno and below.errno > 0 else below.strerror
        below = below.__cause__ or below.__context__
    return text


def _truncated(message: str) -> RequestError:
    return RequestError(Failure(FailureKind.TRUNCATED, message))


async def _http_failure(response: httpx.Response) -> Failure:
    body = bytearray()
    # The status says more than a body that was cut off.
    with suppress(RequestError):
        async with _translated():
            async for part in response.aiter_bytes():
                body += part
                if len(body) >= MAX_ERROR_BODY_BYTES:
                    break
    message, code = parse_error_body(body.decode("utf-8", "replace"))
    return Failure(
        FailureKind.HTTP,
        message,
        status=response.status_code,
        code=code,
        reason=response.headers.get(headers.REASON),
        retry_after_seconds=_seconds(response.headers.get(headers.RETRY_AFTER)),
    )


def _seconds(value: str | None) -> float | None:
    """Retry-After in seconds; its form as a date is not used by Headwater and counts as absent."""
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None
