"""Probes over real sockets, from servers that answer as the network does: in pieces, or without end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headwater_contracts.admin import EnginePhase, EngineState
from headwater_operator import errors
from headwater_operator.adapters.probe_http import HttpEngineControl

STATE = EngineState(EnginePhase.READY, step=7, running=1, waiting=0)
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def engine(answer: Answer) -> AsyncIterator[HttpEngineControl]:
    """A server that says what ``answer`` writes, and the control that asks it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        except ConnectionError:
            return  # the client has heard enough
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, HttpEngineControl(port=server.sockets[0].getsockname()[1], timeout_seconds=30.0) as control:
        yield control


async def test_a_state_that_comes_in_two_pieces_is_read_whole() -> None:
    body = json.dumps(STATE.to_json()).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)

    async def in_pieces(writer: asyncio.StreamWriter) -> None:
        writer.write(head + body[:50])
        await writer.drain()
        await asyncio.sleep(0.2)  # as the network does: the first piece is read long before the second is sent
        writer.write(body[50:])
        await writer.drain()

    async with engine(in_pieces) as control:
        got = await control.state("127.0.0.1", "token")
    assert got == STATE


ODD: dict[str, dict[str, Any]] = {
    "a text for a figure": {"kv_used_blocks": "12"},
    "a bool for a figure": {"running": True},
    "a figure for a bool": {"healthy": 1},
    "a figure for a text": {"failure_reason": 3},
    "a negative figure": {"waiting": -1},
    "a figure beyond all bounds": {"kv_total_blocks": 10**400},
    "not a number": {"load_seconds": float("nan")},
    "a rank that is a number": {"ranks": [1]},
    "a rank whose life is a text": {"ranks": [{"rank": 0, "alive": "no"}]},
    "a phase that does not exist": {"phase": "dreaming"},
    "an endless edge": {"ttft": {"edges": [float("inf")], "counts": [1, 1], "sum_seconds": 1.0}},
    "a histogram that is a list": {"itl": [1, 2]},
}


@pytest.mark.parametrize(
    "body",
    [
        *(pytest.param(json.dumps(STATE.to_json() | odd), id=name) for name, odd in ODD.items()),
        pytest.param("[" * 100_000, id="nested too deep"),
        pytest.param("[1, 2]", id="a list"),
        pytest.param("null", id="nothing"),
        pytest.param("1" * 5_000, id="a number of many digits"),
    ],
)
async def test_an_odd_answer_is_an_engine_that_cannot_be_read_and_nothing_worse(body: str) -> None:
    async def whole(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body.encode())
        await writer.drain()

    async with engine(whole) as control:
        with pytest.raises(errors.EngineUnreachable, match="not an engine state"):
            await control.state("127.0.0.1", "token")


@pytest.mark.parametrize(("status", "want"), [(401, True), (403, True), (404, False), (503, False)])
async def test_a_refused_token_is_told_from_an_engine_out_of_reach(status: int, want: bool) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status)
        await writer.drain()

    async with engine(answer) as control:
        with pytest.raises(errors.EngineUnreachable) as got:
            await control.state("127.0.0.1", "token")
    assert isinstance(got.value, errors.TokenRefused) is want


async def test_an_answer_without_end_is_no_state_and_is_not_read_on() -> None:
    async def without_end(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    async with engine(without_end) as control:
        with pytest.raises(errors.EngineUnreachable, match="more than 1048576 bytes"):
            await control.state("127.0.0.1", "token")
