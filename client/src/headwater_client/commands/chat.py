"""Declares ``headwater chat``."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Annotated

import typer

from headwater_client.chat import Answer, ChatOptions, answer, converse, opening_messages, stats_line, user
from headwater_client.core.failures import RequestError, describe
from headwater_client.options import (
    DEFAULT_URL,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    MAX_SECONDS,
    ApiKey,
    Model,
    Url,
    complain,
    fail,
)


def command(
    prompt: Annotated[
        list[str] | None, typer.Argument(help="What to ask. Without it: standard input, or a conversation.")
    ] = None,
    url: Url = DEFAULT_URL,
    model: Model = None,
    api_key: ApiKey = None,
    system: Annotated[str | None, typer.Option(help="System message.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Longest answer, in tokens.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, max=2.0, help="0 always takes the likeliest token.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampling repeatable.")] = None,
    silence_timeout: Annotated[
        float,
        typer.Option(min=0.001, max=MAX_SECONDS, help="Give up when the server sends nothing for this many seconds."),
    ] = 300.0,
    stats: Annotated[bool, typer.Option(help="TTFT, inter-token latency and tokens/s on standard error.")] = True,
    raw: Annotated[bool, typer.Option("--raw", help="Do not strip control characters from the answer.")] = False,
) -> None:
    """Ask a model; the answer streams to the terminal as it is generated.

    Exit codes: 0 whole answer, 1 failed or incomplete, 2 wrong usage, 130 interrupted.
    """
    options = ChatOptions(url, model, api_key, system, max_tokens, temperature, seed, silence_timeout, raw)
    if prompt or not sys.stdin.isatty():
        _ask_once(options, " ".join(prompt) if prompt else sys.stdin.read(), stats=stats)
    else:
        _converse(options, stats=stats)


def _ask_once(options: ChatOptions, prompt: str, *, stats: bool) -> None:
    if not prompt.strip():
        complain("the prompt is empty: give it as an argument or on standard input")
        raise typer.Exit(EXIT_USAGE)
    messages = (*opening_messages(options.system), user(prompt))
    try:
        got = asyncio.run(answer(options, messages, sys.stdout, time.monotonic))
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except RequestError as error:
        fail(error, options.url)
    _show(got, stats=stats)


def _converse(options: ChatOptions, *, stats: bool) -> None:
    import readline  # noqa: F401  # its import gives input() line editing and history

    sys.stderr.write("Ctrl-D ends the conversation, Ctrl-C an answer.\n")
    try:
        converse(
            options,
            read_prompt=lambda: input("\n> "),
            output=sys.stdout,
            on_answer=lambda got: _show(got, stats=stats),
            on_failure=lambda error: complain(describe(error.failure, options.url)),
            clock=time.monotonic,
        )
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _show(got: Answer, *, stats: bool) -> None:
    if stats:
        sys.stderr.write(f"{stats_line(got.record)}\n")
