"""The real engine process over real vLLM, on real sockets: streams, clients that die, the end.

Two engines serve the module, since a start costs a minute: the tests of streams share one, whose drain is the
last thing tested of it; the other one is killed.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from support.engine_process import (
    EngineProcess,
    RawResponse,
    chat,
    finish_reasons,
    frames_of,
    raw_request,
    text_of,
    wait_for,
)
from support.vllm_engine import Belongings, needs_vllm, vllm_process

pytestmark = needs_vllm

STREAMS = 16
KILLED = 8
SURVIVOR_TOKENS = 120
VICTIM_TOKENS = 600


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with vllm_process(tmp_path_factory.mktemp("vllm")) as running:
        yield running


def question(text: str, **fields: Any) -> dict[str, Any]:
    """A chat body with greedy sampling."""
    return chat(messages=[{"role": "user", "content": text}], temperature=0, **fields)


async def read_frames(response: RawResponse) -> list[Any]:
    await response.read_head()
    assert response.status == 200
    return frames_of(await response.body())


async def ask(engine: EngineProcess, body: dict[str, Any]) -> list[Any]:
    async with raw_request(engine, "/v1/chat/completions", body) as response:
        return await read_frames(response)


async def test_the_answer_streams_token_by_token(engine: EngineProcess) -> None:
    body = question("What is the capital of France?", max_tokens=32, stream_options={"include_usage": True})

    frames = await ask(engine, body)

    assert "Paris" in text_of(frames)
    assert finish_reasons(frames) == ["stop"]
    assert frames[-1] == "[DONE]"
    usage = frames[-2]["usage"]
    pieces = [c["delta"].get("content") for f in frames[:-2] for c in f["choices"] if c["delta"].get("content")]
    # On a busy machine two tokens may share a frame.
    assert len(pieces) > usage["completion_tokens"] / 2


async def test_an_answer_that_is_not_streamed_is_the_same(engine: EngineProcess) -> None:
    body = question("Name three rivers.", max_tokens=40)

    streamed = text_of(await ask(engine, body))
    async with raw_request(engine, "/v1/chat/completions", body | {"stream": False}) as response:
        await response.read_head()
        whole = httpx.Response(200, content=await response.body()).json()

    assert whole["choices"][0]["message"]["content"] == streamed


async def test_a_stop_string_ends_the_text_before_it_and_the_request_in_vllm(engine: EngineProcess) -> None:
    free = text_of(await ask(engine, question("Count from one to ten.", max_tokens=40)))
    stop = free[12:18]

    frames = await ask(engine, question("Count from one to ten.", max_tokens=40, stop=[stop]))

    assert text_of(frames) == free[: free.index(stop)]
    assert finish_reasons(frames) == ["stop"]
    await wait_for(lambda: engine.state()["running"] == 0)


async def test_killed_clients_are_aborted_in_vllm_at_once_and_the_others_finish_byte_exact(
    engine: EngineProcess,
) -> None:
    survivors = [
        question(f"Write a long story about {n} whales.", max_tokens=SURVIVOR_TOKENS, ignore_eos=True)
        for n in range(STREAMS - KILLED)
    ]
    victims = [
        question(f"Write a long story about {n} bears.", max_tokens=VICTIM_TOKENS, ignore_eos=True)
        for n in range(KILLED)
    ]
    want = [text_of(await ask(engine, body)) for body in survivors]
    aborts = _aborts(engine)

    async with AsyncExitStack() as killed:
        for body in victims:
            response = await killed.enter_async_context(raw_request(engine, "/v1/chat/completions", body))
            await response.read_head()
        readers = [asyncio.ensure_future(ask(engine, body)) for body in survivors]
        await wait_for(lambda: engine.state()["running"] == STREAMS)
        before, begun = engine.state(), time.monotonic()
    # Leaving has reset all eight connections.
    after = await asyncio.to_thread(engine.wait, lambda state: state["running"] <= STREAMS - KILLED)
    seconds, steps = time.monotonic() - begun, after["step"] - before["step"]

    # The survivors all run still: the count fell by the aborts alone.
    assert (after["running"], after["waiting"]) == (STREAMS - KILLED, 0)
    # On a machine too busy to look within a second, the engine's own steps tell.
    assert seconds < 1.0 or steps <= 4, f"{seconds:.2f} s and {steps} steps"
    assert _metric(engine, "vllm:num_requests_running") == STREAMS - KILLED
    got = await asyncio.gather(*readers)
    assert [text_of(frames) for frames in got] == want
    assert all((finish_reasons(frames), frames[-1]) == (["length"], "[DONE]") for frames in got)
    await asyncio.to_thread(engine.wait_idle)
    assert _aborts(engine) - aborts == KILLED


async def test_a_client_that_leaves_before_the_first_token_is_aborted_in_vllm(engine: EngineProcess) -> None:
    body = question("word " * 700, max_tokens=200, ignore_eos=True)
    async with raw_request(engine, "/v1/chat/completions", body):
        # The prompt takes six steps of 128 tokens.
        await wait_for(lambda: engine.state()["running"] == 1)

    await asyncio.to_thread(engine.wait_idle)


async def test_sigterm_lets_streams_finish_and_leaves_nothing_behind(engine: EngineProcess) -> None:
    body = question("Write a long story about the sea.", max_tokens=60, ignore_eos=True)
    belongings = Belongings.of(engine.process.pid)
    async with raw_request(engine, "/v1/chat/completions", body) as response:
        await response.read_head()
        engine.signal(signal.SIGTERM)
        await wait_for(lambda: not engine.state()["admitting"])
        frames = frames_of(await response.body())

    assert finish_reasons(frames) == ["length"]
    assert frames[-1] == "[DONE]"
    assert await asyncio.to_thread(engine.exit_code) == 0
    assert "\nTraceback" not in engine.log.read_text()
    await wait_for(lambda: not belongings.left(), lambda: str(belongings.left()))


@pytest.fixture
async def doomed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EngineProcess]:
    with vllm_process(tmp_path_factory.mktemp("doomed")) as running:
        yield running


async def test_a_killed_engine_core_ends_streams_in_band_and_the_process_with_an_error(doomed: EngineProcess) -> None:
    belongings = Belongings.of(doomed.process.pid)
    body = question("Write a long story about the moon.", max_tokens=VICTIM_TOKENS, ignore_eos=True)
    async with raw_request(doomed, "/v1/chat/completions", body) as response:
        await response.read_head()
        await wait_for(lambda: doomed.state()["running"] == 1)

        belongings.kill_core()
        frames = frames_of(await response.body())

    assert frames[-1] == "[DONE]"
    assert frames[-2]["error"]["type"] == "server_error"
    assert finish_reasons(frames) == []
    assert await asyncio.to_thread(doomed.exit_code) != 0
    await wait_for(lambda: not belongings.left(), lambda: str(belongings.left()))


def _metric(engine: EngineProcess, name: str) -> float:
    samples = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", engine.metrics(), re.MULTILINE)
    return sum(float(value) for value in samples)


def _aborts(engine: EngineProcess) -> float:
    return _metric(engine, "headwater_engine_aborts_total")
