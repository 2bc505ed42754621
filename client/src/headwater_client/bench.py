"""``headwater bench``: many streams at once, each timed at the client."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

import httpx

from headwater_client.core.failures import Failure, FailureKind, RequestError
from headwater_client.core.report import BenchSettings
from headwater_client.core.stats import Recorder, StreamRecord
from headwater_client.stream import ChatRequest, Clock, stream_chat

# Each is one token in common vocabularies, so the prompt has about as many tokens as words.
_WORDS = ("time", "year", "way", "day", "man", "world", "life", "hand", "part", "place", "case", "week", "point")


def synthetic_prompt(tokens: int, number: int) -> str:
    """A prompt of about ``tokens`` tokens that begins differently for each ``number``.

    A common beginning would be served from the prefix cache, and the figures would be of another workload.
    """
    words = itertools.islice(itertools.cycle(_WORDS), number % len(_WORDS), number % len(_WORDS) + max(0, tokens - 4))
    return f"{number}. Continue: " + " ".join(words)


@dataclass(slots=True)
class Bench:
    """One run. ``records`` holds what has ended so far, also after the run was cancelled."""

    client: httpx.AsyncClient
    settings: BenchSettings
    prompt: Callable[[int], str]
    clock: Clock
    on_record: Callable[[StreamRecord], None] = lambda _record: None
    records: list[StreamRecord] = field(default_factory=list)

    async def run(self) -> None:
        """Sends all requests, at most ``concurrency`` at a time."""
        numbers = iter(range(self.settings.requests))
        began = self.clock()
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(self.settings.concurrency, self.settings.requests)):
                workers.create_task(self._worker(numbers, began))

    async def _worker(self, numbers: Iterator[int], began: float) -> None:
        for number in numbers:
            if self.settings.rate_per_second:
                due = began + number / self.settings.rate_per_second
                await asyncio.sleep(max(0.0, due - self.clock()))
            record = await self._one(number)
            self.records.append(record)
            self.on_record(record)

    async def _one(self, number: int) -> StreamRecord:
        messages = ({"role": "user", "content": self.prompt(number)},)
        request = ChatRequest(
            self.settings.model, messages, self.settings.max_tokens, ignore_eos=self.settings.ignore_eos
        )
        recorder = Recorder(self.clock())
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                await self._stream(request, recorder)
        except TimeoutError:
            message = f"no complete answer within {self.settings.timeout_seconds:g} s"
            return recorder.finish(self.clock(), Failure(FailureKind.TIMEOUT, message))
        except RequestError as error:
            return recorder.finish(self.clock(), error.failure)
        return recorder.finish(self.clock())

    async def _stream(self, request: ChatRequest, recorder: Recorder) -> None:
        async with aclosing(stream_chat(self.client, request, self.clock)) as chunks:
            async for chunk in chunks:
                recorder.add(chunk)
