"""The ``headwater`` command: chat, bench, version."""

from __future__ import annotations

import io
import sys
from importlib import metadata

import typer

from headwater_client.commands import bench, chat

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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An ASCII terminal shows a question mark for what it cannot show, and the stream goes on.
            stream.reconfigure(errors="replace")
    app()
