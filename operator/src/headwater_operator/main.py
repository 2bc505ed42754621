"""Runs the operator until it is told to stop, and turns its end into an exit code."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from importlib.metadata import version

import kopf
from kubernetes.aio.client import Configuration

from headwater_operator import errors
from headwater_operator.adapters.login import load_configuration
from headwater_operator.handlers.registry import Process, build_kopf_settings, build_registry
from headwater_operator.handlers.runtime import Runtime
from headwater_operator.logs import configure_logging
from headwater_operator.settings import PREFIX, Settings, SettingsError, load_settings

BAD_SETTINGS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 after a stop that was asked for, 1 if the operator broke or lost its Lease, 2 for bad settings."""
    _parser().parse_args(arguments)
    try:
        settings = load_settings()
        token = settings.master_token()
        configure_logging(settings.log_level, settings.log_format)
        configuration = load_configuration()
    except (SettingsError, errors.Failed) as error:
        print(f"headwater-operator: {error}", file=sys.stderr)  # noqa: T201 - nothing else is set up yet
        return BAD_SETTINGS
    return asyncio.run(_serve(settings, configuration, token))


async def _serve(settings: Settings, configuration: Configuration, token: bytes) -> int:
    process = Process(lambda: Runtime(settings, configuration, token))
    await kopf.operator(
        registry=build_registry(process),
        settings=build_kopf_settings(),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
        liveness_endpoint=f"http://{settings.listen_host}:{settings.probe_port}/healthz",
        stop_flag=process.stop_flag,
    )
    return 0 if process.failure is None else 1


def _parser() -> argparse.ArgumentParser:
    fields = Settings.model_fields.items()
    lines = [f"  {PREFIX}{name.upper():<26} {field.description}" for name, field in fields]
    parser = argparse.ArgumentParser(
        prog="headwater-operator",
        description="Runs InferencePools. It is configured by environment variables alone.",
        epilog="environment variables:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"headwater-operator {version('headwater')}")
    return parser
