"""One engine: its life from loading to exit, and its figures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from headwater_contracts.admin import EngineState
from headwater_engine.clock import Clock
from headwater_engine.core.drain import Drainer
from headwater_engine.core.inflight import EndCause, Registry
from headwater_engine.core.lifecycle import Admission, Failure, Lifecycle
from headwater_engine.core.meters import Meters
from headwater_engine.core.watchdog import Watchdog, WatchdogRules
from headwater_engine.errors import BackendDead, HeadwaterEngineError
from headwater_engine.ports import Backend
from headwater_engine.probe import Probe
from headwater_engine.settings import EngineSettings

EXIT_OK = 0
EXIT_FAILED = 70
EXIT_FORCED = 143

_LAST_WORDS_SECONDS = 2.0
_STOP_SECONDS = 30.0
_STOP_FAILED_SECONDS = 5.0

_log = structlog.get_logger("headwater.engine")


class Engine:
    """Owns the backend. ``run`` lasts as long as the engine does and returns the process's exit code."""

    def __init__(
        self,
        settings: EngineSettings,
        backend: Backend,
        clock: Clock,
        last_words: Callable[[str], None],
        version: str | None = None,
    ) -> None:
        self.settings = settings
        self.backend = backend
        self.clock = clock
        self.registry = Registry()
        self.lifecycle = Lifecycle(self._changed)
        self.meters = Meters(slo_ttft=settings.slo_ttft_seconds, slo_itl=settings.slo_itl_seconds)
        self._last_words = last_words
        self._drainer = Drainer(self.lifecycle, self.registry, clock)
        self._probe = Probe(backend)
        rules = WatchdogRules(settings.health_interval_seconds, settings.health_failure_threshold)
        self._watchdog = Watchdog(backend, rules, self._probe.run, clock)
        self._terminating = asyncio.Event()
        self._outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._load_seconds: float | None = None
        self._version = version

    # Life

    async def run(self) -> int:
        """Loads, watches, drains when told to; returns when the process should exit."""
        async with asyncio.TaskGroup() as group:
            helpers = (
                group.create_task(self._load_and_watch()),
                group.create_task(self._drainer.run()),
                group.create_task(self._finish_when_drained()),
            )
            code = await self._outcome
            for helper in helpers:
                helper.cancel()
        self.registry.end_all(EndCause.EXITING if self.lifecycle.failure is None else EndCause.ENGINE_FAILED)
        await self._quietly(self.registry.idle(), _LAST_WORDS_SECONDS)
        bound = _STOP_SECONDS if code == EXIT_OK else _STOP_FAILED_SECONDS
        await self._quietly(self.backend.stop(), bound)
        return code

    def terminate(self) -> None:
        """SIGTERM: drain, then exit 0. A second time: exit now."""
        if self._terminating.is_set():
            _log.warning("told twice to end: exiting now")
            self._end(EXIT_FORCED)
            return
        _log.info("told to end", in_flight=len(self.registry))
        self._terminating.set()
        settings = self.settings
        self.lifecycle.begin_drain(
            self.clock.now(),
            settle=settings.endpoint_settle_seconds,
            timeout=settings.drain_timeout_seconds,
            final=True,
        )

    def drain(self, timeout: float | None, settle: float | None) -> None:
        """Starts a drain that ``undrain`` can take back; None takes the configured seconds."""
        settings = self.settings
        self.lifecycle.begin_drain(
            self.clock.now(),
            settle=settings.endpoint_settle_seconds if settle is None else settle,
            timeout=settings.drain_timeout_seconds if timeout is None else timeout,
        )

    def fail(self, failure: Failure) -> None:
        """The engine is dead: streams end in band, the process exits non-zero."""
        if self.lifecycle.failure is not None:
            return
        _log.error("engine failed", reason=failure.reason, detail=failure.message, in_flight=len(self.registry))
        self._last_words(f"{failure.reason}: {failure.message}")
        self.lifecycle.fail(failure.reason, failure.message)
        self.registry.end_all(EndCause.ENGINE_FAILED)
        self._end(EXIT_FAILED)

    def found_dead(self, error: BackendDead) -> None:
        """A request met a dead backend."""
        if self.lifecycle.is_loaded and not self._outcome.done():
            self.fail(Failure("engine_dead", f"the engine beneath is gone: {error}"))

    async def _load_and_watch(self) -> None:
        begun = self.clock.now()
        deadline = self.settings.startup_deadline_seconds
        try:
            async with asyncio.timeout(deadline):
                await self.backend.start()
                # Ready means that a request has been served.
                await self._probe.run()
        except TimeoutError:
            self.fail(Failure("startup_deadline", f"not loaded within {deadline:g} s"))
            return
        except Exception as error:  # noqa: BLE001 - whatever stops it from loading is the reason given
            _log.exception("loading failed")
            detail = str(error) if isinstance(error, HeadwaterEngineError) else repr(error)
            self.fail(Failure("load_failed", detail))
            return
        self._load_seconds = self.clock.now() - begun
        self.lifecycle.loaded()
        await self._watchdog.run(self.fail)

    async def _finish_when_drained(self) -> None:
        await self._terminating.wait()
        await self._drainer.drained()
        self._end(EXIT_OK)

    def _end(self, code: int) -> None:
        if not self._outcome.done():
            self._outcome.set_result(code)

    def _changed(self) -> None:
        self._drainer.changed()
        _log.info("phase", phase=self.lifecycle.phase.value, draining=self.lifecycle.drain is not None)

    async def _quietly(self, ending: Awaitable[None], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await ending
        except Exception as error:  # noqa: BLE001 - the process ends whatever happens here
            _log.warning("could not end in time", seconds=seconds, error=repr(error))

    # Figures

    def state(self) -> EngineState:
        """Figures as of now."""
        settings, life, now = self.settings, self.lifecycle, self.clock.now()
        figures, failure = self.backend.state(), self.lifecycle.failure
        return EngineState(
            phase=life.phase,
            step=figures.step,
            running=figures.running,
            waiting=figures.waiting,
            suspended=figures.suspended,
            healthy=False if failure else (True if life.is_loaded else None),
            failure_reason=failure.reason if failure else None,
            failure_message=failure.message if failure else None,
            group=settings.group,
            pod=settings.pod_name,
            backend=settings.backend,
            model=settings.model_name,
            version=self._version,
            admitting=life.admission(now) in (Admission.OPEN, Admission.CLOSING),
            drained=life.drained(now, len(self.registry)),
            kv_used_blocks=figures.kv_used_blocks,
            kv_total_blocks=figures.kv_total_blocks,
            kv_block_size_tokens=figures.kv_block_size_tokens,
            load_seconds=self._load_seconds,
            last_progress_age_seconds=_age(now, self._watchdog.last_progress),
            last_test_inference_age_seconds=_age(now, self._watchdog.last_test),
            ranks=figures.ranks,
            ttft=self.meters.ttft.snapshot(),
            itl=self.meters.itl.snapshot(),
        )


def _age(now: float, then: float | None) -> float | None:
    return None if then is None else round(now - then, 3)
