"""Declares ``headwater bench``."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwater_client.bench import Bench, synthetic_prompt
from headwater_client.core.failures import RequestError
from headwater_client.core.report import BenchSettings, Report, build_report
from headwater_client.options import DEFAULT_URL, EXIT_FAILED, EXIT_INTERRUPTED, MAX_SECONDS, ApiKey, Model, Url, fail
from headwater_client.stream import first_model, open_client
from headwater_client.table import print_report

DEFAULT_PROMPT = "Tell me a long story about a river."


def command(
    url: Url = DEFAULT_URL,
    model: Model = None,
    api_key: ApiKey = None,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Streams open at once.")] = 8,
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, help="Requests in all.")] = 64,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")] = 128,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Ask for max-tokens tokens whatever the model says.")
    ] = False,
    prompt: Annotated[str, typer.Option(help="The same prompt for every request.")] = DEFAULT_PROMPT,
    prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Instead of --prompt: a different prompt of about this many tokens each.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e6, help="Start at most this many requests a second. Default: no limit."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.001, max=MAX_SECONDS, help="Seconds for one whole answer.")] = 600.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON (docs/reference/bench.md).")
    ] = False,
) -> None:
    """Measure a pool with many concurrent streams, timed at the client.

    Exit codes: 0 at least one answer was whole, 1 every request failed, 2 wrong usage, 130 interrupted.
    """

    async def whole() -> Report:
        async with open_client(url, api_key, max_connections=concurrency) as client:
            settings = BenchSettings(
                url=url,
                model=model or await first_model(client),
                requests=requests,
                concurrency=concurrency,
                max_tokens=max_tokens,
                ignore_eos=ignore_eos,
                prompt_tokens=prompt_tokens,
                rate_per_second=rate,
                timeout_seconds=timeout,
            )
            return await _measure(client, settings, prompt)

    try:
        report = asyncio.run(whole())
    except RequestError as error:
        fail(error, url)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    _finish(report, as_json=as_json)


async def _measure(client: httpx.AsyncClient, settings: BenchSettings, prompt: str) -> Report:
    """Runs the bench; Ctrl-C ends it early and keeps what was measured."""
    with _progress() as progress:
        task = progress.add_task("requests", total=settings.requests)
        run = Bench(
            client,
            settings,
            prompt=_prompts(settings, prompt),
            clock=time.monotonic,
            on_record=lambda _record: progress.advance(task),
        )
        began = time.monotonic()
        interrupted = False
        try:
            await run.run()
        except asyncio.CancelledError:
            interrupted = True
        return build_report(settings, run.records, time.monotonic() - began, interrupted=interrupted)


def _prompts(settings: BenchSettings, prompt: str) -> Callable[[int], str]:
    tokens = settings.prompt_tokens
    return (lambda _number: prompt) if tokens is None else (lambda number: synthetic_prompt(tokens, number))


def _progress() -> Progress:
    """A bar on standard error; nothing where that is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _finish(report: Report, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(report.to_json(), indent=2) + "\n")
    else:
        print_report(report, Console())
    if report.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if not report.succeeded:
        raise typer.Exit(EXIT_FAILED)
