"""The engine's own verdict on itself: forward progress, not a flag.

Evidence of life is a step of the backend, or, when there was none for an interval, a one-token test inference
through the whole scheduler. The verdict falls when the last evidence is ``interval × failure_threshold`` old:

- busy and stepping: never tested, so a busy engine is not slowed, however slow each answer is;
- idle: tested once an interval;
- silent with work: tested, and the test hangs as the rest does.

A backend that says it is dead, by a ping each interval, or that one of its ranks is, gets the verdict at once.
A ping that is merely late proves nothing while steps go on. Time in which the watchdog itself did not run (a paused
machine) counts for little; an event loop that is stuck for good is for a thread to find.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from headwater_engine.clock import Clock
from headwater_engine.core.lifecycle import Failure
from headwater_engine.errors import BackendDead
from headwater_engine.ports import Backend

_LOOKS_PER_INTERVAL = 5


@dataclass(frozen=True, slots=True)
class WatchdogRules:
    """Seconds, and misses in a row until the verdict."""

    interval: float
    failure_threshold: int

    @property
    def patience(self) -> float:
        """Oldest evidence that is still good."""
        return self.interval * self.failure_threshold


class Watchdog:
    """Only judges; what follows from the verdict is the caller's."""

    def __init__(
        self, backend: Backend, rules: WatchdogRules, test: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        self._backend = backend
        self._rules = rules
        self._test = test
        self._clock = clock
        self._step = -1
        self._dead: BackendDead | None = None
        self.last_progress: float | None = None
        """Monotonic time of the last step seen."""
        self.last_test: float | None = None
        """Monotonic time at which the last test inference succeeded."""
        self._born = 0.0

    async def run(self, on_verdict: Callable[[Failure], None]) -> None:
        """Watches until the engine is dead, and says so before it waits for its own test to end."""
        self._born = self._clock.now()
        async with asyncio.TaskGroup() as group:
            helpers = (group.create_task(self._keep_testing()), group.create_task(self._keep_pinging()))
            on_verdict(await self._watch())
            for helper in helpers:
                helper.cancel()

    async def _watch(self) -> Failure:
        tick = self._rules.interval / _LOOKS_PER_INTERVAL
        seen, silence, last = self._evidence(), 0.0, self._clock.now()
        while True:
            self._look()
            now, evidence = self._clock.now(), self._evidence()
            # A look that comes far too late means that this process stood still: no time for the engine either.
            silence = now - evidence if evidence > seen else silence + min(now - last, 2 * tick)
            seen, last = evidence, now
            failure = self._verdict(silence)
            if failure is not None:
                return failure
            await self._clock.sleep(tick)

    def _look(self) -> None:
        step = self._backend.state().step
        if step != self._step:
            self._step = step
            self.last_progress = self._clock.now()

    def _evidence(self) -> float:
        return max(self._born, self.last_progress or 0.0, self.last_test or 0.0)

    def _verdict(self, silence: float) -> Failure | None:
        if self._dead is not None:
            return Failure("engine_dead", f"the engine beneath is gone: {self._dead}")
        dead = [rank.rank for rank in self._backend.state().ranks if not rank.alive]
        if dead:
            return Failure("rank_dead", f"rank {', '.join(map(str, dead))} is gone")
        if silence >= self._rules.patience:
            return Failure("no_progress", f"no step and no test inference for {silence:.0f} s")
        return None

    async def _keep_testing(self) -> None:
        while True:
            wait = self._evidence() + self._rules.interval - self._clock.now()
            if wait > 0:
                await self._clock.sleep(wait)
            elif await self._succeeds(self._test()):
                self.last_test = self._clock.now()

    async def _keep_pinging(self) -> None:
        interval = self._rules.interval
        while True:
            await self._succeeds(self._backend.ping(interval))
            await self._clock.sleep(interval)

    async def _succeeds(self, attempt: Awaitable[None]) -> bool:
        """False on a miss, which takes one interval at most; a dead backend is noted."""
        begun = self._clock.now()
        try:
            async with asyncio.timeout(self._rules.interval):
                await attempt
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with a test is a miss
            if isinstance(error, BackendDead):
                self._dead = error
            await self._clock.sleep(max(0.0, begun + self._rules.interval - self._clock.now()))
            return False
        return True
