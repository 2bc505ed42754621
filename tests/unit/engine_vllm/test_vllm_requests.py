"""What the backend makes of vLLM's deltas, of aborts and of a dead process. vLLM itself is scripted here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from headwater_engine.backends.vllm.backend import VllmBackend
from headwater_engine.backends.vllm.private import Delta, Engine
from headwater_engine.backends.vllm.processes import Member
from headwater_engine.errors import BackendDead, EngineError, PromptTooLong
from headwater_engine.ports import GenerateRequest, Sampling, Step
from headwater_engine.settings import EngineSettings

BYTES = {1: b"a", 2: b"\xe6\x97", 3: b"\xa5", 4: b"<eos>"}


class Tokenizer:
    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return b"".join(BYTES[each] for each in ids if each != 4).decode(errors="replace")


class ScriptedEngine:
    """Yields what a test puts; ``fail_all`` ends every stream as vLLM does."""

    max_model_len = 100
    vocab_size = 50
    total_blocks = 10
    block_size = 32
    tokenizer = Tokenizer()

    def __init__(self) -> None:
        self.outputs: asyncio.Queue[Delta | Exception] = asyncio.Queue()
        self.begun = asyncio.Event()
        self.submitted: list[str] = []
        self.aborted: list[str] = []
        self.closed = 0

    async def generate(self, request: GenerateRequest, request_id: str) -> AsyncIterator[Delta]:
        self.submitted.append(request_id)
        self.begun.set()
        finished = False
        try:
            while not finished:
                output = await self.outputs.get()
                if isinstance(output, Exception):
                    raise output
                finished = output.finish is not None
                yield output
        finally:
            self.closed += 1

    async def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)

    def fail_all(self) -> None:
        self.outputs.put_nowait(BackendDead("vLLM's engine process is dead"))


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
async def backend(engine: ScriptedEngine) -> VllmBackend:
    made = VllmBackend(EngineSettings(backend="vllm", model_path="/models/m"))
    made._engine = cast("Engine", engine)
    return made


def request(name: str = "r", *, prompt: int = 1, max_tokens: int = 9) -> GenerateRequest:
    return GenerateRequest(name, (1,) * prompt, Sampling(max_tokens=max_tokens))


async def collect(backend: VllmBackend, engine: ScriptedEngine, *deltas: Delta) -> list[Step]:
    for delta in deltas:
        engine.outputs.put_nowait(delta)
    async with asyncio.timeout(10):
        return [step async for step in backend.submit(request())]


async def test_deltas_become_steps(backend: VllmBackend, engine: ScriptedEngine) -> None:
    got = await collect(backend, engine, Delta((1,), "a", None), Delta((1, 1), "aa", "length"))

    assert got == [Step((1,), "a"), Step((1, 1), "aa", "length")]


@pytest.mark.parametrize(
    ("last", "want"),
    [
        (Delta((2,), "", "length"), Step((2,), "\ufffd", "length")),
        (Delta((2, 3), "日", "length"), Step((2, 3), "日", "length")),
        (Delta((2, 4), "", "stop"), Step((2, 4), "\ufffd", "stop")),
        (Delta((4,), "", "stop"), Step((4,), "", "stop")),
        (Delta((1, 2), "", "stop"), Step((1, 2), "", "stop")),
    ],
    ids=["cut-at-the-limit", "whole", "cut-before-the-end", "nothing-held", "a-stop-token-has-no-text"],
)
async def test_a_character_cut_at_the_end_is_one_replacement_character(
    backend: VllmBackend, engine: ScriptedEngine, last: Delta, want: Step
) -> None:
    got = await collect(backend, engine, Delta((1,), "a", None), last)

    assert got[-1] == want


async def test_each_request_has_an_id_in_vllm_that_was_never_used(backend: VllmBackend, engine: ScriptedEngine) -> None:
    for _ in range(2):
        await collect(backend, engine, Delta((1,), "a", "length"))

    assert len(set(engine.submitted)) == 2


async def test_an_abort_ends_the_stream_even_if_vllm_did_not_know_the_request_yet(
    backend: VllmBackend, engine: ScriptedEngine
) -> None:
    reader = asyncio.ensure_future(collect(backend, engine))
    await engine.begun.wait()

    await backend.abort("r")
    engine.outputs.put_nowait(Delta((1,), "a", None))

    assert await reader == []
    assert (engine.aborted, engine.closed) == (engine.submitted, 1)


async def test_a_stream_that_vllm_aborts_ends_without_a_finish(backend: VllmBackend, engine: ScriptedEngine) -> None:
    got = await collect(backend, engine, Delta((1,), "a", None), Delta((), "", "abort"))

    assert got == [Step((1,), "a")]


async def test_vllms_error_is_an_engine_error_and_no_finish(backend: VllmBackend, engine: ScriptedEngine) -> None:
    with pytest.raises(EngineError, match="error"):
        await collect(backend, engine, Delta((), "", "error"))


@pytest.mark.parametrize(("prompt", "max_tokens", "param"), [(101, 1, "prompt"), (60, 41, "max_tokens")])
async def test_what_does_not_fit_the_context_is_refused_unseen_by_vllm(
    backend: VllmBackend, engine: ScriptedEngine, prompt: int, max_tokens: int, param: str
) -> None:
    with pytest.raises(PromptTooLong) as refused:
        await anext(backend.submit(request(prompt=prompt, max_tokens=max_tokens)))

    assert refused.value.param == param
    assert engine.submitted == []


async def test_what_just_fits_the_context_is_served(backend: VllmBackend, engine: ScriptedEngine) -> None:
    engine.outputs.put_nowait(Delta((1,), "a", "length"))

    assert await anext(backend.submit(request(prompt=60, max_tokens=40))) == Step((1,), "a", "length")


async def test_a_dead_rank_ends_streams_with_its_name_and_refuses_new_ones(
    backend: VllmBackend, engine: ScriptedEngine
) -> None:
    ranks = (Member(101, 1, 100), Member(102, 2, 100))
    backend._ranks = ranks
    reader: Any = asyncio.ensure_future(collect(backend, engine))
    await engine.begun.wait()

    backend._process_exited(ranks[1])

    with pytest.raises(BackendDead, match=r"rank 1 \(pid 102\)"):
        await reader
    with pytest.raises(BackendDead, match="rank 1"):
        await anext(backend.submit(request()))
    with pytest.raises(BackendDead, match="rank 1"):
        await backend.ping(1.0)
    assert [rank.alive for rank in backend.state().ranks] == [True, False]
    assert backend.state().running == 0


async def test_nothing_is_served_before_the_model_is_loaded() -> None:
    unloaded = VllmBackend(EngineSettings(backend="vllm", model_path="/models/m"))

    with pytest.raises(BackendDead, match="not loaded"):
        await anext(unloaded.submit(request()))
    assert unloaded.state().kv_total_blocks is None
    assert unloaded.state().ranks == ()
