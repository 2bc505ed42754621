"""Plays back one script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from headwater_engine.backends.sim.scripts import ScriptStep
from headwater_engine.clock import Clock
from headwater_engine.errors import EngineError
from headwater_engine.ports import Step

_TOKEN_ID = 1


class ScriptedError(EngineError):
    """The script asked for an error; its text is the client's too."""

    code = "scripted_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.public = message


class Player:
    """Yields a script's steps in their time, by its own clock: the engine's steps don't drive it."""

    def __init__(self, script: Sequence[ScriptStep], clock: Clock, on_step: Callable[[], None]) -> None:
        self._script = iter(script)
        self._clock = clock
        self._on_step = on_step
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def close(self, error: BaseException | None = None) -> None:
        """The reader gets ``error``, or the end, now."""
        if self._closed.done():
            return
        if error is not None:
            self._closed.set_exception(error)
            # Retrieved here in case that nobody reads any more.
            self._closed.exception()
        else:
            self._closed.set_result(None)

    async def get(self) -> Step | None:
        """The next step; None when closed. Waits for ever after a last step without finish."""
        step = next(self._script, None)
        delay = None if step is None else step.delay
        if delay != 0 and await self._closed_within(delay):
            return self._closed.result()
        if self._closed.done() or step is None:
            return self._closed.result()
        if step.error is not None:
            raise ScriptedError(step.error)
        self._on_step()
        return Step((_TOKEN_ID,) * len(step.tokens), "", step.finish, raw=step.tokens)

    async def _closed_within(self, seconds: float | None) -> bool:
        waits: list[asyncio.Future[None]] = [self._closed]
        timer = None
        if seconds is not None:
            timer = asyncio.ensure_future(self._clock.sleep(seconds))
            waits.append(timer)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None:
                timer.cancel()
        return self._closed.done()
