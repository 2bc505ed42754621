"""Drain and exit: new requests turned away in time, running streams finished, nothing cut that need not be."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator

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
SLOW = tokens(*"abcdefghij", delay_ms=150, finish="stop")
Start = Callable[..., EngineProcess]


@pytest.fixture
def lasting(engine: EngineProcess) -> Iterator[EngineProcess]:
    """The module's engine, for drains that do not end the process; undrained afterwards."""
    yield engine
    engine.admin("/admin/undrain")


async def quick(engine: EngineProcess) -> tuple[int, dict[str, str], bytes]:
    """One short request: status, headers, body."""
    async with raw_request(engine, CHAT, chat(tokens("q", finish="stop"))) as response:
        await response.read_head()
        return response.status, response.headers, await response.body()


async def test_sigterm_lets_running_streams_finish_and_exits_zero(start: Start) -> None:
    engine = start()
    async with raw_request(engine, CHAT, chat(SLOW)) as response:
        await response.read_head()
        chunks = response.chunks()
        got = [await anext(chunks)]
        engine.signal(signal.SIGTERM)
        got += [chunk async for chunk in chunks]

    assert text_of(frames_of(b"".join(got))) == "abcdefghij"
    assert finish_reasons(frames_of(b"".join(got))) == ["stop"]
    assert await asyncio.to_thread(engine.exit_code) == 0


async def test_sigterm_of_an_idle_engine_exits_zero(start: Start) -> None:
    engine = start()
    engine.signal(signal.SIGTERM)

    assert await asyncio.to_thread(engine.exit_code) == 0


async def test_a_second_sigterm_exits_at_once(start: Start) -> None:
    engine = start(DRAIN_TIMEOUT_SECONDS="3000")
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        engine.signal(signal.SIGTERM)
        await wait_for(lambda: engine.state()["phase"] == "draining")
        engine.signal(signal.SIGTERM)
        frames = frames_of(await response.body())

    assert frames[-2]["error"]["code"] == "exiting"
    assert await asyncio.to_thread(engine.exit_code) == 143


async def test_during_settle_requests_are_admitted_and_connections_closed(lasting: EngineProcess) -> None:
    engine = lasting
    assert engine.admin("/admin/drain", timeout_seconds=600, settle_seconds=600).status_code == 200

    ready = engine.get("/readyz")
    status, headers, body = await quick(engine)

    assert (ready.status_code, ready.headers["x-headwater-reason"]) == (503, "draining")
    assert (status, headers["connection"], text_of(frames_of(body))) == (200, "close", "q")
    state = engine.state()
    assert (state["phase"], state["admitting"], state["drained"]) == ("draining", True, False)


async def test_after_settle_requests_are_refused_and_health_stays_green(lasting: EngineProcess) -> None:
    engine = lasting
    engine.admin("/admin/drain", timeout_seconds=600, settle_seconds=0)

    status, headers, body = await quick(engine)

    assert status == 503
    assert headers["x-headwater-reason"] == "draining"
    assert int(headers["retry-after"]) > 0
    assert headers["connection"] == "close"
    assert json.loads(body)["error"]["code"] == "draining"
    assert engine.get("/healthz").status_code == 200


async def test_drained_is_reported_when_the_last_stream_ends_and_not_before(lasting: EngineProcess) -> None:
    engine = lasting
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        await anext(response.chunks())
        assert engine.admin("/admin/drain", timeout_seconds=600, settle_seconds=0).json()["drained"] is False

    await wait_for(lambda: engine.state()["drained"])


async def test_at_the_deadline_streams_end_in_band(lasting: EngineProcess) -> None:
    engine = lasting
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        engine.admin("/admin/drain", timeout_seconds=0.3, settle_seconds=0)
        frames = frames_of(await response.body())

    assert text_of(frames[:1] + frames[1:-2]) == "a"
    assert frames[-2]["error"]["code"] == "drain_timeout"
    assert frames[-1] == "[DONE]"
    assert finish_reasons(frames[:-2]) == []
    await wait_for(lambda: engine.state()["drained"])


async def test_at_the_deadline_a_whole_answer_becomes_an_error(lasting: EngineProcess) -> None:
    engine = lasting
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}], stream=False)) as response:
        await wait_for(lambda: engine.state()["running"] == 1)
        engine.admin("/admin/drain", timeout_seconds=0.3, settle_seconds=0)
        await response.read_head()
        error = json.loads(await response.body())["error"]

    assert (response.status, error["code"]) == (500, "drain_timeout")


async def test_sigterm_with_a_stream_beyond_the_deadline_ends_it_in_band_and_exits_zero(start: Start) -> None:
    engine = start(DRAIN_TIMEOUT_SECONDS="0.3")
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        engine.signal(signal.SIGTERM)
        frames = frames_of(await response.body())

    assert frames[-2]["error"]["code"] == "drain_timeout"
    assert await asyncio.to_thread(engine.exit_code) == 0


async def test_undrain_restores_service(lasting: EngineProcess) -> None:
    engine = lasting
    engine.admin("/admin/drain", timeout_seconds=600, settle_seconds=0)
    assert (await quick(engine))[0] == 503

    state = engine.admin("/admin/undrain").json()

    assert (state["phase"], state["admitting"], state["drained"]) == ("ready", True, False)
    status, headers, _body = await quick(engine)
    assert (status, "connection" in headers) == (200, False)
    assert engine.get("/readyz").status_code == 200


async def test_asking_again_for_a_drain_does_not_postpone_it(lasting: EngineProcess) -> None:
    engine = lasting
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        engine.admin("/admin/drain", timeout_seconds=0.5, settle_seconds=0)
        engine.admin("/admin/drain", timeout_seconds=3000, settle_seconds=3000)

        frames = frames_of(await response.body())

    assert frames[-2]["error"]["code"] == "drain_timeout"


async def test_a_drain_that_ends_the_process_cannot_be_undone(start: Start) -> None:
    engine = start(ENDPOINT_SETTLE_SECONDS="600", DRAIN_TIMEOUT_SECONDS="600")
    engine.signal(signal.SIGTERM)
    await wait_for(lambda: engine.state()["phase"] == "draining")

    assert engine.admin("/admin/undrain").status_code == 409


async def test_a_drain_that_ends_the_process_can_still_be_asked_to_hurry(start: Start) -> None:
    engine = start(ENDPOINT_SETTLE_SECONDS="600", DRAIN_TIMEOUT_SECONDS="600")
    engine.signal(signal.SIGTERM)
    await wait_for(lambda: engine.state()["phase"] == "draining")

    engine.admin("/admin/drain", settle_seconds=0, timeout_seconds=0)

    assert engine.exit_code() == 0


async def test_health_and_admin_answer_while_streams_drain(start: Start) -> None:
    engine = start()
    async with raw_request(engine, CHAT, chat(SLOW)) as response:
        await response.read_head()
        engine.signal(signal.SIGTERM)
        await wait_for(lambda: engine.state()["phase"] == "draining")

        assert engine.get("/healthz").status_code == 200
        assert (await quick(engine))[0] == 503
        assert text_of(frames_of(await response.body())) == "abcdefghij"
