"""Enforces a drain's deadlines: the part of a drain that waits."""

from __future__ import annotations

import asyncio

from headwater_engine.clock import Clock
from headwater_engine.core.inflight import EndCause, Registry
from headwater_engine.core.lifecycle import Drain, Lifecycle

# Longer than the in-band end of a stream takes.
_LAST_WORDS_SECONDS = 10.0
_SLICE_SECONDS = 0.1


class Drainer:
    """``changed`` is to be called after each change of the lifecycle; ``run`` goes on until cancelled."""

    def __init__(self, lifecycle: Lifecycle, registry: Registry, clock: Clock) -> None:
        self._lifecycle = lifecycle
        self._registry = registry
        self._clock = clock
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """The lifecycle has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Ends in band, at each drain's deadline, what is still running."""
        while True:
            self._changed.clear()
            drain = self._lifecycle.drain
            if drain is None:
                await self._changed.wait()
            elif (left := drain.deadline - self._clock.now()) > 0:
                await self._within(left)
            else:
                self._registry.end_all(EndCause.DRAIN_TIMEOUT)
                await self._changed.wait()

    async def drained(self) -> None:
        """Returns when the running drain has ended, by its deadline at the latest."""
        while self._lifecycle.is_loaded and (left := self._drain.settle_until - self._clock.now()) > 0:
            # In slices, since another request for a drain may end it earlier.
            await self._clock.sleep(min(left, _SLICE_SECONDS))
        bound = max(0.0, self._drain.deadline - self._clock.now()) + _LAST_WORDS_SECONDS
        try:
            async with asyncio.timeout(bound):
                await self._registry.idle()
        except TimeoutError:
            self._registry.end_all(EndCause.EXITING)

    @property
    def _drain(self) -> Drain:
        if self._lifecycle.drain is None:
            raise RuntimeError("no drain is running")
        return self._lifecycle.drain

    async def _within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
