"""Loading, failing and dying: what the operator and clients see."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from support.engine_process import (
    EngineProcess,
    chat,
    engine_process,
    finish_reasons,
    frames_of,
    raw_request,
    tokens,
    wait_for,
)

CHAT = "/v1/chat/completions"
Start = Callable[..., EngineProcess]
FAST_WATCHDOG = {"HEALTH_INTERVAL_SECONDS": "0.5", "HEALTH_FAILURE_THRESHOLD": "3"}


def failure(engine: EngineProcess) -> str:
    """The reason that the log gives for the end."""
    reasons = [line["reason"] for line in engine.logs() if line["event"] == "engine failed"]
    assert len(reasons) == 1, reasons
    return str(reasons[0])


async def test_while_loading_requests_get_503_and_health_is_green(start: Start) -> None:
    engine = start(ready=False, EXTRA_ARGS='{"load-seconds": "600"}')

    async with raw_request(engine, CHAT, chat(tokens("a", finish="stop"))) as response:
        await response.read_head()
        error = json.loads(await response.body())["error"]

    assert (response.status, response.headers["x-headwater-reason"], error["code"]) == (503, "loading", "loading")
    assert int(response.headers["retry-after"]) > 0
    ready = engine.get("/readyz")
    assert (ready.status_code, ready.headers["x-headwater-reason"]) == (503, "loading")
    assert engine.get("/healthz").status_code == 200
    state = engine.state()
    assert (state["phase"], state["admitting"], state.get("healthy")) == ("loading", False, None)


async def test_sigterm_while_loading_exits_zero_at_once(start: Start) -> None:
    engine = start(ready=False, EXTRA_ARGS='{"load-seconds": "600"}', ENDPOINT_SETTLE_SECONDS="600")
    engine.signal(signal.SIGTERM)

    assert await asyncio.to_thread(engine.exit_code) == 0


async def test_ready_means_that_a_request_succeeds(start: Start) -> None:
    engine = start(ready=False, EXTRA_ARGS='{"load-seconds": "0.5"}')
    await wait_for(lambda: engine.get("/readyz").status_code == 200)

    async with raw_request(engine, CHAT, chat(max_tokens=3, stream=False)) as response:
        await response.read_head()
        assert response.status == 200
    assert engine.state()["load_seconds"] >= 0.5


async def test_a_model_that_does_not_load_ends_the_process_with_its_reason(start: Start) -> None:
    engine = start(ready=False, EXTRA_ARGS='{"load-error": "no such file: model.safetensors", "load-seconds": "0.3"}')

    assert await asyncio.to_thread(engine.exit_code) == 70
    assert failure(engine) == "load_failed"
    assert "no such file: model.safetensors" in engine.log.read_text()


async def test_loading_beyond_the_deadline_ends_the_process(start: Start) -> None:
    engine = start(ready=False, EXTRA_ARGS='{"load-seconds": "600"}', STARTUP_DEADLINE_SECONDS="0.5")

    assert await asyncio.to_thread(engine.exit_code) == 70
    assert failure(engine) == "startup_deadline"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"fault": "hang"}, "no_progress"),
        ({"fault": "dead_rank", "rank": 0}, "rank_dead"),
        ({"fault": "oom"}, "engine_dead"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value["fault"]),
)
async def test_a_dead_engine_ends_its_streams_in_band_and_exits(
    start: Start, fault: dict[str, object], reason: str
) -> None:
    engine = start(**FAST_WATCHDOG)
    async with raw_request(engine, CHAT, chat(max_tokens=4000, ignore_eos=True)) as response:
        await response.read_head()
        chunks = response.chunks()
        got = [await anext(chunks)]
        assert engine.admin("/admin/faults", **fault).status_code == 200
        got += [chunk async for chunk in chunks]

    frames = frames_of(b"".join(got))
    assert frames[-1] == "[DONE]"
    assert frames[-2]["error"]["type"] == "server_error"
    assert finish_reasons(frames[:-2]) == []
    assert await asyncio.to_thread(engine.exit_code) == 70
    assert failure(engine) == reason


async def test_an_idle_engine_that_hangs_is_found_by_the_test_inference(start: Start) -> None:
    engine = start(**FAST_WATCHDOG)
    engine.admin("/admin/faults", fault="hang")

    assert await asyncio.to_thread(engine.exit_code) == 70
    assert failure(engine) == "no_progress"


async def test_an_idle_engine_tests_itself_outside_of_all_counts(start: Start) -> None:
    engine = start(**FAST_WATCHDOG)
    await wait_for(lambda: "last_test_inference_age_seconds" in engine.state())

    state = engine.state()
    assert (state["phase"], state["healthy"]) == ("ready", True)
    assert sum(state["ttft"]["counts"]) == 0
    metrics = engine.metrics()
    assert 'vllm:prompt_tokens_total{engine="0",model_name="default"} 0.0' in metrics


async def test_a_hung_stream_does_not_kill_an_engine_whose_scheduler_turns(start: Start) -> None:
    engine = start(**FAST_WATCHDOG)
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        # Three tests in a row: longer than the verdict would take.
        tests = 0
        last = 1e9
        while tests < 4:
            age = engine.state().get("last_test_inference_age_seconds", 1e9)
            tests += age < last
            last = age
            await asyncio.sleep(0.05)

    assert engine.state()["healthy"] is True


async def test_one_stalled_stream_ends_in_band_and_the_others_go_on(start: Start) -> None:
    engine = start(STREAM_STALL_SECONDS="2", KEEP_ALIVE_SECONDS="0.2")
    async with (
        raw_request(engine, CHAT, chat(tokens(*"x" * 100, delay_ms=40, finish="stop"))) as other,
        raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as stalled,
    ):
        await other.read_head()
        await stalled.read_head()
        frames = frames_of(await stalled.body())
        rest = frames_of(await other.body())

    assert frames[-2]["error"]["code"] == "stream_stalled"
    assert finish_reasons(rest) == ["stop"]


async def test_a_crash_is_a_cut_connection_and_its_exit_code(start: Start) -> None:
    engine = start()
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as response:
        await response.read_head()
        with pytest.raises(httpx.RemoteProtocolError):
            engine.admin("/admin/faults", fault="crash", exit_code=3)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await response.body()

    assert engine.exit_code() == 3


@pytest.mark.parametrize(
    ("env", "want"),
    [
        ({"BACKEND": "other"}, "backend"),
        ({"SIM_PROFILE": "none"}, "unknown simulation profile"),
        ({"EXTRA_ARGS": '{"gpu-memory": "1"}'}, "no engine argument gpu-memory"),
        ({"HEALTH_INTERVAL_SECONDS": "often"}, "health_interval_seconds"),
        ({"BACKEND": "vllm", "SIM_SCRIPTS": "0"}, "HEADWATER_MODEL_PATH"),
    ],
)
async def test_wrong_settings_are_said_and_end_the_process(tmp_path: Path, env: dict[str, str], want: str) -> None:
    def attempt() -> str:
        with pytest.raises(AssertionError) as caught, engine_process(tmp_path, env):
            pass
        return str(caught.value)

    text = await asyncio.to_thread(attempt)

    assert "exited with 64" in text
    assert want in text
