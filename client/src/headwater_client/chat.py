"""``headwater chat``: one answer, or a conversation, streamed to the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from headwater_client.core.failures import RequestError
from headwater_client.core.stats import Recorder, StreamRecord, summarize
from headwater_client.core.terminal import encodable, printable
from headwater_client.stream import ChatRequest, Clock, Message, first_model, open_client, stream_chat


class Output(Protocol):
    """Where text goes: a terminal, a pipe, or a test's list."""

    def write(self, text: str, /) -> object:
        """Takes the next piece."""

    def flush(self) -> object:
        """Makes what was written visible."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The command's options, without the prompt."""

    url: str
    model: str | None = None
    api_key: str | None = None
    system: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    silence_seconds: float | None = 300.0
    raw: bool = False
    use_proxy: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What one turn produced."""

    text: str
    record: StreamRecord


async def answer(options: ChatOptions, messages: tuple[Message, ...], output: Output, clock: Clock) -> Answer:
    """Streams one answer to ``output``, each piece as it arrives. Raises RequestError.

    Cancelling it closes the connection, which ends the request in the engine.
    """
    async with open_client(
        options.url, options.api_key, silence_seconds=options.silence_seconds, use_proxy=options.use_proxy
    ) as client:
        request = ChatRequest(
            options.model or await first_model(client),
            messages,
            options.max_tokens,
            options.temperature,
            options.seed,
        )
        recorder = Recorder(clock())
        text: list[str] = []
        try:
            async with aclosing(stream_chat(client, request, clock)) as chunks:
                async for chunk in chunks:
                    recorder.add(chunk)
                    text.append(chunk.text)
                    _show(chunk.text, output, raw=options.raw)
        finally:
            # What follows, a message or the shell's prompt, starts on its own line, also after a failure.
            if any(text) and not options.raw:
                _show("\n", output, raw=False)
        return Answer("".join(text), recorder.finish(clock()))


def _show(text: str, output: Output, *, raw: bool) -> None:
    if text:
        output.write(encodable(text) if raw else printable(text))
        output.flush()


def opening_messages(system: str | None) -> tuple[Message, ...]:
    """The messages before the first prompt."""
    return ({"role": "system", "content": system},) if system else ()


def user(prompt: str) -> Message:
    """A user's message."""
    return {"role": "user", "content": prompt}


def converse(
    options: ChatOptions,
    read_prompt: Callable[[], str],
    output: Output,
    on_answer: Callable[[Answer], None],
    on_failure: Callable[[RequestError], None],
    clock: Clock,
) -> None:
    """Asks and answers until ``read_prompt`` raises EOFError.

    Ctrl-C during an answer ends that answer alone; at the prompt it is ``read_prompt``'s KeyboardInterrupt and
    ends the conversation. A turn without a whole answer leaves no trace in the conversation.
    """
    messages = opening_messages(options.system)
    while True:
        try:
            prompt = read_prompt()
        except EOFError:
            return
        if not prompt.strip():
            continue
        asked = (*messages, user(prompt))
        try:
            got = asyncio.run(answer(options, asked, output, clock))
        except KeyboardInterrupt:
            continue
        except RequestError as error:
            on_failure(error)
            continue
        messages = (*asked, {"role": "assistant", "content": got.text})
        on_answer(got)


def stats_line(record: StreamRecord) -> str:
    """Figures of one answer for a person, such as ``TTFT 41 ms · ITL p50 12 ms p99 30 ms · 63 tokens``."""
    parts = []
    if record.ttft_seconds is not None:
        parts.append(f"TTFT {_milliseconds(record.ttft_seconds)}")
    gaps = summarize(record.gaps_seconds)
    if gaps.p50 is not None and gaps.p99 is not None:
        parts.append(f"ITL p50 {_milliseconds(gaps.p50)} p99 {_milliseconds(gaps.p99)}")
    parts.append(f"{record.output_tokens} tokens")
    if record.tpot_seconds:
        parts.append(f"{1 / record.tpot_seconds:.1f} tokens/s")
    if record.finish_reason == "length":
        parts.append("cut off at the token limit")
    return " · ".join(parts)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
