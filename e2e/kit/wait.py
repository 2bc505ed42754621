"""Waiting for a condition with a deadline, the only way that anything here waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class WaitTimeoutError(AssertionError):
    """A condition did not come true in time; the text says what was there instead."""


def wait_until(
    probe: Callable[[], T | None],
    *,
    timeout: float,
    what: str,
    describe: Callable[[], str] | None = None,
    interval: float = 0.2,
) -> T:
    """Returns the first truthy answer of ``probe``; raises WaitTimeoutError after ``timeout`` seconds.

    ``describe`` is asked once, at the end, for what a reader needs to understand the failure.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            detail = f"\n{describe()}" if describe else ""
            raise WaitTimeoutError(f"no {what} within {timeout:.0f} s{detail}")
        time.sleep(interval)  # between looks, not instead of one
