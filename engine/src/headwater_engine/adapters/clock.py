"""The wall clock, for what people read; everything that measures takes a Clock."""

from __future__ import annotations

import time


def wall_seconds() -> float:
    """Seconds since 1970."""
    return time.time()
