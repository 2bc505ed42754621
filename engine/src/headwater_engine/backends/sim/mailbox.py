"""Where one request's steps wait for their reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from headwater_engine.ports import Step


class Mailbox:
    """Bounded by its owner: the engine leaves out a request whose mailbox is ``full``."""

    def __init__(self, limit: int, on_room: Callable[[], None]) -> None:
        self._limit = limit
        self._on_room = on_room
        self._steps: deque[Step] = deque()
        self._ready = asyncio.Event()
        self._end: BaseException | None = None
        self._closed = False

    @property
    def full(self) -> bool:
        """The reader is ``limit`` steps behind."""
        return len(self._steps) >= self._limit

    def put(self, step: Step) -> None:
        """Hands over a step."""
        self._steps.append(step)
        self._ready.set()

    def close(self, error: BaseException | None = None) -> None:
        """After the steps already handed over the reader gets ``error``, or the end."""
        if not self._closed:
            self._closed, self._end = True, error
            self._ready.set()

    async def get(self) -> Step | None:
        """The next step; None at the end."""
        while not self._steps:
            if self._closed:
                if self._end is not None:
                    raise self._end
                return None
            self._ready.clear()
            await self._ready.wait()
        was_full = self.full
        step = self._steps.popleft()
        if was_full:
            self._on_room()
        return step
