"""The SSE writer: one task writes, two watch. Whoever finds that the stream must end says why; one place ends it.

The writer pulls from the backend and waits while the client is behind, so nothing piles up here. The guard
wakes by deadlines, not by tokens: a token costs no timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from headwater_contracts import sse
from headwater_engine.api import failures
from headwater_engine.api.exchange import Exchange
from headwater_engine.api.frames import Frames
from headwater_engine.clock import Clock
from headwater_engine.core.generation import Generation
from headwater_engine.core.inflight import EndCause, InFlight


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Seconds."""

    keep_alive: float = 10.0
    """Silence after which a comment is sent."""
    client_stall: float = 30.0
    """A client that takes nothing for so long is cut off."""
    stream_stall: float = 30.0
    """A scheduled stream without a token for so long is ended in band."""
    last_words: float = 5.0
    """Time for the error frame to be taken."""


class StreamWriter:
    """Writes one generation as server-sent events."""

    def __init__(
        self,
        exchange: Exchange,
        generation: Generation,
        frames: Frames,
        inflight: InFlight,
        limits: StreamLimits,
        clock: Clock,
        all_scheduled: Callable[[], bool],
    ) -> None:
        self._exchange = exchange
        self._generation = generation
        self._frames = frames
        self._inflight = inflight
        self._limits = limits
        self._clock = clock
        self._all_scheduled = all_scheduled
        self._last_write = clock.now()
        self._sending_since: float | None = None
        self._began = False

    async def run(self) -> Exception | None:
        """Writes the whole answer, headers first. Returns the error that was told in band, if any."""
        error = await self._write_watched()
        cause = self._inflight.cause
        if cause in (EndCause.CLIENT_GONE, EndCause.CLIENT_STALLED):
            self._exchange.cut()
            return None
        if error is None and cause is not None:
            error = failures.ended(cause)
        if error is not None:
            await self._say(error)
        return error

    async def _write_watched(self) -> Exception | None:
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(self._write())
            watching = (group.create_task(self._watch_client()), group.create_task(self._guard()))
            self._inflight.ended.add_done_callback(lambda _: writing.cancel())
            await asyncio.wait((writing,))
            for task in watching:
                task.cancel()
        return None if writing.cancelled() else writing.result()

    async def _write(self) -> Exception | None:
        try:
            await self._send_headers()
            async for delta in self._generation.deltas():
                usage = self._generation.usage
                out = self._frames.text(delta.text, usage) if delta.text else b""
                if delta.finish is not None:
                    await self._send(self._opening() + out + self._frames.finish(delta.finish, usage), last=True)
                elif out:
                    await self._send(self._opening() + out)
        except Exception as error:  # noqa: BLE001 - every failure is told in band; the caller logs it
            return error
        return None

    async def _send_headers(self) -> None:
        await self._exchange.start(200, sse.RESPONSE_HEADERS)

    def _opening(self) -> bytes:
        if self._began:
            return b""
        self._began = True
        return self._frames.first(self._generation.usage)

    async def _send(self, data: bytes, *, last: bool = False) -> None:
        self._sending_since = self._clock.now()
        if last:
            await self._exchange.finish(data)
            # At once: the server reports a finished answer as a disconnect too.
            self._inflight.answered()
        else:
            await self._exchange.write(data)
        self._sending_since = None
        self._last_write = self._clock.now()

    async def _watch_client(self) -> None:
        await self._exchange.disconnected()
        self._inflight.end(EndCause.CLIENT_GONE)

    async def _guard(self) -> None:
        while True:
            now, limits = self._clock.now(), self._limits
            if self._sending_since is not None:
                due = self._sending_since + limits.client_stall
                if now >= due:
                    self._inflight.end(EndCause.CLIENT_STALLED)
                    return
            else:
                due = self._last_write + limits.keep_alive
                if now >= due:
                    await self._keep_alive()
                    continue
                if self._stalled(now):
                    self._inflight.end(EndCause.STREAM_STALLED)
                    return
            await self._clock.sleep(min(due - now, limits.keep_alive, limits.client_stall))

    async def _keep_alive(self) -> None:
        try:
            async with asyncio.timeout(self._limits.client_stall):
                await self._send(sse.KEEP_ALIVE)
        except TimeoutError:
            self._inflight.end(EndCause.CLIENT_STALLED)

    def _stalled(self, now: float) -> bool:
        # Without its first token a stream may rightly wait. That the engine as a whole lives is the watchdog's
        # business, and its verdict comes earlier.
        silent = now - self._generation.last_step
        return self._inflight.started and silent >= self._limits.stream_stall and self._all_scheduled()

    async def _say(self, error: Exception) -> None:
        try:
            async with asyncio.timeout(self._limits.last_words):
                await self._exchange.finish(sse.data_frame(failures.in_band(error)) + sse.DONE)
        except TimeoutError:
            self._exchange.cut()
