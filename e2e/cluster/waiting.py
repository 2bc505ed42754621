"""Waiting for a condition, with a deadline."""

import time
from collections.abc import Callable

from e2e.cluster.errors import ClusterError

POLL_SECONDS = 0.05


def wait_for(what: str, ready: Callable[[], object], seconds: float = 120, hint: str = "") -> None:
    """Return once `ready()` is true; raise ClusterError naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not there after {seconds:.0f} s{'; ' + hint if hint else ''}")
        time.sleep(POLL_SECONDS)
