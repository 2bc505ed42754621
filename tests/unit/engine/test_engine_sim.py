"""The simulated engine: blocks, scheduling, timing, words and scripts."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_engine.backends.sim import scripts, tokenizer
from headwater_engine.backends.sim.backend import SimBackend, SimOptions
from headwater_engine.backends.sim.blocks import BlockPool
from headwater_engine.backends.sim.faults import Faults
from headwater_engine.backends.sim.generator import Generator
from headwater_engine.backends.sim.profile import H100_LLAMA70B_TP8, PROFILES, TEST_FAST
from headwater_engine.backends.sim.scheduler import Scheduler, Sequence
from headwater_engine.clock import LoopClock
from headwater_engine.errors import BackendDead, CallerError, EngineError, LoadFailed
from headwater_engine.ports import GenerateRequest, Sampling
from support.backend_contract import collect, ids_of, stream, text_of


def sampling(max_tokens: int = 8, **values: Any) -> Sampling:
    """Greedy, without a natural end."""
    return Sampling(**({"max_tokens": max_tokens, "temperature": 0.0, "ignore_eos": True} | values))


def request(name: str, prompt: int | tuple[int, ...] = 8, max_tokens: int = 8, **values: Any) -> GenerateRequest:
    """A request whose prompt is unlike any other's, or given."""
    ids = tuple(random.Random(name).randrange(256) for _ in range(prompt)) if isinstance(prompt, int) else prompt
    return GenerateRequest(name, ids, sampling(max_tokens, **values))


def sequence(wanted: GenerateRequest) -> Sequence:
    return Sequence(wanted, Generator(wanted.prompt_token_ids, wanted.sampling, random.Random(0)))


def backend(**options: Any) -> SimBackend:
    """A simulated engine in the loop's time."""
    values: dict[str, Any] = {"profile": TEST_FAST, "load_seconds": 0} | options
    return SimBackend(
        SimOptions(**values), clock=LoopClock(), chance=random.Random(1), faults=Faults(lambda _code: None)
    )


# Scheduling, without time


def drive(scheduler: Scheduler, limit: int = 10_000) -> dict[str, list[int]]:
    """Steps until nothing is left; checks at each step what must hold always."""
    output: dict[str, list[int]] = {}
    for _ in range(limit):
        plan = scheduler.plan()
        if not plan.items:
            break
        assert sum(count for _, count in plan.items) <= scheduler._budget
        assert len({id(each) for each, _ in plan.items}) == len(plan.items)
        assert scheduler.pool.used + scheduler.pool.available == scheduler.pool.total
        for got in scheduler.commit(plan):
            output.setdefault(got.sequence.request.id, []).append(got.token)
    assert not scheduler.running
    assert not scheduler.waiting
    assert scheduler.pool.used == 0
    return output


def scheduler(*, blocks: int = 64, size: int = 4, seqs: int = 16, budget: int = 32, caching: bool = True) -> Scheduler:
    pool = BlockPool(blocks, size, prefix_caching=caching)
    return Scheduler(pool, max_num_seqs=seqs, max_num_batched_tokens=budget)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 20)), min_size=1, max_size=12),
    st.integers(13, 40),
    st.integers(1, 64),
    st.integers(1, 8),
)
def test_whatever_the_load_and_the_memory_all_finish_with_the_tokens_they_have_alone(
    sizes: list[tuple[int, int]], blocks: int, budget: int, seqs: int
) -> None:
    requests = [request(f"r{index}", prompt, output) for index, (prompt, output) in enumerate(sizes)]
    tight = scheduler(blocks=blocks, budget=budget, seqs=seqs)
    for each in requests:
        tight.add(sequence(each))

    got = drive(tight)

    for each in requests:
        alone = scheduler()
        alone.add(sequence(each))
        assert got[each.id] == drive(alone)[each.id]
        assert len(got[each.id]) == each.sampling.max_tokens


