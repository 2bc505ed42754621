"""Runs one engine, told what to be by its environment, and turns its end into an exit code."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

import structlog
import uvloop
from pydantic import ValidationError

from headwater_engine.adapters.logs import configure_logs
from headwater_engine.adapters.process import installed_version, write_last_words
from headwater_engine.app import serve
from headwater_engine.backends.factory import create_backend
from headwater_engine.engine import EXIT_FAILED, EXIT_OK
from headwater_engine.settings import EngineSettings

_EXIT_USAGE = 64


def main() -> int:
    """Runs to the end; the exit code."""
    try:
        settings = EngineSettings()
    except ValidationError as error:
        return _misconfigured(error)
    configure_logs(settings.log_level, group=settings.group)
    try:
        # Before the loop starts: both read files.
        backend, version = create_backend(settings), installed_version()
        return uvloop.run(serve(settings, backend, version))
    except ValueError as error:
        return _misconfigured(error)
    except Exception as error:  # noqa: BLE001 - the last stop: an exit code and a reason, whatever it was
        structlog.get_logger("headwater.engine").error("crashed", exc_info=error)
        write_last_words(f"crashed: {error!r}")
        return EXIT_FAILED


def _misconfigured(error: ValueError) -> int:
    configure_logs("INFO", group=None)
    structlog.get_logger("headwater.engine").error("wrong settings", detail=str(error))
    write_last_words(f"wrong settings: {error}")
    return _EXIT_USAGE


def run() -> NoReturn:
    """Runs an engine and ends the process."""
    code = main()
    if code == EXIT_OK:
        sys.exit(code)
    # What failed may have left threads that never end.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
