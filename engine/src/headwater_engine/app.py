"""Puts an engine together and runs it behind its two ports."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import structlog

from headwater_engine.adapters.clock import wall_seconds
from headwater_engine.adapters.process import LoopGuard, check_file_limit, write_last_words
from headwater_engine.api.admin_app import AdminControls, admin_app
from headwater_engine.api.generate import Serving
from headwater_engine.api.http_app import http_app
from headwater_engine.api.metrics import EngineCollector, metrics_registry
from headwater_engine.api.parse import ServedModel
from headwater_engine.api.server import listen, make_server
from headwater_engine.api.stream import StreamLimits
from headwater_engine.clock import Clock, MonotonicClock
from headwater_engine.engine import EXIT_FAILED, Engine
from headwater_engine.ports import Backend, FaultInjection
from headwater_engine.settings import EngineSettings

_LOOP_STUCK_EXTRA_SECONDS = 3.0

_log = structlog.get_logger("headwater.engine")


async def serve(settings: EngineSettings, backend: Backend, version: str | None) -> int:
    """Runs one engine until it is told to end or fails; the process's exit code."""
    clock = MonotonicClock()
    check_file_limit()
    sockets = (listen(settings.http_port), listen(settings.admin_port))
    engine = Engine(settings, backend, clock, write_last_words, version)
    servers = (make_server(http_app(_serving(engine), group=settings.group)), make_server(admin_app(_controls(engine))))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, engine.terminate)
    ports = [each.getsockname()[1] for each in sockets]
    async with asyncio.TaskGroup() as group:
        for server, listener in zip(servers, sockets, strict=True):
            group.create_task(server.serve([listener]))
        _log.info("listening", http_port=ports[0], admin_port=ports[1], backend=settings.backend, pid=os.getpid())
        beating = group.create_task(_beat(engine, settings, clock))
        code = await engine.run()
        beating.cancel()
        # Last of all, so that health and admin answer to the end.
        for server in servers:
            server.should_exit = True
    _log.info("exiting", code=code)
    return code


def _serving(engine: Engine) -> Serving:
    settings = engine.settings
    return Serving(
        backend=engine.backend,
        model=ServedModel(settings.model_name, scripts=settings.sim_scripts),
        lifecycle=engine.lifecycle,
        registry=engine.registry,
        meters=engine.meters,
        clock=engine.clock,
        wall_seconds=wall_seconds,
        max_waiting=settings.max_waiting,
        limits=StreamLimits(
            keep_alive=settings.keep_alive_seconds,
            client_stall=settings.client_stall_seconds,
            stream_stall=settings.stream_stall_seconds,
        ),
        on_dead=engine.found_dead,
    )


def _controls(engine: Engine) -> AdminControls:
    settings = engine.settings
    return AdminControls(
        state=engine.state,
        drain=engine.drain,
        undrain=engine.lifecycle.undrain,
        faults=engine.backend if isinstance(engine.backend, FaultInjection) else None,
        metrics=metrics_registry(EngineCollector(settings.model_name, engine.state, engine.meters)),
        token_sha256=settings.admin_token_sha256,
    )


async def _beat(engine: Engine, settings: EngineSettings, clock: Clock) -> None:
    patience = settings.health_interval_seconds * settings.health_failure_threshold + _LOOP_STUCK_EXTRA_SECONDS
    guard = LoopGuard(patience, lambda: _exit_stuck(patience))
    # Loading may rightly hold the loop: importing and building an engine does.
    while not engine.lifecycle.is_loaded:
        await clock.sleep(0.2)
    guard.start()
    try:
        while True:
            guard.beat()
            await clock.sleep(settings.health_interval_seconds / 5)
    finally:
        guard.stop()


def _exit_stuck(seconds: float) -> None:
    message = f"loop_stuck: the event loop has not turned for {seconds:g} s"
    write_last_words(message)
    _log.error("engine failed", reason="loop_stuck", detail=message)
    logging.shutdown()
    os._exit(EXIT_FAILED)
