"""Takes pools from the queue and reconciles them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from headwater_operator import errors
from headwater_operator.adapters.cache import PoolKey
from headwater_operator.adapters.metrics import OperatorMetrics
from headwater_operator.adapters.prober import Prober
from headwater_operator.adapters.workqueue import WorkQueue
from headwater_operator.ports import Clock
from headwater_operator.reconcile.pool import PoolReconciler

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Workers:
    """A few workers over one queue."""

    queue: WorkQueue[PoolKey]
    reconciler: PoolReconciler
    prober: Prober
    metrics: OperatorMetrics
    clock: Clock
    count: int
    _busy: int = 0
    _finishing: bool = False
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Starts the workers in a task group."""
        self._idle.set()
        for number in range(self.count):
            tasks.create_task(self._work(), name=f"worker {number}")

    async def finish(self) -> None:
        """Takes no further pool and waits for those in work."""
        self._finishing = True
        if self._busy:
            await self._idle.wait()

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            if self._finishing:
                return
            self._busy += 1
            self._idle.clear()
            try:
                await self._once(key)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()
                self.queue.done(key)

    async def _once(self, key: PoolKey) -> None:
        entry = log.bind(namespace=key[0], pool=key[1])
        began, result = self.clock.monotonic(), "ok"
        try:
            again = await self.reconciler.reconcile(key)
        except errors.Refused as error:
            result = "refused"
            entry.warning("reconcile refused", error=error.message, retry_seconds=self.queue.retry(key))
        except errors.Failed as error:
            result = "failed"
            wait = self.queue.retry(key, at_least_seconds=error.retry_after_seconds or 0.0)
            entry.warning("reconcile failed", error=error.message, retry_seconds=wait)
        except Exception:  # noqa: BLE001 - a fault in one pool's handling must not stop the others'
            result = "crashed"
            entry.exception("reconcile crashed", retry_seconds=self.queue.retry(key))
        else:
            self.queue.succeeded(key)
            if again is not None:
                self.queue.add_after(key, again)
        finally:
            self.metrics.reconciled(result, self.clock.monotonic() - began)
