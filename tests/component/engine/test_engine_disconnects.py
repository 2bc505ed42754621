"""A client that goes away takes its request with it."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from support.engine_process import EngineProcess, chat, raw_request, tokens, wait_for

CHAT = "/v1/chat/completions"
ENDLESS: dict[str, Any] = {"max_tokens": 4000, "ignore_eos": True}


def aborts(engine: EngineProcess, cause: str) -> float:
    """The abort counter of one cause."""
    text = engine.metrics()
    lines = [line for line in text.splitlines() if line.startswith("headwater_engine_aborts_total{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if f'cause="{cause}"' in line)


async def running(engine: EngineProcess, count: int) -> None:
    """Waits until that many requests run."""
    await wait_for(lambda: engine.state()["running"] == count, lambda: f"wanted {count} running")


async def test_before_the_first_token(engine: EngineProcess) -> None:
    before = aborts(engine, "client_gone")
    async with raw_request(engine, CHAT, chat([{"tokens": []}])) as response:
        await response.read_head()
        await running(engine, 1)

    await running(engine, 0)
    assert aborts(engine, "client_gone") == before + 1


async def test_in_mid_stream(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat(**ENDLESS)) as response:
        await response.read_head()
        chunks = response.chunks()
        for _ in range(3):
            await anext(chunks)
        assert engine.state()["kv_used_blocks"] > 0

    await asyncio.to_thread(engine.wait_idle)


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
async def test_without_streaming(engine: EngineProcess, path: str) -> None:
    before = aborts(engine, "client_gone")
    async with raw_request(engine, path, chat(stream=False, prompt="p", **ENDLESS)):
        await running(engine, 1)

    await running(engine, 0)
    assert aborts(engine, "client_gone") == before + 1


async def test_in_the_middle_of_the_body(engine: EngineProcess) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", engine.http_port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: e\r\nContent-Length: 1000\r\n\r\n{{".encode())
    await writer.drain()
    writer.transport.abort()

    async with raw_request(engine, CHAT, chat(tokens("a", finish="stop"))) as response:
        await response.read_head()
        assert response.status == 200


async def test_a_client_that_closes_only_its_sending_side_is_gone_too(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat(**ENDLESS)) as response:
        await response.read_head()
        response.writer.write_eof()

        await running(engine, 0)


async def test_many_clients_that_leave_at_random_moments_leave_nothing_behind(engine: EngineProcess) -> None:
    before, moments = aborts(engine, "client_gone"), random.Random(4)

    async def come_and_go(*, stream: bool, reads: int) -> None:
        async with raw_request(engine, CHAT, chat(stream=stream, **ENDLESS)) as response:
            if stream:
                await response.read_head()
                chunks = response.chunks()
                for _ in range(reads):
                    await anext(chunks)
            else:
                await wait_for(lambda: engine.state()["running"] > 0)

    await asyncio.gather(*(come_and_go(stream=moments.random() < 0.7, reads=moments.randrange(6)) for _ in range(100)))

    await asyncio.to_thread(engine.wait_idle)
    await wait_for(lambda: aborts(engine, "client_gone") == before + 100)
    assert [line for line in engine.logs() if line["level"] == "error"] == []


async def test_others_finish_untouched_when_half_of_the_clients_are_cut(engine: EngineProcess) -> None:
    body = chat(max_tokens=150, ignore_eos=True, temperature=0)

    async def read_all() -> bytes:
        async with raw_request(engine, CHAT, body) as response:
            await response.read_head()
            data = await response.body()
            # What differs between answers is the id and the time.
            return b"".join(part.split(b'"choices"')[-1] for part in data.split(b"\n\n"))

    async def leave() -> None:
        async with raw_request(engine, CHAT, body) as response:
            await response.read_head()
            await anext(response.chunks())

    alone = await read_all()
    readers = [asyncio.create_task(read_all()) for _ in range(8)]
    await asyncio.gather(*(leave() for _ in range(8)))

    assert set(await asyncio.gather(*readers)) == {alone}


async def test_the_tokens_of_an_aborted_stream_are_logged(engine: EngineProcess) -> None:
    async with raw_request(
        engine, CHAT, chat([*tokens("a", "b"), {"tokens": []}]), headers={"x-request-id": "logged-abort"}
    ) as response:
        await response.read_head()
        chunks = response.chunks()
        for _ in range(2):
            await anext(chunks)

    def ended() -> list[dict[str, object]]:
        return [line for line in engine.logs() if line.get("request_id") == "logged-abort"]

    await wait_for(lambda: bool(ended()))
    assert {key: ended()[0][key] for key in ("event", "cause", "completion_tokens")} == {
        "event": "request ended",
        "cause": "client_gone",
        "completion_tokens": 2,
    }
