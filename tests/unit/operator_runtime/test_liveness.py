"""The liveness probe's verdict, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from kubernetes.aio.client import Configuration

from headwater_operator import errors
from headwater_operator.handlers.runtime import STUCK_SECONDS, Runtime
from headwater_operator.settings import Settings

pytestmark = pytest.mark.looptime


async def test_a_pool_that_is_worked_on_for_too_long_calls_for_a_restart() -> None:
    runtime = Runtime(Settings(), Configuration(), b"token")
    assert runtime.check_alive()["oldest_queued_seconds"] == 0
    runtime.wake(("n", "p"))
    await runtime.queue.get()
    await asyncio.sleep(STUCK_SECONDS - 1)
    runtime.check_alive()
    await asyncio.sleep(2)
    with pytest.raises(errors.Failed, match="stuck"):
        runtime.check_alive()


async def test_while_the_lease_is_waited_for_nothing_is_stuck() -> None:
    runtime = Runtime(Settings(), Configuration(), b"token")
    await asyncio.sleep(10 * STUCK_SECONDS)
    runtime.check_alive()
    assert runtime.not_ready() is not None
