"""Probes over real sockets, from servers that answer as the network does: in pieces, or without end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

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


async def test_an_answer_without_end_is_no_state_and_is_not_read_on() -> None:
    async def without_end(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    async with engine(without_end) as control:
        with pytest.raises(errors.EngineUnreachable, match="more than 1048576 bytes"):
            await control.state("127.0.0.1", "token")
