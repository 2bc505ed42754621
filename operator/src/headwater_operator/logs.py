"""Log lines as JSON, or readable; the standard library's loggers, kopf's among them, come out alike."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure_logging(level: str, form: str) -> None:
    """Sets up both structlog and the standard library's logging, to standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # At info kopf tells of each handler that succeeded and aiohttp of each probe: a line every few seconds a pool,
    # in which what the operator does would drown.
    quiet = logging.INFO if root.level <= logging.DEBUG else max(logging.WARNING, root.level)
    for noisy in ("kopf", "asyncio", "aiohttp"):
        logging.getLogger(noisy).setLevel(quiet)
