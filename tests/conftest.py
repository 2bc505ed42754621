"""Settings of every test run."""

from __future__ import annotations

import asyncio
import signal


def pytest_configure() -> None:
    """Makes the run independent of how it was started."""
    _forget_the_event_loop()
    _heed_interrupts()


def _forget_the_event_loop() -> None:
    """Says that this thread has no event loop yet.

    looptime's plugin asks the policy for one before each asynchronous test. A policy that was never told
    anything makes one, which nobody closes, and the run would end in its ResourceWarning.
    """
    asyncio.set_event_loop(None)


def _heed_interrupts() -> None:
    """A shell starts background jobs with SIGINT ignored, and programs under test would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
