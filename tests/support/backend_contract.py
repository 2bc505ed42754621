"""What every Backend must do. One suite for all of them.

A test module subclasses ``BackendContract`` and provides two fixtures: ``backend`` (started, idle) and
``unstarted_backend``. Backends that are slow to start give ``backend`` a module scope and decorate the
subclass with ``@pytest.mark.asyncio(loop_scope="module")``; each test leaves the backend idle.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest

from headwater_engine.errors import PromptTooLong
from headwater_engine.ports import Backend, GenerateRequest, Sampling, Step

_ids = itertools.count()


class BackendContract:
    """Subclasses may override the class attributes and ``decode``."""

    prompt = "The quick brown fox jumps over the lazy dog. Tell me about"
    patience_seconds = 60.0
    endless_tokens = 400
    """Tokens of a request that is to be still running when the test ends it."""

    def decode(self, backend: Backend, token_ids: tuple[int, ...]) -> str | None:
        """The text of all tokens at once by the model's own tokenizer; None where there is no such way."""
        return None

    async def request(self, backend: Backend, prompt: str | None = None, **sampling: Any) -> GenerateRequest:
        """A request with greedy defaults."""
        ids = await backend.tokenize(prompt or self.prompt)
        values = {"max_tokens": 16, "temperature": 0.0, "ignore_eos": True} | sampling
        return GenerateRequest(id=f"contract-{next(_ids)}", prompt_token_ids=ids, sampling=Sampling(**values))

    async def endless(self, backend: Backend) -> GenerateRequest:
        """A request that only an abort ends within the test."""
        return await self.request(backend, max_tokens=self.endless_tokens)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition, with a generous deadline."""
        async with asyncio.timeout(self.patience_seconds):
            while not condition():  # noqa: ASYNC110 - a backend announces no change of its figures
                await asyncio.sleep(0.01)

    async def until_idle(self, backend: Backend) -> None:
        """Waits until nothing runs, waits or holds KV."""
        await self.until(lambda: _load(backend) == (0, 0, 0))

    # generation

    async def test_generates_exactly_max_tokens_and_finishes_by_length(self, backend: Backend) -> None:
        steps = await collect(backend, await self.request(backend, max_tokens=7))

        assert sum(len(step.token_ids) for step in steps) == 7
        assert [step.finish for step in steps if step.finish] == ["length"]
        assert steps[-1].finish == "length"

    async def test_a_single_token_is_generated(self, backend: Backend) -> None:
        steps = await collect(backend, await self.request(backend, max_tokens=1))

        assert (len(ids_of(steps)), steps[-1].finish) == (1, "length")

    async def test_a_stop_token_ends_generation_and_leaves_no_text(self, backend: Backend) -> None:
        free = await collect(backend, await self.request(backend, max_tokens=12))
        stop = next(token for token in ids_of(free)[3:] if token not in ids_of(free)[:3])
        kept = ids_of(free)[: ids_of(free).index(stop)]

        got = await collect(backend, await self.request(backend, max_tokens=12, stop_token_ids=(stop,)))

        assert got[-1].finish == "stop"
        assert ids_of(got) == (*kept, stop)
        assert text_of(free).startswith(text_of(got))
        want = self.decode(backend, kept)
        if want is not None:
            # A character that the stop cut in half is the pipeline's to deal with, not the backend's.
            assert text_of(got).rstrip("\ufffd") == want.rstrip("\ufffd")

    async def test_a_stop_token_below_min_tokens_does_not_stop(self, backend: Backend) -> None:
        free = await collect(backend, await self.request(backend, max_tokens=10))
        stop = ids_of(free)[0]

        got = await collect(backend, await self.request(backend, max_tokens=10, stop_token_ids=(stop,), min_tokens=5))

        assert len(ids_of(got)) > 5

    async def test_text_is_the_decode_of_all_tokens_and_is_never_cut_inside_a_character(self, backend: Backend) -> None:
        steps = await collect(backend, await self.request(backend, "日本の首都は東京です。🇯🇵👩‍👩‍👧", max_tokens=48))

        pieces = [step.text for step in steps if step.raw is None]
        assert not any("\ufffd" in piece for piece in pieces[:-1])
        want = self.decode(backend, ids_of(steps))
        if want is not None:
            assert text_of(steps).rstrip("\ufffd") == want.rstrip("\ufffd")

    async def test_greedy_output_repeats(self, backend: Backend) -> None:
        first = await collect(backend, await self.request(backend))
        second = await collect(backend, await self.request(backend))

        assert ids_of(first) == ids_of(second)
        assert text_of(first) == text_of(second)

    async def test_a_seed_makes_sampled_output_repeat(self, backend: Backend) -> None:
        first = await collect(backend, await self.request(backend, temperature=1.0, seed=7))
        second = await collect(backend, await self.request(backend, temperature=1.0, seed=7))

        assert ids_of(first) == ids_of(second)

    async def test_concurrent_requests_share_steps(self, backend: Backend) -> None:
        before = backend.state().step
        requests = [await self.request(backend, max_tokens=24) for _ in range(4)]

        results = await asyncio.gather(*(collect(backend, request) for request in requests))

        assert [len(ids_of(steps)) for steps in results] == [24] * 4
        assert backend.state().step - before < 4 * 24 * 0.8

    async def test_a_prompt_beyond_the_context_is_refused_before_the_first_step(self, backend: Backend) -> None:
        ids = (await backend.tokenize("word ")) * (backend.max_model_len + 1)
        request = GenerateRequest(f"contract-{next(_ids)}", ids[: backend.max_model_len + 1], Sampling(max_tokens=1))

        with pytest.raises(PromptTooLong):
            await collect(backend, request)

        await self.until_idle(backend)

    # ending early

    async def test_closing_the_iterator_aborts_and_frees_kv(self, backend: Backend) -> None:
        await self.until_idle(backend)
        async with aclosing(stream(backend, await self.endless(backend))) as steps:
            await anext(steps)
            await anext(steps)
            await self.until(lambda: backend.state().running == 1)

        await self.until_idle(backend)

    async def test_cancelling_the_reader_before_the_first_step_aborts(self, backend: Backend) -> None:
        reader = asyncio.ensure_future(collect(backend, await self.endless(backend)))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

        await self.until_idle(backend)

    async def test_abort_ends_the_iterator_without_a_finish(self, backend: Backend) -> None:
        request = await self.endless(backend)
        steps = stream(backend, request)
        got = [await anext(steps)]

        await backend.abort(request.id)
        async with asyncio.timeout(self.patience_seconds):
            got += [step async for step in steps]

        assert [step.finish for step in got if step.finish] == []
        await self.until_idle(backend)

    async def test_aborting_one_request_leaves_the_others_alone(self, backend: Backend) -> None:
        alone = ids_of(await collect(backend, await self.request(backend, max_tokens=24)))
        doomed = await self.endless(backend)
        steps = stream(backend, doomed)
        other = asyncio.ensure_future(collect(backend, await self.request(backend, max_tokens=24)))
        await anext(steps)

        await backend.abort(doomed.id)

        got = await other
        assert len(ids_of(got)) == len(alone)
        assert got[-1].finish == "length"
        await steps.aclose()
        await self.until_idle(backend)

    async def test_aborting_an_unknown_id_is_ignored(self, backend: Backend) -> None:
        await backend.abort("nobody")

    async def test_an_id_can_be_used_again_after_its_abort(self, backend: Backend) -> None:
        request = await self.endless(backend)
        steps = stream(backend, request)
        await anext(steps)
        await steps.aclose()

        again = GenerateRequest(request.id, request.prompt_token_ids, Sampling(max_tokens=5, ignore_eos=True))

        assert len(ids_of(await collect(backend, again))) == 5

    # words

    async def test_tokenize_is_stable_and_depends_on_the_text(self, backend: Backend) -> None:
        first, second = await backend.tokenize("Hello there"), await backend.tokenize("Hello there")

        assert first == second
        assert len(first) > 0
        assert await backend.tokenize("Hello here") != first

    async def test_a_chat_template_carries_every_message(self, backend: Backend) -> None:
        short = await backend.apply_chat_template([{"role": "user", "content": "Hi"}])
        long = await backend.apply_chat_template(
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        )

        assert len(short) > 0
        assert long != short

    async def test_a_chat_prompt_generates(self, backend: Backend) -> None:
        ids = await backend.apply_chat_template([{"role": "user", "content": "What is the capital of France?"}])
        request = GenerateRequest(f"contract-{next(_ids)}", ids, Sampling(max_tokens=4, ignore_eos=True))

        assert len(ids_of(await collect(backend, request))) == 4

    # figures and life

    async def test_figures_of_an_idle_backend(self, backend: Backend) -> None:
        await self.until_idle(backend)

        state = backend.state()

        assert state.suspended == 0
        assert state.kv_total_blocks is not None
        assert state.kv_total_blocks > 0
        assert state.kv_block_size_tokens is not None
        assert state.kv_block_size_tokens > 0
        assert state.ranks
        assert all(rank.alive for rank in state.ranks)
        assert backend.max_model_len > 0

    async def test_figures_while_requests_run(self, backend: Backend) -> None:
        await self.until_idle(backend)
        before = backend.state()
        async with aclosing(stream(backend, await self.endless(backend))) as steps:
            await anext(steps)
            await self.until(lambda: backend.state().running == 1)
            await self.until(lambda: (backend.state().kv_used_blocks or 0) > 0)
            during = backend.state()

            assert during.step > before.step
            assert during.last_step_monotonic is not None

        await self.until_idle(backend)

    async def test_ping_answers(self, backend: Backend) -> None:
        await backend.ping(self.patience_seconds)

    async def test_stop_is_safe_before_start_and_twice(self, unstarted_backend: Backend) -> None:
        await unstarted_backend.stop()
        await unstarted_backend.stop()


class Steps(AsyncIterator[Step]):
    """An iterator of steps that can be closed, as async generators can."""

    async def aclose(self) -> None:
        """Aborts the request."""


def stream(backend: Backend, request: GenerateRequest) -> Steps:
    """``submit``, typed as what it is: an async generator."""
    return cast("Steps", backend.submit(request))


async def collect(backend: Backend, request: GenerateRequest) -> list[Step]:
    """All steps of a request."""
    async with aclosing(stream(backend, request)) as steps:
        return [step async for step in steps]


def ids_of(steps: list[Step]) -> tuple[int, ...]:
    """All token ids in order."""
    return tuple(token for step in steps for token in step.token_ids)


def text_of(steps: list[Step]) -> str:
    """All text in order; undecoded bytes are decoded as a whole."""
    if all(step.raw is None for step in steps):
        return "".join(step.text for step in steps)
    return b"".join(piece for step in steps for piece in step.raw or ()).decode(errors="replace")


def _load(backend: Backend) -> tuple[int, int, int]:
    state = backend.state()
    return state.running, state.waiting, state.kv_used_blocks or 0
