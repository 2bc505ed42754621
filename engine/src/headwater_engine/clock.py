"""Time as an argument: what waits or measures takes a Clock, so tests can run in virtual time."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds and a sleep on the same scale."""

    def now(self) -> float:
        """Monotonic seconds."""

    async def sleep(self, seconds: float) -> None:
        """Waits; zero lets other tasks run."""


class MonotonicClock:
    """The machine's monotonic clock. uvloop's own is cached and counts whole milliseconds."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """asyncio.sleep."""
        await asyncio.sleep(seconds)


class LoopClock:
    """The running event loop's clock; a loop with virtual time makes it virtual."""

    def now(self) -> float:
        """Monotonic seconds of the running loop."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """asyncio.sleep."""
        await asyncio.sleep(seconds)
