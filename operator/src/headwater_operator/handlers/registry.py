"""What kopf is told: it owns the process, its signals, its credentials and its probe, and wakes us for pools.

Only ``on.event`` is used on objects: it writes nothing to them. No finalizer, no annotation, no status of kopf's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import kopf
import structlog

from headwater_contracts.labels import API_GROUP, API_VERSION
from headwater_operator.handlers.runtime import FINISH_SECONDS, Runtime

log = structlog.get_logger(__name__)


class Process:
    """Ties one Runtime to one kopf operator."""

    def __init__(self, make_runtime: Callable[[], Runtime]) -> None:
        self._make_runtime = make_runtime
        self.stop_flag = asyncio.Event()
        self.runtime: Runtime | None = None
        self.failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the runtime; if it ends by itself, so does the process."""
        self.runtime = self._make_runtime()
        self._task = asyncio.create_task(self.runtime.run(), name="runtime")
        self._task.add_done_callback(self._ended)

    async def finish(self) -> None:
        """Stops the runtime within a bound."""
        if self.runtime is None or self._task is None:
            return
        self.runtime.stop()
        await asyncio.wait({self._task}, timeout=FINISH_SECONDS + 4.0)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=2.0)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()
            log.error("operator ends", error=_causes(self.failure))
        self.stop_flag.set()


def _causes(error: BaseException | None) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_causes(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


def build_registry(process: Process) -> kopf.OperatorRegistry:
    """kopf's handlers of this process."""

    async def startup(**_: Any) -> None:
        process.start()

    async def cleanup(**_: Any) -> None:
        await process.finish()

    async def alive(**_: Any) -> dict[str, float]:
        return process.runtime.check_alive() if process.runtime is not None else {}

    async def pool_event(namespace: str | None, name: str | None, **_: Any) -> None:
        if process.runtime is not None and namespace and name:
            process.runtime.wake((namespace, name))

    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(_login)
    kopf.on.startup(registry=registry)(startup)
    kopf.on.cleanup(registry=registry)(cleanup)
    kopf.on.probe(registry=registry, id="operator")(alive)
    kopf.on.event(API_GROUP, API_VERSION, "inferencepools", registry=registry)(pool_event)
    return registry


def _login(**kwargs: Any) -> Any:
    """Not async: it reads files, so kopf runs it in a thread."""
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


def build_kopf_settings() -> kopf.OperatorSettings:
    """kopf's settings, each away from its default for a reason."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False  # events on pools are ours to write
    settings.peering.standalone = True  # the Lease sees to it that one operator runs
    settings.scanning.disabled = True  # namespaces and kinds are given; watching CRDs would need more rights
    settings.watching.inactivity_timeout = 70.0  # a black-holed watch is noticed after a missed bookmark
    settings.networking.request_timeout = 30.0  # the default of 5 minutes outlives every use of an answer
    settings.networking.connect_timeout = 5.0
    settings.process.ultimate_exiting_timeout = 25.0  # within the pod's grace period
    return settings
