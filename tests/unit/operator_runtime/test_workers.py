"""Workers over a queue, in virtual time: one pool's trouble is its own, and a stop lets work end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from headwater_operator import errors
from headwater_operator.adapters.clock import SystemClock
from headwater_operator.adapters.metrics import OperatorMetrics
from headwater_operator.adapters.workqueue import WorkQueue
from headwater_operator.handlers.workers import Workers

pytestmark = pytest.mark.looptime
Key = tuple[str, str]


@dataclass
class Reconciler:
    """Does what the table says; by pool name."""

    results: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    runs: list[tuple[float, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    async def reconcile(self, key: Key) -> float | None:
        self.runs.append((asyncio.get_running_loop().time(), key[1]))
        await asyncio.sleep(self.seconds)
        self.ended.append(key[1])
        result = self.results.get(key[1])
        if isinstance(result, Exception):
            raise result
        return result if isinstance(result, float) else None

    def count(self, pool: str) -> int:
        return [name for _, name in self.runs].count(pool)


@asynccontextmanager
async def working(reconciler: Reconciler) -> AsyncIterator[tuple[Workers, Callable[[str], None]]]:
    queue: WorkQueue[Key] = WorkQueue(jitter=lambda: 0.5)
    made: Any = Workers
    workers: Workers = made(queue, reconciler, None, OperatorMetrics(), SystemClock(), 2)
    stop = asyncio.Event()

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            workers.start(tasks)
            await stop.wait()
            raise KeyError

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    try:
        yield workers, lambda pool: queue.add(("n", pool))
    finally:
        stop.set()
        await asyncio.wait({task})
        task.exception()


@pytest.mark.parametrize("error", [RuntimeError("bug"), errors.Failed("outage"), errors.Refused("quota")])
async def test_a_pool_that_fails_is_tried_again_later_and_later_and_holds_up_no_other(error: Exception) -> None:
    reconciler = Reconciler(results={"bad": error})
    # Captured, since printing a traceback reads source files, which blocks.
    with capture_logs() as lines:
        await _bad_and_good(reconciler)
    told = [line for line in lines if line.get("pool") == "bad"]
    assert len(told) == reconciler.count("bad")
    assert all("retry_seconds" in line for line in told)


async def _bad_and_good(reconciler: Reconciler) -> None:
    async with working(reconciler) as (_, add):
        add("bad")
        add("good")
        await asyncio.sleep(3.1)
        assert reconciler.count("good") == 1
        assert [time for time, name in reconciler.runs if name == "bad"] == pytest.approx([0, 0.2, 0.6, 1.4, 3.0])


async def test_a_pool_that_asks_to_be_looked_at_again_is() -> None:
    reconciler = Reconciler(results={"p": 5.0})
    async with working(reconciler) as (_, add):
        add("p")
        await asyncio.sleep(11)
        assert [time for time, _ in reconciler.runs] == pytest.approx([0, 5, 10])


async def test_a_wait_that_the_server_asked_for_is_kept() -> None:
    reconciler = Reconciler(results={"p": errors.Failed("too many requests", retry_after_seconds=7.0)})
    async with working(reconciler) as (_, add):
        add("p")
        await asyncio.sleep(8)
        assert [time for time, _ in reconciler.runs] == pytest.approx([0, 7])


async def test_a_stop_waits_for_the_reconciles_that_run_and_begins_no_other() -> None:
    reconciler = Reconciler(seconds=3.0)
    async with working(reconciler) as (workers, add):
        for pool in ("a", "b", "c"):
            add(pool)
        await asyncio.sleep(1)
        await workers.finish()
        assert sorted(reconciler.ended) == ["a", "b"]
        await asyncio.sleep(10)
        assert reconciler.count("c") == 0
