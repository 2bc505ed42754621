"""Everything of the operator that runs, with one owner: a task group that lives as long as the Lease is held."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import structlog
from kubernetes.aio.client import Configuration

from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import Cache, PoolKey
from headwater_operator.adapters.clock import SystemClock
from headwater_operator.adapters.events import EventPoster
from headwater_operator.adapters.expectations import Expectations
from headwater_operator.adapters.http_metrics import metrics_server
from headwater_operator.adapters.informer import Informer
from headwater_operator.adapters.kube import KubeWriter
from headwater_operator.adapters.lease import Lease, LeaseTimings
from headwater_operator.adapters.metrics import OperatorMetrics
from headwater_operator.adapters.probe_http import HttpEngineControl
from headwater_operator.adapters.prober import Prober
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.adapters.store import uid_of
from headwater_operator.adapters.workqueue import WorkQueue
from headwater_operator.core.names import SUFFIX_ALPHABET, SUFFIX_LENGTH
from headwater_operator.desired.refs import BuildSettings
from headwater_operator.handlers.wiring import build_informers
from headwater_operator.handlers.workers import Workers
from headwater_operator.ports import Clock
from headwater_operator.reconcile.apply import Executor
from headwater_operator.reconcile.pool import PoolReconciler
from headwater_operator.reconcile.refusals import Refusals
from headwater_operator.settings import Settings

log = structlog.get_logger(__name__)

STUCK_SECONDS = 300.0
"""A watch without data, or a key without an end, for this long: only a new process helps. Far beyond every
timeout inside, so that it never comes before their own recovery."""
FINISH_SECONDS = 8.0
"""At a stop, how long running reconciles may take to end."""


class Runtime:
    """Made at start-up inside the loop; ``run`` returns after ``stop`` and raises when the operator must end."""

    def __init__(
        self, settings: Settings, configuration: Configuration, master_token: bytes, clock: Clock | None = None
    ) -> None:
        self.settings = settings
        self.queue: WorkQueue[PoolKey] = WorkQueue()
        self.metrics = OperatorMetrics()
        self._configuration = configuration
        self._master_token = master_token
        self._clock = clock or SystemClock()
        self._cache = Cache(self.wake)
        self._stopping = asyncio.Event()
        self._informers: list[Informer] = []
        self._waiting_for: str | None = "the start"

    def wake(self, key: PoolKey) -> None:
        """Queues a pool."""
        self.queue.add(key)

    def stop(self) -> None:
        """Asks ``run`` to finish what it is doing and to return."""
        self._stopping.set()

    def not_ready(self) -> str | None:
        """What is still waited for, or None."""
        return self._waiting_for

    def check_alive(self) -> dict[str, float]:
        """Figures for the liveness probe; raises Failed when only a restart helps."""
        oldest = self.queue.oldest_age_seconds()
        silent = max((informer.age_seconds() for informer in self._informers), default=0.0)
        if oldest > STUCK_SECONDS or silent > STUCK_SECONDS:
            raise errors.Failed(f"stuck: oldest pool queued for {oldest:.0f} s, no watch data for {silent:.0f} s")
        return {"oldest_queued_seconds": round(oldest, 3), "watch_age_seconds": round(silent, 3)}

    async def run(self) -> None:
        """Takes the Lease, fills the caches, reconciles. Raises LeaseLost, or what broke."""
        async with AsyncExitStack() as stack:
            client = await asyncio.to_thread(KubeClient, self._configuration, on_call=self.metrics.call)
            stack.push_async_callback(client.close)
            control = await stack.enter_async_context(
                HttpEngineControl(port=self.settings.engine_admin_port, timeout_seconds=self._probe_timeout())
            )
            await stack.enter_async_context(self._metrics_server())
            lease = self._lease(client)
            stack.push_async_callback(lease.release)
            workers = self._build_workers(client, control)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._end_when_asked(workers), name="stop")
                    await self._start(tasks, lease, client, workers)
            except* _Stopped:
                log.info("stopped")

    async def _start(self, tasks: asyncio.TaskGroup, lease: Lease, client: KubeClient, workers: Workers) -> None:
        self._waiting_for = "the lease"
        await lease.acquire()
        tasks.create_task(lease.keep(), name="lease")
        self._informers = build_informers(client, self._cache, self._clock, self.settings.namespaces)
        for informer in self._informers:
            tasks.create_task(informer.run(), name=f"watch {informer.kind.plural} {informer.namespace or ''}")
        for informer in self._informers:
            self._waiting_for = f"the list of {informer.kind.plural}"
            await informer.synced.wait()
        log.info("caches filled", pools=len(self._cache.all(kinds.POOL.name)))
        workers.start(tasks)
        tasks.create_task(workers.prober.run(), name="prober")
        tasks.create_task(self._gauges(workers.prober), name="gauges")
        self._waiting_for = None

    async def _end_when_asked(self, workers: Workers) -> None:
        await self._stopping.wait()
        self._waiting_for = "the end"
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await workers.finish()
        except TimeoutError:
            log.warning("reconciles cut short", seconds=FINISH_SECONDS)
        raise _Stopped

    def _build_workers(self, client: KubeClient, control: HttpEngineControl) -> Workers:
        prober = Prober(
            control,
            self._clock,
            self.wake,
            self._group_uid,
            master_token=self._master_token,
            interval_seconds=self.settings.probe_interval_seconds,
        )
        self._cache.listen(kinds.POD, prober.pod_changed)
        executor = Executor(
            reader=self._cache,
            writer=KubeWriter(client, self._cache),
            control=control,
            engines=prober,
            expectations=Expectations(),
            refusals=Refusals(),
            counters=self.metrics,
            clock=self._clock,
            build=BuildSettings(self.settings.image_pull_policy, self.settings.engine_log_level),
        )
        reconciler = PoolReconciler(
            executor=executor,
            readings=prober,
            events=EventPoster(client, self._clock, instance=self.settings.pod_name),
            clock=self._clock,
            settings=self.settings.decision_settings(),
            names=random_suffixes(),
            metrics=self.metrics,
            wake=self.wake,
        )
        return Workers(self.queue, reconciler, prober, self.metrics, self._clock, self.settings.workers)

    def _group_uid(self, namespace: str, name: str) -> str | None:
        group = self._cache.get(kinds.GROUP.name, namespace, name)
        return None if group is None else uid_of(group)

    def _lease(self, client: KubeClient) -> Lease:
        duration = self.settings.lease_seconds
        timings = LeaseTimings(duration, give_up_seconds=duration * 2 / 3, renew_seconds=duration / 5)
        return Lease(
            client,
            self._clock,
            namespace=self.settings.pod_namespace,
            name=self.settings.lease_name,
            identity=self.settings.identity(),
            timings=timings,
        )

    def _metrics_server(self) -> AbstractAsyncContextManager[int]:
        return metrics_server(
            self.metrics.exposition, self.not_ready, host=self.settings.listen_host, port=self.settings.metrics_port
        )

    def _probe_timeout(self) -> float:
        return max(1.0, self.settings.probe_interval_seconds)

    async def _gauges(self, prober: Prober) -> None:
        """Ages grow by themselves, so somebody has to look."""
        while True:
            for informer in self._informers:
                self.metrics.watch_age(informer.kind.name, informer.age_seconds())
            self.metrics.queue(len(self.queue), self.queue.oldest_age_seconds())
            for pool in self._cache.all(kinds.POOL.name):
                key = (pool["metadata"]["namespace"], pool["metadata"]["name"])
                self.metrics.signal_age(key, prober.oldest_answer_seconds(key))
            await asyncio.sleep(5.0)


class _Stopped(Exception):  # noqa: N818
    """Ends the task group; nothing went wrong."""


def random_suffixes() -> Iterator[str]:
    """Endless suffixes for group names."""
    while True:
        yield "".join(random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))