def test_prompts_are_computed_in_chunks_within_the_budget_beside_decoding() -> None:
    under_test = scheduler(budget=10)
    under_test.add(sequence(request("decoding", 4, 50)))
    list(under_test.commit(under_test.plan()))
    under_test.add(sequence(request("long", 25, 5)))

    shapes = []
    for _ in range(3):
        plan = under_test.plan()
        shapes.append([count for _, count in plan.items])
        list(under_test.commit(plan))

    assert shapes == [[1, 9], [1, 9], [1, 7]]


def test_when_memory_runs_out_the_youngest_is_preempted_and_comes_back() -> None:
    under_test = scheduler(blocks=8, size=4)
    for name in ("old", "young"):
        under_test.add(sequence(request(name, 12, 16)))

    got = drive(under_test)

    assert under_test.preemptions > 0
    assert {name: len(tokens) for name, tokens in got.items()} == {"old": 16, "young": 16}


def test_a_shared_prefix_is_computed_once() -> None:
    under_test = scheduler(budget=100)
    prompt = tuple(range(20))
    under_test.add(sequence(request("first", prompt, 1)))
    first = sum(count for _, count in _step(under_test))
    under_test.add(sequence(request("second", (*prompt, 77), 1)))

    second = sum(count for _, count in _step(under_test))

    assert (first, second) == (20, 1)
    assert under_test.pool.used == 0


def test_another_salt_shares_nothing() -> None:
    under_test = scheduler(budget=100)
    computed = []
    for salt in ("tenant-a", "tenant-b", "tenant-a"):
        wanted = GenerateRequest(salt, tuple(range(20)), sampling(1), cache_salt=salt)
        under_test.add(sequence(wanted))
        computed.append(sum(count for _, count in _step(under_test)))

    assert computed == [20, 20, 4]


def test_running_sequences_share_blocks_and_free_them_with_the_last() -> None:
    under_test = scheduler(budget=100)
    prompt = tuple(range(16))
    for name in ("a", "b"):
        under_test.add(sequence(request(name, prompt, 50)))
        _step(under_test)
    shared = under_test.pool.used

    under_test.remove(under_test.running[0])
    left = under_test.pool.used
    under_test.remove(under_test.running[0])

    # Three full blocks are shared; the fourth, which holds the last prompt token, is each one's own.
    assert shared == left + 2
    assert under_test.pool.used == 0


def test_cached_blocks_are_given_up_when_their_place_is_needed() -> None:
    under_test = scheduler(blocks=4, size=4, budget=100)
    for name in "abcdef":
        under_test.add(sequence(request(name, 14, 1)))
        _step(under_test)

    assert under_test.pool.used == 0
    assert under_test.pool.available == 4


def test_a_held_sequence_keeps_its_blocks_and_is_left_out() -> None:
    under_test = scheduler()
    held = sequence(request("held", 8, 8))
    under_test.add(held)
    _step(under_test)
    held.held = lambda: True
    blocks = under_test.pool.used
    under_test.add(sequence(request("other", 8, 8)))

    for _ in range(8):
        _step(under_test)

    assert under_test.running == [held]
    assert under_test.pool.used == blocks
    assert under_test.plan().items == []


def _step(under_test: Scheduler) -> list[tuple[Sequence, int]]:
    plan = under_test.plan()
    list(under_test.commit(plan))
    return plan.items


# Timing


@pytest.mark.parametrize(
    ("decoding", "prefill", "measured_ms"),
    [
        (1, 0, 30), (8, 0, 32.5), (16, 0, 34.2), (32, 0, 38.6), (64, 0, 50.2),
        (0, 512, 54), (0, 1024, 78), (0, 2048, 137), (0, 4096, 390), (0, 8192, 845), (0, 32768, 2936),
    ],
)  # fmt: skip
def test_the_default_profile_is_within_5_percent_of_the_measurements(
    decoding: int, prefill: int, measured_ms: float
) -> None:
    got = H100_LLAMA70B_TP8.step_seconds(decoding, prefill) * 1000

    assert got == pytest.approx(measured_ms, rel=0.05)


