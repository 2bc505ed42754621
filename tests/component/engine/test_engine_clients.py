"""The official client as a user, many clients at once, and clients that do not read."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import openai
import pytest

from support.engine_process import (
    EngineProcess,
    chat,
    finish_reasons,
    frames_of,
    raw_request,
    text_of,
    tokens,
    wait_for,
)

CHAT = "/v1/chat/completions"
Start = Callable[..., EngineProcess]


@pytest.fixture
async def client(engine: EngineProcess) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0) as made:
        yield made


async def test_the_official_client_streams_a_chat(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "Hello"}],
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=20,
        extra_body={"headwater_script": tokens("wa", "ter\u2028", finish="stop")},
    )
    chunks = [chunk async for chunk in stream]

    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "water\u2028"
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 2


async def test_the_official_client_gets_whole_answers_and_lists_models(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="default", messages=[{"role": "user", "content": "Hello"}], max_tokens=5, temperature=0, seed=1
    )
    completion = await client.completions.create(model="default", prompt="Hello", max_tokens=5)

    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5
    assert completion.choices[0].finish_reason == "length"
    assert [model.id async for model in client.models.list()] == ["default"]


async def test_the_official_client_raises_on_an_error_in_mid_stream(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "Hello"}],
        stream=True,
        extra_body={"headwater_script": [*tokens("a"), {"error": "the GPU fell over"}]},
    )

    with pytest.raises(openai.APIError, match="the GPU fell over"):
        async for _chunk in stream:
            pass


async def test_the_official_client_raises_on_a_bad_request(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="top_p"):
        await client.chat.completions.create(
            model="default", messages=[{"role": "user", "content": "Hello"}], top_p=2, stream=True
        )


async def test_closing_the_official_clients_stream_aborts(client: openai.AsyncOpenAI, engine: EngineProcess) -> None:
    stream = await client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "Hello"}],
        stream=True,
        max_tokens=4000,
        extra_body={"ignore_eos": True},
    )
    await anext(stream)
    await stream.close()

    await wait_for(lambda: engine.state()["running"] == 0)


async def test_200_streams_at_once_all_finish_with_their_own_text(engine: EngineProcess) -> None:
    async def one(index: int) -> tuple[str, list[str]]:
        body = chat(tokens(f"{index}:", *"abcdefgh", delay_ms=5, finish="stop"))
        async with raw_request(engine, CHAT, body) as response:
            await response.read_head()
            frames = frames_of(await response.body())
            return text_of(frames), finish_reasons(frames)

    async def generated() -> tuple[int, list[str]]:
        body = chat(max_tokens=40, ignore_eos=True, stream_options={"include_usage": True})
        async with raw_request(engine, CHAT, body) as response:
            await response.read_head()
            frames = frames_of(await response.body())
            return frames[-2]["usage"]["completion_tokens"], finish_reasons(frames)

    scripted, counted = await asyncio.gather(
        asyncio.gather(*(one(index) for index in range(100))), asyncio.gather(*(generated() for _ in range(100)))
    )

    assert scripted == [(f"{index}:abcdefgh", ["stop"]) for index in range(100)]
    assert counted == [(40, ["length"])] * 100


async def test_a_client_that_never_reads_is_cut_off_and_the_others_are_not(start: Start) -> None:
    engine = start(CLIENT_STALL_SECONDS="1", EXTRA_ARGS='{"kv-blocks": "8192"}', MAX_MODEL_LEN="65536")
    before = resident_kib(engine)
    stuck = [deaf_client(engine) for _ in range(4)]
    try:
        await wait_for(lambda: engine.state()["suspended"] == len(stuck))
        async with raw_request(engine, CHAT, chat(max_tokens=200, ignore_eos=True)) as good:
            await good.read_head()
            assert finish_reasons(frames_of(await good.body())) == ["length"]
        await wait_for(lambda: engine.state()["running"] == 0)
        assert 'headwater_engine_aborts_total{cause="client_stalled",engine="0",model_name="default"} 4.0' in (
            engine.metrics()
        )
        assert resident_kib(engine) - before < len(stuck) * 4096
    finally:
        for each in stuck:
            each.close()


def deaf_client(engine: EngineProcess) -> socket.socket:
    """Asks for a very long stream and reads nothing of it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", engine.http_port))
    body = json.dumps(chat(max_tokens=30_000, ignore_eos=True)).encode()
    made.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: e\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return made


def resident_kib(engine: EngineProcess) -> int:
    """Resident memory of the engine process."""
    status = Path(f"/proc/{engine.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
