"""How much of the machine this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Cores by affinity and by the container's CPU limit, whichever is less; at least one.

    A limit does not show in the affinity, and one thread for each of a node's cores is throttled to a crawl.
    """
    cores = len(os.sched_getaffinity(0))
    try:
        limit = parse_quota(CPU_QUOTA.read_text())
    except OSError:
        return cores
    return cores if limit is None else max(1, min(cores, limit))


def parse_quota(text: str) -> int | None:
    """Whole cores of a cgroup v2 ``cpu.max`` ("QUOTA PERIOD", microseconds), rounded up; None for no limit."""
    quota, _, period = text.partition(" ")
    if quota == "max":
        return None
    return math.ceil(int(quota) / int(period))
