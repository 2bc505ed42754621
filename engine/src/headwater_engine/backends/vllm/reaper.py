"""A process of its own that ends an engine's processes if the server dies without a chance to.

Standard library only and run as a plain file, so that it starts in milliseconds. It reads lines from the
server on its standard input; their end without ``done`` means that the server is gone:

    process PID START_TICKS     kill it, if it is still the process that started then
    segment NAME                remove this shared memory
    done                        the server ended them itself
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if there is none or it is a zombie."""
    try:
        # The name, in brackets, may hold spaces and brackets itself.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def reap(lines: Iterable[str]) -> None:
    """Follows the server until it ends."""
    processes: dict[int, int] = {}
    segments: set[str] = set()
    for line in lines:
        match line.split():
            case ["process", pid, ticks]:
                processes[int(pid)] = int(ticks)
            case ["segment", name]:
                segments.add(name)
            case ["done"]:
                return
    for member, started in processes.items():
        if start_ticks(member) == started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
    for name in segments:
        with contextlib.suppress(OSError):
            Path("/dev/shm", name).unlink()  # noqa: S108 - where POSIX shared memory lies


if __name__ == "__main__":
    reap(sys.stdin)
