"""Keys to reconcile: each at most once in the queue, never with two workers, later again after a failure.

state of the key    add()
idle                queued
queued              stays queued, once
running             marked; queued when the run is done
waiting (delay)     queued at once; the delay is dropped
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 60.0


class WorkQueue(Generic[K]):
    """For one event loop."""

    def __init__(self, *, jitter: Callable[[], float] = random.random) -> None:
        self._queued: OrderedDict[K, float] = OrderedDict()
        self._running: dict[K, float] = {}
        self._again: dict[K, float] = {}
        self._delays: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._wakeups: dict[asyncio.Future[None], None] = {}
        self._jitter = jitter

    def add(self, key: K) -> None:
        """Queues a key; see the module's table."""
        delay = self._delays.pop(key, None)
        if delay is not None:
            delay.cancel()
        now = asyncio.get_running_loop().time()
        if key in self._running:
            self._again.setdefault(key, now)
        elif key not in self._queued:
            self._queued[key] = now
            self._wake_one()

    def add_after(self, key: K, seconds: float) -> None:
        """Queues a key later; of several delays the earliest counts."""
        loop = asyncio.get_running_loop()
        old = self._delays.get(key)
        if old is not None and old.when() <= loop.time() + seconds:
            return
        if old is not None:
            old.cancel()
        self._delays[key] = loop.call_later(seconds, self.add, key)

    def retry(self, key: K, *, at_least_seconds: float = 0.0) -> float:
        """Queues a key again after a failure, later each time; returns the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        backoff = min(FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 16), LAST_RETRY_SECONDS)
        delay: float = max(at_least_seconds, backoff * (0.8 + 0.4 * self._jitter()))
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: K) -> None:
        """Forgets the key's failures."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Waits for a key and marks it as running; ``done`` must follow."""
        while not self._queued:
            wakeup = asyncio.get_running_loop().create_future()
            self._wakeups[wakeup] = None
            try:
                await wakeup
            except asyncio.CancelledError:
                if wakeup.done() and not wakeup.cancelled():
                    self._wake_one()  # the wake-up was for a key, not for this worker: pass it on
                raise
            finally:
                self._wakeups.pop(wakeup, None)
        key, since = self._queued.popitem(last=False)
        self._running[key] = since
        return key

    def done(self, key: K) -> None:
        """Ends a run; a key added meanwhile is queued again."""
        self._running.pop(key, None)
        since = self._again.pop(key, None)
        if since is not None:
            self._queued[key] = since
            self._wake_one()

    def oldest_age_seconds(self) -> float:
        """How long the oldest key has been queued or running; 0 when there is none."""
        since = [*self._queued.values(), *self._running.values()]
        return asyncio.get_running_loop().time() - min(since) if since else 0.0

    def __len__(self) -> int:
        return len(self._queued) + len(self._again)

    def _wake_one(self) -> None:
        for wakeup in self._wakeups:
            if not wakeup.done():
                wakeup.set_result(None)
                return