def test_the_default_profile_holds_the_kv_of_eight_gpus() -> None:
    assert 1_300_000 < H100_LLAMA70B_TP8.kv_tokens < 1_400_000


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: str(profile.name))
def test_more_work_never_takes_less_time(profile: Any) -> None:
    seconds = [profile.step_seconds(4, tokens) for tokens in range(0, 40_000, 97)]

    assert seconds == sorted(seconds)


@pytest.mark.looptime
@pytest.mark.parametrize(("scale", "want"), [(1.0, 3.06), (10.0, 0.306)])
async def test_time_scale_divides_every_duration(scale: float, want: float) -> None:
    engine = backend(profile=H100_LLAMA70B_TP8, time_scale=scale)
    await engine.start()
    begun = LoopClock().now()

    await collect(engine, request("one", 1, 101))

    assert LoopClock().now() - begun == pytest.approx(want, rel=0.02)
    await engine.stop()


# Words


@given(st.text())
def test_any_text_decodes_to_itself(text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)).decode() == text


@given(st.lists(st.sampled_from(tokenizer.WORDS), min_size=1))
def test_common_words_are_one_token_each(words: list[str]) -> None:
    assert len(tokenizer.encode("".join(f" {word}" for word in words))) == len(words)


@pytest.mark.looptime
async def test_text_depends_on_prompt_and_seed_alone() -> None:
    engine = backend()
    await engine.start()

    async def text(prompt: str, **values: Any) -> str:
        ids = await engine.tokenize(prompt)
        name = str(random.random())
        return text_of(await collect(engine, GenerateRequest(name, ids, sampling(30, **values))))

    greedy = await text("Hello")
    assert await text("Hello") == greedy
    assert await text("Hello there") != greedy
    assert await text("Hello", temperature=1.0, seed=1) == await text("Hello", temperature=1.0, seed=1)
    assert await text("Hello", temperature=1.0, seed=1) != await text("Hello", temperature=1.0, seed=2)
    assert await text("Hello", temperature=1.0) != await text("Hello", temperature=1.0)
    await engine.stop()


@pytest.mark.looptime
async def test_text_ends_by_itself_and_not_before_min_tokens() -> None:
    engine = backend()
    await engine.start()
    for minimum in (0, 400):
        values = sampling(2000, ignore_eos=False, min_tokens=minimum)
        steps = await collect(engine, GenerateRequest(f"r{minimum}", tokenizer.encode("Hi"), values))

        assert steps[-1].finish == "stop"
        assert len(ids_of(steps)) > max(minimum, 15)
    await engine.stop()


@pytest.mark.looptime
async def test_a_banned_token_is_not_generated() -> None:
    engine = backend()
    await engine.start()
    prompt = tokenizer.encode("Hello")
    banned = ids_of(await collect(engine, GenerateRequest("free", prompt, sampling(40))))[5]

    bias = {banned: -100.0}
    got = ids_of(await collect(engine, GenerateRequest("banned", prompt, sampling(40, logit_bias=bias))))

    assert banned not in got
    await engine.stop()


# Scripts


@pytest.mark.parametrize(
    ("script", "want"),
    [
        ([5], r"headwater_script\[0\] is not an object"),
        ([{"tokens": []}, {"token": ["a"]}], r"headwater_script\[1\] has unknown fields: token"),
        ([{"tokens": "a"}], "not a list"),
        ([{"tokens": [5]}], "neither a text nor"),
        ([{"tokens": [{"b64": "!"}]}], "neither a text nor"),
        ([{"delay_ms": -1}], "delay_ms"),
        ([{"delay_ms": True}], "delay_ms"),
        ([{"finish": "done"}], "finish"),
        ([{"error": 5}], "error"),
    ],
)
def test_a_wrong_script_is_refused_with_its_step(script: list[Any], want: str) -> None:
    with pytest.raises(CallerError, match=want):
        scripts.parse(script)


