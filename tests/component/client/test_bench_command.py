"""``headwater bench`` as a process: concurrency, errors by kind, JSON, exit codes."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema

from support import headwater_command as headwater
from support.scripted_sse import DONE, Exchange, chunk_event, scripted_server

ANSWER = (chunk_event("a"), chunk_event("b"), chunk_event("c", finish="stop"), chunk_event(usage=(9, 5)), DONE)


async def _answer(exchange: Exchange) -> None:
    await exchange.stream(*ANSWER)


def _parsed(out: str) -> dict[str, Any]:
    """The JSON result, which must follow the documented schema."""
    page = Path(__file__).parents[3] / "docs/reference/bench.md"
    (schema,) = re.findall(r"```json schema\n(.*?)```", page.read_text(), re.DOTALL)
    got: dict[str, Any] = json.loads(out)
    jsonschema.Draft202012Validator(json.loads(schema)).validate(got)
    return got


async def test_the_asked_number_of_streams_is_open_at_once_and_no_more() -> None:
    """No answer goes on before four streams are open: fewer would hang, more would be counted."""
    open_now, most = 0, 0
    batch = asyncio.Barrier(4)

    async def script(exchange: Exchange) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        async with asyncio.timeout(60):
            await batch.wait()
        open_now -= 1
        await exchange.stream(*ANSWER)

    async with scripted_server(script) as server:
        got = await headwater.run("bench", "--url", server.url, "-c", "4", "-n", "12", "--max-tokens", "7", "--json")
        bodies = [exchange.json for exchange in server.exchanges if exchange.method == "POST"]
    assert got.code == 0, got.err
    report = _parsed(got.out)
    assert most == 4
    assert {body["max_tokens"] for body in bodies} == {7}
    assert report["requests"]["succeeded"] == 12
    assert report["tokens"] == report["tokens"] | {"prompt": 108, "output": 60, "counted_by": "usage"}
    assert report["ttft_seconds"]["count"] == 12
    assert report["itl_seconds"]["count"] == 24


async def test_errors_are_counted_by_kind_beside_the_streams_that_succeeded() -> None:
    replies = iter(("ok", "503", "in_band", "truncated", "timeout", "protocol", "connect", "503", "ok"))

    async def script(exchange: Exchange) -> None:
        match next(replies):
            case "ok":
                await exchange.stream(*ANSWER)
            case "503":
                await exchange.respond_json({"error": {"message": "busy"}}, "503 Service Unavailable")
            case "in_band":
                await exchange.stream(ANSWER[0], b'data: {"error": {"message": "dead"}}\n\n', DONE)
            case "truncated":
                await exchange.stream(ANSWER[0])
            case "timeout":
                await exchange.disconnected()
            case "protocol":
                await exchange.stream(b"data: nonsense\n\n")
            case "connect":
                exchange.hang_up()

    async with scripted_server(script) as server:
        got = await headwater.run(
            "bench", "--url", server.url, "--model", "m", "-c", "1", "-n", "9", "--timeout", "2", "--json"
        )
    assert got.code == 0, "some requests succeeded"
    report = _parsed(got.out)
    assert report["requests"] == report["requests"] | {"total": 9, "succeeded": 2, "failed": 7}
    assert report["errors"]["by_kind"] == {
        "connect": 1, "http": 2, "in_band": 1, "truncated": 1, "timeout": 1, "protocol": 1,
    }  # fmt: skip
    assert report["errors"]["by_status"] == {"503": 2}
    assert report["tokens"]["output"] == 10, "failed streams add no tokens"


async def test_a_run_in_which_every_request_failed_exits_1_and_still_reports() -> None:
    async with scripted_server(lambda exchange: exchange.respond_json({"detail": "no"}, "500 Oops")) as server:
        got = await headwater.run("bench", "--url", server.url, "-n", "3", "--json")
        table = await headwater.run("bench", "--url", server.url, "-n", "3")
    assert got.code == 1
    assert _parsed(got.out)["errors"]["by_kind"]["http"] == 3
    assert table.code == 1
    assert "errors: http 3" in table.out
    assert "500: no" in table.out


async def test_an_unreachable_server_exits_1_with_advice() -> None:
    async with scripted_server(_answer) as server:
        url = server.url
    got = await headwater.run("bench", "--url", url, "--json")
    assert (got.code, got.out) == (1, "")
    assert "Connection refused" in got.err


async def test_the_table_names_each_latency() -> None:
    async with scripted_server(_answer) as server:
        got = await headwater.run("bench", "--url", server.url, "-n", "2", "-c", "1")
    assert got.code == 0, got.err
    for want in ("TTFT", "ITL", "TPOT", "E2E", "p50", "p99", "2 of 2 requests whole", "10 tokens (by usage)"):
        assert want in got.out
    assert got.err == "", "no progress bar without a terminal"


async def test_prompts_of_a_given_length_differ_and_a_given_prompt_is_repeated() -> None:
    async with scripted_server(_answer) as server:
        await headwater.run("bench", "--url", server.url, "--model", "m", "-n", "4", "--prompt-tokens", "50")
        await headwater.run("bench", "--url", server.url, "--model", "m", "-n", "4", "--prompt", "same", "--ignore-eos")
        bodies = [exchange.json for exchange in server.exchanges]
    prompts = Counter(body["messages"][0]["content"] for body in bodies)
    assert sorted(prompts.values()) == [1, 1, 1, 1, 4]
    assert prompts["same"] == 4
    assert [body.get("ignore_eos") for body in bodies] == [None] * 4 + [True] * 4


async def test_ctrl_c_prints_the_figures_so_far_and_exits_130() -> None:
    replies, second = iter(range(9)), asyncio.Event()

    async def script(exchange: Exchange) -> None:
        if next(replies) == 0:
            await exchange.stream(*ANSWER)
        else:
            second.set()
            await exchange.disconnected()

    async with scripted_server(script) as server:
        process = await headwater.start("bench", "--url", server.url, "--model", "m", "-c", "1", "-n", "5", "--json")
        async with asyncio.timeout(60):
            await second.wait()
        process.send_signal(signal.SIGINT)
        got = await headwater.finish(process)
    assert got.code == 130
    report = _parsed(got.out)
    assert report["interrupted"] is True
    assert report["requests"]["total"] == 1
