"""What a connection may do to the server: heads of any size, silence, requests on top of each other, upgrades."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from headwater_engine.api import connection, server
from headwater_engine.api.exchange import Receive, Scope, Send
from support.engine_process import (
    PATIENCE_SECONDS,
    EngineProcess,
    RawResponse,
    chat,
    finish_reasons,
    frames_of,
    text_of,
    tokens,
    wait_for,
)

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: engine\r\n\r\n"


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[RawResponse]:
    """A bare connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        yield RawResponse(reader, writer)
    finally:
        writer.transport.abort()


async def rest_of(answer: RawResponse) -> bytes:
    """All that comes until the server closes the connection."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            return await answer.reader.read()
        except ConnectionError:
            return b""


async def send_many(answer: RawResponse, data: bytes) -> None:
    """Sends tens of megabytes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(64 * 1024):
            answer.writer.write(data)
            await answer.writer.drain()


def post(body: dict[str, Any], *headers: str) -> bytes:
    """A chat request as bytes."""
    data = json.dumps(body).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: engine", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"GET /", b"a" * 1024),
        (b"GET /healthz HTTP/1.1\r\n", b"X: " + b"a" * 1024 + b"\r\n"),
        (b"GET /healthz HTTP/1.1\r\nX: ", b"a" * 1024),
        (b"", b"\r\n" * 512),
        (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: " + b"a" * 1024 + b"\r\n"),
        (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1", b";a" * 512),
    ],
    ids=["url", "headers", "header", "empty-lines", "trailers", "chunk-extension"],
)
async def test_an_endless_head_is_cut_off(engine: EngineProcess, start: bytes, more: bytes) -> None:
    async with connected(engine.http_port) as answer:
        answer.writer.write(start)
        with pytest.raises(ConnectionError):
            await send_many(answer, more)

    engine.wait_idle()
    assert engine.get("/healthz").status_code == 200


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_hangs_up_on_two_requests_aborts_the_one_that_runs(
    engine: EngineProcess, stream: bool
) -> None:
    hanging = post(chat(tokens("A"), stream=stream))
    async with connected(engine.http_port) as answer:
        answer.writer.write(hanging)
        await asyncio.to_thread(engine.wait, lambda state: state["running"] == 1)
        answer.writer.write(hanging)
        await answer.writer.drain()

    await asyncio.to_thread(engine.wait_idle)


async def test_a_request_on_top_of_another_ends_the_connection_with_the_firsts_answer(engine: EngineProcess) -> None:
    first = post(chat(tokens("A", "B", finish="stop")))
    async with connected(engine.http_port) as answer:
        answer.writer.write(first + HEALTH)

        await answer.read_head()
        frames = frames_of(await answer.body())

        assert (text_of(frames), frames[-1]) == ("AB", "[DONE]")
        assert await rest_of(answer) == b""


async def test_what_is_no_http_does_not_get_into_a_running_stream(engine: EngineProcess) -> None:
    async with connected(engine.http_port) as answer:
        answer.writer.write(post(chat(tokens("A", "B", delay_ms=200, finish="stop"))))
        await answer.read_head()
        answer.writer.write(b"\x00 garbage \r\n\r\n")

        frames = frames_of(await answer.body())

        assert (text_of(frames), finish_reasons(frames)) == ("AB", ["stop"])
        assert await rest_of(answer) == b""


async def test_an_offer_to_upgrade_to_http2_is_passed_over_and_the_body_kept(engine: EngineProcess) -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA")
    request = post(chat(tokens("A", "B", finish="stop"), stream=False), *offer)
    async with connected(engine.http_port) as answer:
        # As Java's client sends it: head and body apart.
        head, _, body = request.partition(b"\r\n\r\n")
        answer.writer.write(head + b"\r\n\r\n")
        await answer.writer.drain()
        answer.writer.write(body)
        for _ in range(2):
            await answer.read_head()
            got = json.loads(await answer.body())
            assert (answer.status, got["choices"][0]["message"]["content"]) == (200, "AB")
            # The connection goes on, with an offer or without.
            answer.writer.write(request)


async def test_the_connection_serves_the_next_request_after_a_refused_one(engine: EngineProcess) -> None:
    async with connected(engine.http_port) as answer:
        for body, status in ((chat(top_p=2), 400), (chat(tokens("A", finish="stop"), stream=False), 200)):
            answer.writer.write(post(body))
            await answer.read_head()
            await answer.body()
            assert answer.status == status


@dataclass
class Running:
    """A server of one's own."""

    server: server.Server
    port: int


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[Running]:
    """A server in this loop whose application answers without reading."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": answer})

    listener, running = server.listen(0), server.make_server(app)
    task = asyncio.create_task(running.serve([listener]))
    try:
        yield Running(running, listener.getsockname()[1])
    finally:
        running.should_exit = running.force_exit = True
        await task


@pytest.mark.parametrize(
    "sent",
    [b"G", b"GET /healthz HTTP/1.1\r\nX: a", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"],
    ids=["first-byte", "head", "body-of-an-answered-request"],
)
async def test_a_request_that_never_gets_complete_is_cut_off(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    async with serving(b"ok") as running, connected(running.port) as slow:
        slow.writer.write(sent)
        await rest_of(slow)


async def test_a_connection_without_a_request_is_closed_after_the_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_IDLE_SECONDS", 0.2)
    async with serving(b"ok") as running, connected(running.port) as idle, connected(running.port) as blank:
        blank.writer.write(b"\r\n")
        assert (await rest_of(idle), await rest_of(blank)) == (b"", b"")


async def test_an_idle_connection_outlives_the_time_for_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    async with serving(b"ok") as running, connected(running.port) as patient:
        for _ in range(2):
            await asyncio.sleep(0.2)  # time must pass: four times what is allowed within a head
            patient.writer.write(HEALTH)
            await patient.read_head()
            assert await patient.body() == b"ok"


async def test_an_answer_that_nobody_takes_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TAKE_SECONDS", 1)
    async with serving(b"x" * 1_000_000) as running:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, ("127.0.0.1", running.port))
            await loop.sock_sendall(deaf, HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            await wait_for(lambda: len(running.server.server_state.connections) == 1)

            await wait_for(lambda: not running.server.server_state.connections)
