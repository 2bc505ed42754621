"""Runs the ``headwater`` command as its own process."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass

DEADLINE_SECONDS = 60.0


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


async def start(*args: str, stdin: int = DEVNULL, stdout: int = PIPE, **env: str) -> Process:
    """Starts ``headwater args``. The environment's own HEADWATER_, proxy and buffering variables do not reach it."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("HEADWATER_") and "proxy" not in k.lower()}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "headwater_client", *args,
        stdin=stdin, stdout=stdout, stderr=PIPE, env=inherited | {"COLUMNS": "200", "PYTHONUNBUFFERED": ""} | env,
    )  # fmt: skip


async def finish(process: Process, stdin: bytes | None = None) -> Finished:
    """Waits for the end of a started command."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return Finished(process.returncode, (out or b"").decode(), err.decode())


async def run(*args: str, stdin: bytes | None = None, **env: str) -> Finished:
    """Runs ``headwater args`` to its end."""
    process = await start(*args, stdin=DEVNULL if stdin is None else PIPE, stdout=PIPE, **env)
    return await finish(process, stdin)
