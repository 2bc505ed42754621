"""The verdict, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from headwater_contracts.admin import RankState
from headwater_engine.clock import LoopClock
from headwater_engine.core.lifecycle import Failure
from headwater_engine.core.watchdog import Watchdog, WatchdogRules
from headwater_engine.errors import BackendDead
from headwater_engine.ports import BackendState, GenerateRequest, Step

pytestmark = pytest.mark.looptime
RULES = WatchdogRules(interval=5.0, failure_threshold=3)


class FakeBackend:
    """Steps, answers and ranks as the test says."""

    max_model_len = 100

    def __init__(self) -> None:
        self.step = 0
        self.tests = 0
        self.hung = False
        self.dead: str | None = None
        self.ranks: tuple[RankState, ...] = (RankState(0, alive=True),)

    def state(self) -> BackendState:
        return BackendState(self.step, 0, 0, 0, 0, 10, 16, None, self.ranks)

    async def ping(self, deadline_seconds: float) -> None:
        if self.dead is not None:
            raise BackendDead(self.dead)
        if self.hung:
            await asyncio.sleep(deadline_seconds * 10)

    async def test(self) -> None:
        self.tests += 1
        if self.dead is not None:
            raise BackendDead(self.dead)
        while self.hung:  # noqa: ASYNC110 - in virtual time nobody waits
            await asyncio.sleep(0.1)
        self.step += 1

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def submit(self, request: GenerateRequest) -> AsyncIterator[Step]:
        raise NotImplementedError

    async def abort(self, request_id: str) -> None: ...

    async def tokenize(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        raise NotImplementedError

    async def apply_chat_template(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        raise NotImplementedError


class JumpingClock(LoopClock):
    """Jumps ahead, as time does for a process that was paused."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


async def verdict_within(
    backend: FakeBackend, seconds: float, clock: LoopClock | None = None
) -> tuple[Failure, float] | None:
    """The failure and when it was found; None if there was none."""
    clock, found = clock or LoopClock(), []
    watchdog = Watchdog(backend, RULES, backend.test, clock)
    begun = clock.now()
    try:
        async with asyncio.timeout(seconds):
            await watchdog.run(lambda failure: found.append((failure, clock.now() - begun)))
    except TimeoutError:
        return None
    return found[0]


async def step_every(backend: FakeBackend, seconds: float) -> None:
    """A busy engine."""
    while True:
        await asyncio.sleep(seconds)
        if not backend.hung:
            backend.step += 1


async def test_an_idle_engine_is_tested_once_an_interval_and_lives() -> None:
    backend = FakeBackend()

    assert await verdict_within(backend, 600) is None
    assert 100 <= backend.tests <= 120


@pytest.mark.parametrize("pause", [0.2, 1.0, 4.0])
async def test_a_busy_engine_is_never_tested(pause: float) -> None:
    backend = FakeBackend()
    async with asyncio.TaskGroup() as group:
        stepping = group.create_task(step_every(backend, pause))

        assert await verdict_within(backend, 600) is None
        stepping.cancel()

    assert backend.tests == 0


@pytest.mark.parametrize("at", [0.1, 4.9, 5.1, 12.0, 33.3])
async def test_a_hang_is_found_within_the_promised_time(at: float) -> None:
    backend = FakeBackend()
    asyncio.get_running_loop().call_later(at, setattr, backend, "hung", True)

    found = await verdict_within(backend, 600)

    assert found is not None
    assert found[0].reason == "no_progress"
    assert 0 < found[1] - at <= 5 * 3 + 3


async def test_a_busy_engine_that_hangs_is_found_too() -> None:
    backend = FakeBackend()
    asyncio.get_running_loop().call_later(40, setattr, backend, "hung", True)
    async with asyncio.TaskGroup() as group:
        stepping = group.create_task(step_every(backend, 0.05))
        found = await verdict_within(backend, 600)
        stepping.cancel()

    assert found is not None
    assert 10 <= found[1] - 40 <= 18


async def test_a_hang_that_ends_in_time_is_forgiven() -> None:
    backend = FakeBackend()
    loop = asyncio.get_running_loop()
    for start in range(20, 200, 30):
        loop.call_later(start, setattr, backend, "hung", True)
        loop.call_later(start + 8, setattr, backend, "hung", False)

    assert await verdict_within(backend, 300) is None


async def test_a_dead_backend_is_found_by_the_next_ping() -> None:
    backend = FakeBackend()
    asyncio.get_running_loop().call_later(21, setattr, backend, "dead", "killed")

    found = await verdict_within(backend, 600)

    assert found is not None
    assert (found[0].reason, found[1] - 21 <= 6) == ("engine_dead", True)


async def test_a_dead_rank_condemns_the_whole_engine_at_once() -> None:
    backend = FakeBackend()
    ranks = (RankState(0, alive=True), RankState(1, alive=False))
    asyncio.get_running_loop().call_later(21, setattr, backend, "ranks", ranks)

    found = await verdict_within(backend, 600)

    assert found is not None
    assert (found[0].reason, found[1] - 21 <= 1) == ("rank_dead", True)
    assert "1" in found[0].message


async def test_late_pings_prove_nothing_while_steps_go_on() -> None:
    backend = FakeBackend()

    async def late(deadline_seconds: float) -> None:
        await asyncio.sleep(deadline_seconds)
        raise TimeoutError

    backend.ping = late  # type: ignore[method-assign]

    assert await verdict_within(backend, 300) is None


async def test_a_pause_of_the_whole_process_is_not_held_against_the_engine() -> None:
    backend, clock = FakeBackend(), JumpingClock()
    for start in (31.0, 62.3, 93.9):
        asyncio.get_running_loop().call_later(start, setattr, clock, "ahead", start * 100)

    assert await verdict_within(backend, 300, clock) is None
