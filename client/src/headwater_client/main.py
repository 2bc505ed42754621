"""The ``headwater`` command: chat, bench, version."""

from __future__ import annotations

import io
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import typer

from headwater_client.commands import bench, chat
from headwater_client.options import EXIT_FAILED, complain

app = typer.Typer(
    help="Talk to a Headwater inference pool.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("chat")(chat.command)
app.command("bench")(bench.command)


@app.command("version")
def version() -> None:
    """Print the version."""
    typer.echo(f"headwater {metadata.version('headwater')}")


def main() -> None:
    """Runs the command that the arguments name."""
    _prepare_streams()
    try:
        app()
    except OSError as error:
        _give_up(error)


def _prepare_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The shell closed it.
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An ASCII terminal shows a question mark for what it cannot show, and the stream goes on.
            stream.reconfigure(errors="replace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")


def _give_up(error: OSError) -> NoReturn:
    """Ends the command when its output cannot be written, to a full disk for one."""
    # Or the interpreter tries once more at its end, and complains.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    complain(f"cannot go on: {error.strerror or error}")
    sys.exit(EXIT_FAILED)
