"""Real vLLM on CPU passes the suite of every backend, and does what only it can be asked for.

One engine serves the module: a start costs a minute.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from headwater_engine.backends.vllm import create_backend, private
from headwater_engine.errors import CallerError, LoadFailed
from headwater_engine.ports import Backend, GenerateRequest, Sampling
from support.backend_contract import BackendContract, collect, ids_of, text_of
from support.vllm_engine import needs_vllm, vllm_settings

pytestmark = [*needs_vllm, pytest.mark.asyncio(loop_scope="module")]

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
JAPAN = [{"role": "user", "content": "日本の首都は？ Answer in Japanese with emoji"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[Backend]:
    started = create_backend(vllm_settings())
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
def unstarted_backend() -> Backend:
    return create_backend(vllm_settings())


class TestVllmBackend(BackendContract):
    def decode(self, backend: Backend, token_ids: tuple[int, ...]) -> str | None:
        return cast("str", backend._encoder.decode(list(token_ids), skip_special_tokens=True))  # type: ignore[attr-defined]


async def _chat(
    backend: Backend, request_id: str, messages: list[dict[str, str]], **sampling: object
) -> GenerateRequest:
    ids = await backend.apply_chat_template(messages)
    values = {"max_tokens": 24, "temperature": 0.0} | sampling
    return GenerateRequest(request_id, ids, Sampling(**values))  # type: ignore[arg-type]


async def test_the_quickstart_model_knows_the_capital_of_france(backend: Backend) -> None:
    got = await collect(backend, await _chat(backend, "france", FRANCE))

    assert "Paris" in text_of(got)
    assert got[-1].finish == "stop"


async def test_tokens_come_as_they_are_made(backend: Backend) -> None:
    got = await collect(backend, await _chat(backend, "steps", FRANCE, ignore_eos=True))

    # vLLM joins what a reader that a busy machine held up has not taken yet, so not all are alone.
    assert sum(len(step.token_ids) for step in got) == 24
    assert len(got) > 24 / 2


async def test_text_does_not_depend_on_what_else_runs(backend: Backend) -> None:
    async def answer(request_id: str, question: str) -> str:
        messages = [{"role": "user", "content": question}]
        return text_of(await collect(backend, await _chat(backend, request_id, messages, max_tokens=40)))

    questions = [f"Tell me a story about the number {n}." for n in range(6)]
    want = [await answer(f"solo-{n}", question) for n, question in enumerate(questions)]

    got = await asyncio.gather(*(answer(f"together-{n}", question) for n, question in enumerate(questions)))

    assert list(got) == want


async def test_output_that_ends_inside_a_character_ends_with_one_replacement_character(backend: Backend) -> None:
    whole = await collect(backend, await _chat(backend, "whole", JAPAN, ignore_eos=True))
    # The number of tokens at which vLLM still held back the start of a character.
    cut = next(n for n, step in enumerate(whole, start=1) if not step.text)

    got = await collect(backend, await _chat(backend, "cut", JAPAN, ignore_eos=True, max_tokens=cut))

    assert text_of(got) == text_of(whole[:cut]) + "\ufffd"


async def test_a_salted_prompt_generates_the_same(backend: Backend) -> None:
    plain = await _chat(backend, "plain", FRANCE)
    salted = GenerateRequest("salted", plain.prompt_token_ids, plain.sampling, cache_salt="tenant-a")

    assert ids_of(await collect(backend, salted)) == ids_of(await collect(backend, plain))


@pytest.mark.parametrize(
    ("prompt", "sampling", "names"),
    [
        ((), Sampling(max_tokens=1), "prompt is empty"),
        ((999_999,), Sampling(max_tokens=1), "999999"),
        ((1,), Sampling(max_tokens=1, temperature=-1.0), "temperature"),
        ((1,), Sampling(max_tokens=1, stop_token_ids=(999_999,)), "stop_token_ids"),
        ((1,), Sampling(max_tokens=1, logit_bias={999_999: 1.0}), "logit_bias"),
    ],
    ids=["empty-prompt", "token-beyond-vocabulary", "temperature", "stop-token", "logit-bias"],
)
async def test_what_vllm_refuses_is_the_callers_error(
    backend: Backend, prompt: tuple[int, ...], sampling: Sampling, names: str
) -> None:
    with pytest.raises(CallerError, match=names):
        await collect(backend, GenerateRequest("wrong", prompt, sampling))


async def test_a_stopped_worker_does_not_answer_pings_even_when_idle(backend: Backend) -> None:
    worker = backend.state().ranks[0].pid
    assert worker is not None
    os.kill(worker, signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError):
            await backend.ping(1.0)
    finally:
        os.kill(worker, signal.SIGCONT)

    await backend.ping(60.0)
    assert text_of(await collect(backend, await _chat(backend, "after", FRANCE)))


async def test_every_name_that_is_used_exists_in_the_installed_vllm(backend: Backend) -> None:
    version = private.installed_version()

    private.check_version(version)
    private.check_names(version)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"extra_args": {"nonsense": "1"}}, "nonsense"),
        ({"extra_args": {"max-num-seqs": "many"}}, "max-num-seqs"),
        ({"model_path": "/nowhere"}, "/nowhere"),
    ],
    ids=["unknown-argument", "wrong-type", "no-model"],
)
async def test_a_load_that_cannot_work_fails_with_the_cause(
    backend: Backend, changes: dict[str, object], names: str
) -> None:
    other = create_backend(vllm_settings(**changes))

    with pytest.raises(LoadFailed, match=names):
        await other.start()
