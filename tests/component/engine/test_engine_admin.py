"""The admin port: who may use it, and what it tells."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater_contracts.admin import EnginePhase, EngineState, group_token, token_digest
from support.engine_process import EngineProcess, chat, finish_reasons, frames_of, raw_request, tokens, wait_for

CHAT = "/v1/chat/completions"
Start = Callable[..., EngineProcess]


async def ask(engine: EngineProcess, **fields: object) -> None:
    """One short request."""
    async with raw_request(engine, CHAT, chat(max_tokens=5, ignore_eos=True, **fields)) as response:  # type: ignore[arg-type]
        await response.read_head()
        await response.body()


async def test_the_state_is_what_the_contract_parses(engine: EngineProcess) -> None:
    await ask(engine)

    state = EngineState.from_json(engine.state())

    assert (state.phase, state.healthy, state.admitting) == (EnginePhase.READY, True, True)
    assert (state.group, state.backend, state.model) == ("test-group", "sim", "default")
    assert state.kv_total_blocks == 4096
    assert [rank.alive for rank in state.ranks] == [True]
    assert state.ttft is not None
    assert state.itl is not None
    assert sum(state.ttft.counts) >= 1
    assert sum(state.itl.counts) >= 4


async def test_the_token_opens_the_admin_port_and_nothing_else_does(start: Start) -> None:
    token = group_token(secrets.token_bytes(32), "ns", "g")
    engine = start(ready=False, ADMIN_TOKEN_SHA256=token_digest(token))
    await wait_for(lambda: engine.get("/readyz").status_code == 200)
    url = f"{engine.admin_url}/admin/state"

    refused = [{}, {"authorization": "Bearer wrong"}, {"authorization": token}, {"authorization": f"Basic {token}"}]
    assert [engine.client.get(url, headers=headers).status_code for headers in refused] == [401] * 4
    assert engine.admin("/admin/drain").status_code == 401
    assert engine.client.get(f"{engine.admin_url}/metrics").status_code == 200

    answer = engine.client.get(url, headers={"authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["phase"]) == (200, "ready")
    assert token not in engine.log.read_text()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/admin/drain", {"timeout_seconds": -1}),
        ("/admin/drain", {"timeout_seconds": "5"}),
        ("/admin/drain", {"settle_seconds": True}),
        ("/admin/faults", {"fault": "flood"}),
        ("/admin/faults", {}),
        ("/admin/faults", {"fault": "stall"}),
        ("/admin/faults", {"fault": "slow", "factor": "x"}),
        ("/admin/faults", {"fault": "crash", "exit_code": 256}),
        ("/admin/faults", {"fault": "crash", "exit_code": 1e300}),
    ],
)
def test_bad_admin_bodies_are_refused_and_change_nothing(
    engine: EngineProcess, path: str, body: dict[str, object]
) -> None:
    answer = engine.admin(path, **body)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert engine.state()["phase"] == "ready"


async def test_metrics_have_vllms_names_and_count(engine: EngineProcess) -> None:
    def value(name: str) -> float:
        families = text_string_to_metric_families(engine.metrics())
        return sum(sample.value for family in families for sample in family.samples if sample.name == name)

    names = [
        "vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_count",
        "vllm:inter_token_latency_seconds_count", "vllm:e2e_request_latency_seconds_count",
    ]  # fmt: skip
    before = [value(name) for name in names]
    await ask(engine)

    assert [value(name) - old for name, old in zip(names, before, strict=True)] == [5, 1, 4, 1]
    assert value("vllm:prompt_tokens_total") > 0
    async with raw_request(engine, CHAT, chat(max_tokens=4000, ignore_eos=True)) as response:
        await response.read_head()
        await wait_for(lambda: value("vllm:num_requests_running") == 1 and value("vllm:kv_cache_usage_perc") > 0)


async def test_errors_fault_fails_the_next_requests_alone(engine: EngineProcess) -> None:
    engine.admin("/admin/faults", fault="errors", count=1)

    codes = []
    for _ in range(2):
        async with raw_request(engine, CHAT, chat(max_tokens=1, stream=False)) as response:
            await response.read_head()
            codes.append(response.status)

    assert codes == [500, 200]


async def test_stall_fault_holds_requests_at_their_nth_token_until_cleared(engine: EngineProcess) -> None:
    engine.admin("/admin/faults", fault="stall", after_tokens=3)
    # A seed whose first tokens are whole words: half a character would be a token without a chunk.
    async with raw_request(engine, CHAT, chat(max_tokens=8, ignore_eos=True, seed=1)) as response:
        await response.read_head()
        chunks, texts, silence = response.chunks(), 0, 0
        while silence < 2:
            comment = (await anext(chunks)).startswith(b":")
            texts, silence = texts + (not comment), silence + 1 if comment and texts == 3 else 0
        engine.admin("/admin/faults", fault="clear")
        rest = frames_of(b"".join([chunk async for chunk in chunks]))

    assert texts == 3
    assert finish_reasons(rest) == ["length"]


async def test_garbage_fault_still_yields_wellformed_text(engine: EngineProcess) -> None:
    engine.admin("/admin/faults", fault="garbage")
    try:
        async with raw_request(engine, CHAT, chat(max_tokens=200, ignore_eos=True)) as response:
            await response.read_head()
            assert finish_reasons(frames_of(await response.body())) == ["length"]
    finally:
        engine.admin("/admin/faults", fault="clear")


async def test_prompts_and_answers_are_never_logged(engine: EngineProcess) -> None:
    body = chat(tokens("zebrafish", finish="stop"), messages=[{"role": "user", "content": "flamingo"}])
    for each in (body, body | {"temperature": 9}, body | {"stop": [""]}):
        async with raw_request(engine, CHAT, each) as response:
            await response.read_head()
            await response.body()

    text = engine.log.read_text()
    assert "flamingo" not in text
    assert "zebrafish" not in text


async def test_too_many_waiting_requests_get_429_and_a_later_one_is_served(start: Start) -> None:
    engine = start(MAX_WAITING="2")
    engine.admin("/admin/faults", fault="hang")
    async with (
        raw_request(engine, CHAT, chat(max_tokens=2)) as first,
        raw_request(engine, CHAT, chat(max_tokens=2)) as second,
    ):
        await first.read_head()
        await second.read_head()
        async with raw_request(engine, CHAT, chat(max_tokens=2)) as third:
            await third.read_head()
        engine.admin("/admin/faults", fault="clear")
        await first.body()
        await second.body()

    assert (third.status, third.headers["x-headwater-reason"]) == (429, "too_many_waiting")
    assert int(third.headers["retry-after"]) > 0
    await ask(engine)
