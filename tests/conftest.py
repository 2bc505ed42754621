"""Settings of every test run."""

from __future__ import annotations

import asyncio


def pytest_configure() -> None:
    """Says that this thread has no event loop yet.

    looptime's plugin asks the policy for one before each asynchronous test. A policy that was never told
    anything makes one, which nobody closes, and the run would end in its ResourceWarning.
    """
    asyncio.set_event_loop(None)
