"""The ``headwater`` command against a real engine process with the simulated backend."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Iterator

import httpx
import pytest

from support import headwater_command as headwater
from support.engine_process import MODEL, EngineProcess, engine_process, wait_for


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """An engine at the pace of a real one, so that a long answer is still running when a test looks."""
    with engine_process(tmp_path_factory.mktemp("engine"), SIM_PROFILE="h100-llama70b-tp8") as running:
        yield running


def _aborts(engine: EngineProcess) -> float:
    text = httpx.get(f"{engine.admin_url}/metrics").text
    return sum(float(value) for value in re.findall(r"^headwater_engine_aborts_total\{.*\} (\S+)$", text, re.MULTILINE))


async def test_chat_finds_the_model_and_prints_the_whole_answer(engine: EngineProcess) -> None:
    got = await headwater.run("chat", "--url", engine.url, "--max-tokens", "20", "--seed", "1", "hi")
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20, "seed": 1}
    async with httpx.AsyncClient(timeout=60) as client:
        want = (await client.post(f"{engine.url}/v1/chat/completions", json=body)).json()
    assert got.code == 0, got.err
    assert got.out == want["choices"][0]["message"]["content"] + "\n"
    assert f"{want['usage']['completion_tokens']} tokens" in got.err


async def test_ctrl_c_ends_the_request_in_the_engine(engine: EngineProcess) -> None:
    process = await headwater.start("chat", "--url", engine.url, "--max-tokens", "4000", "a long story")
    assert process.stdout is not None
    assert await process.stdout.readexactly(1)
    assert engine.state()["running"] == 1
    process.send_signal(signal.SIGINT)
    await asyncio.to_thread(engine.wait_idle)
    got = await headwater.finish(process)
    assert got.code == 130
    await wait_for(lambda: _aborts(engine) == 1)


async def test_a_draining_engine_is_reported_with_its_reason(engine: EngineProcess) -> None:
    assert engine.admin("/admin/drain").is_success
    got = await headwater.run("chat", "--url", engine.url, "--model", MODEL, "hi")
    assert (got.code, got.out) == (1, "")
    assert "503 (draining)" in got.err
    assert "Try again in" in got.err


async def test_bench_counts_every_token_of_every_stream(engine: EngineProcess) -> None:
    got = await headwater.run(
        "bench", "--url", engine.url, "-c", "8", "-n", "16", "--max-tokens", "25", "--ignore-eos", "--json"
    )
    assert got.code == 0, got.err
    report = json.loads(got.out)
    assert report["requests"]["succeeded"] == 16
    assert report["tokens"] == report["tokens"] | {"output": 400, "counted_by": "usage"}
    assert report["ttft_seconds"]["count"] == 16
    assert 0 < report["ttft_seconds"]["p50"] <= report["e2e_seconds"]["p50"]
