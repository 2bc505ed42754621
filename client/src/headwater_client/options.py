"""Options that several commands share, and how errors leave the process."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from headwater_client.core.failures import RequestError, describe
from headwater_client.core.terminal import printable
from headwater_client.stream import base_url

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it

MAX_SECONDS = 1e9
"""Infinity is no JSON."""

DEFAULT_URL = "http://127.0.0.1:8000"


def _checked_url(value: str) -> str:
    try:
        return base_url(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _checked_key(value: str | None) -> str | None:
    # The key itself is not for the screen.
    if value is not None and not (value.isascii() and value.isprintable()):
        raise typer.BadParameter("only printable ASCII characters fit into a header")
    return value


Url = Annotated[
    str,
    typer.Option(envvar="HEADWATER_URL", callback=_checked_url, help="Where the pool answers, with or without /v1."),
]
Model = Annotated[str | None, typer.Option(help="Model to ask. Default: the first that the server lists.")]
ApiKey = Annotated[
    str | None,
    typer.Option(envvar="HEADWATER_API_KEY", callback=_checked_key, show_default=False, help="Sent as a bearer token."),
]


def complain(message: str) -> None:
    """Writes an error for a person. The text may come from a server, so it is cleaned."""
    sys.stderr.write(f"headwater: {printable(message)}\n")
    sys.stderr.flush()


def fail(error: RequestError, url: str) -> NoReturn:
    """Reports a failed request and ends the command."""
    complain(describe(error.failure, url))
    raise typer.Exit(EXIT_FAILED)