@pytest.mark.looptime
async def test_a_script_is_played_in_its_own_time() -> None:
    engine = backend()
    await engine.start()
    script = [
        {"tokens": ["a", {"b64": "8J8="}], "delay_ms": 2000},
        {"tokens": ["b"], "delay_ms": 500, "finish": "stop"},
    ]
    begun, times = LoopClock().now(), []
    async with aclosing(stream(engine, GenerateRequest("s", (1,), sampling(), script=script))) as steps:
        got = []
        async for step in steps:
            got.append((step.raw, step.finish))
            times.append(LoopClock().now() - begun)

    assert got == [((b"a", b"\xf0\x9f"), None), ((b"b",), "stop")]
    assert times == pytest.approx([2.0, 2.5])
    await engine.stop()


@pytest.mark.looptime
async def test_a_script_without_finish_hangs_until_its_abort() -> None:
    engine = backend()
    await engine.start()
    steps = stream(engine, GenerateRequest("s", (1,), sampling(), script=[{"tokens": ["a"]}]))
    await anext(steps)
    waiting = asyncio.ensure_future(anext(steps))
    await asyncio.sleep(3600)
    assert not waiting.done()
    assert engine.state().running == 1

    await engine.abort("s")

    with pytest.raises(StopAsyncIteration):
        await waiting
    assert engine.state().running == 0
    await engine.stop()


# Failures


async def test_a_model_that_does_not_load() -> None:
    with pytest.raises(LoadFailed, match="no weights"):
        await backend(load_error="no weights").start()


async def test_nothing_is_served_before_start_and_after_stop() -> None:
    engine = backend()
    with pytest.raises(BackendDead):
        await collect(engine, request("early"))
    await engine.start()
    await engine.stop()
    with pytest.raises(BackendDead):
        await collect(engine, request("late"))


@pytest.mark.looptime
async def test_out_of_memory_fails_every_request_and_ping() -> None:
    engine = backend()
    await engine.start()
    running = [asyncio.ensure_future(collect(engine, request(f"r{index}", 8, 4000))) for index in range(3)]
    await asyncio.sleep(1)
    engine.inject({"fault": "oom"})

    results = await asyncio.gather(*running, return_exceptions=True)

    assert [type(each) for each in results] == [BackendDead] * 3
    with pytest.raises(BackendDead):
        await engine.ping(1)
    assert engine.state().kv_used_blocks == 0
    await engine.stop()


@pytest.mark.looptime
async def test_a_hang_stops_steps_and_pings_until_it_is_cleared() -> None:
    engine = backend()
    await engine.start()
    running = asyncio.ensure_future(collect(engine, request("r", 8, 500)))
    await asyncio.sleep(0.1)
    engine.inject({"fault": "hang"})
    before = engine.state().step
    with pytest.raises(TimeoutError):
        await engine.ping(5)
    assert engine.state().step == before

    engine.inject({"fault": "clear"})

    assert len(ids_of(await running)) == 500
    await engine.stop()


@pytest.mark.looptime
async def test_the_slow_fault_stretches_steps() -> None:
    engine = backend()
    await engine.start()
    engine.inject({"fault": "slow", "factor": 50})
    begun = LoopClock().now()

    await collect(engine, request("r", 1, 11))

    assert LoopClock().now() - begun == pytest.approx(0.002 * 50 * 11, rel=0.05)
    await engine.stop()


@pytest.mark.looptime
async def test_a_reader_that_stops_is_left_out_with_a_bounded_mailbox() -> None:
    engine = backend(mailbox_steps=10)
    await engine.start()
    async with aclosing(stream(engine, request("slow", 8, 1000))) as steps:
        await anext(steps)
        await asyncio.sleep(60)
        state = engine.state()
        assert (state.running, state.suspended) == (1, 1)
        assert state.step <= 12

        got = 1 + len([step async for step in steps])

    assert got == 1000
    await engine.stop()


@pytest.mark.looptime
async def test_an_id_in_flight_is_refused() -> None:
    engine = backend()
    await engine.start()
    async with aclosing(stream(engine, request("twice", 8, 1000))) as steps:
        await anext(steps)
        with pytest.raises(EngineError):
            await collect(engine, request("twice"))
        # The refusal must not have ended the first one.
        assert (await anext(steps)).token_ids
    await engine.stop()
