"""What an engine tells the machine about itself: last words, limits, a stuck loop."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import structlog

TERMINATION_LOG = Path("/dev/termination-log")
_WANTED_FILES = 8192
_LOOKS = 10

_log = structlog.get_logger("headwater.process")


def installed_version() -> str | None:
    """Version of this distribution; None where only the source lies about."""
    try:
        return importlib.metadata.version("headwater")
    except importlib.metadata.PackageNotFoundError:
        return None


def write_last_words(message: str, path: Path = TERMINATION_LOG) -> None:
    """Leaves a message where the kubelet finds it; elsewhere there is no such file, and nothing happens."""
    if path.exists() and os.access(path, os.W_OK):
        path.write_text(message[:4096])


def check_file_limit() -> None:
    """Warns when few connections fit: each one is a file."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _WANTED_FILES:
        _log.warning("few files may be open at once", limit=soft, wanted=_WANTED_FILES)


class LoopGuard:
    """A thread that notices when the event loop itself is stuck, since no task can.

    ``beat`` is called by a task of the loop; when it is not for ``patience`` seconds, ``on_stuck`` is called in
    the thread. The thread looks many times in that span and counts its looks: a process that stood still as a whole
    (a paused machine) wakes up to one missed look, and its loop is not to blame.
    """

    def __init__(self, patience: float, on_stuck: Callable[[], None]) -> None:
        self._look_seconds = patience / _LOOKS
        self._on_stuck = on_stuck
        self._beaten = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._watch, name="loop-guard", daemon=True)

    def start(self) -> None:
        """Starts watching."""
        self._thread.start()

    def beat(self) -> None:
        """The loop turns."""
        self._beaten.set()

    def stop(self) -> None:
        """Stops watching."""
        self._over = True
        self._beaten.set()

    def _watch(self) -> None:
        missed = 0
        while not self._over:
            missed = 0 if self._beaten.wait(self._look_seconds) else missed + 1
            self._beaten.clear()
            if missed >= _LOOKS and not self._over:
                self._on_stuck()
                return
