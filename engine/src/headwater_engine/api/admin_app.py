"""The admin port: state, drain, faults, metrics. Cluster-internal; all but metrics needs the token."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from headwater_contracts import network
from headwater_contracts.admin import EngineState, token_matches
from headwater_engine.api.exchange import Exchange, header
from headwater_engine.api.router import Handler, Router, Routes
from headwater_engine.errors import CallerError
from headwater_engine.ports import FaultInjection

_MAX_BODY = 64 * 1024
_MOST_SECONDS = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class AdminControls:
    """What the admin port reads and moves."""

    state: Callable[[], EngineState]
    drain: Callable[[float | None, float | None], None]
    """(timeout, settle) in seconds; None takes the configured value."""
    undrain: Callable[[], bool]
    faults: FaultInjection | None
    metrics: CollectorRegistry
    token_sha256: str | None
    """Without one only loopback is served."""


def admin_app(controls: AdminControls) -> Router:
    """Routes of the admin port."""

    async def state(exchange: Exchange) -> None:
        await exchange.json(200, controls.state().to_json())

    async def drain(exchange: Exchange) -> None:
        body = await _object(exchange)
        controls.drain(_seconds(body, "timeout_seconds"), _seconds(body, "settle_seconds"))
        await exchange.json(200, controls.state().to_json())

    async def undrain(exchange: Exchange) -> None:
        if not controls.undrain():
            raise CallerError("the process is ending; its drain can't be undone", code="terminating", status=409)
        await exchange.json(200, controls.state().to_json())

    async def faults(exchange: Exchange) -> None:
        if controls.faults is None:
            raise CallerError("this backend has no faults", code="not_found", status=404)
        try:
            controls.faults.inject(await _object(exchange))
        except ValueError as error:
            raise CallerError(str(error), code="invalid_value") from error
        await exchange.json(200, {"status": "ok"})

    async def metrics(exchange: Exchange) -> None:
        data = generate_latest(controls.metrics)
        length = (b"content-length", str(len(data)).encode())
        await exchange.start(200, [(b"content-type", CONTENT_TYPE_LATEST.encode()), length])
        await exchange.finish(data)

    def guarded(handler: Handler) -> Handler:
        async def check_first(exchange: Exchange) -> None:
            _check_access(exchange, controls.token_sha256)
            await handler(exchange)

        return check_first

    routes: Routes = {
        network.ADMIN_STATE_PATH: {"GET": guarded(state)},
        network.ADMIN_DRAIN_PATH: {"POST": guarded(drain)},
        network.ADMIN_UNDRAIN_PATH: {"POST": guarded(undrain)},
        network.ADMIN_FAULTS_PATH: {"POST": guarded(faults)},
        network.METRICS_PATH: {"GET": metrics},
    }
    return Router(routes, list)


def _check_access(exchange: Exchange, digest: str | None) -> None:
    if digest is None:
        if not _is_loopback(exchange.scope.get("client")):
            raise CallerError("no admin token is configured: only loopback is served", code="forbidden", status=403)
        return
    scheme, _, token = (header(exchange.scope, b"authorization") or b"").partition(b" ")
    presented = token.strip().decode("latin-1")
    if scheme.lower() != b"bearer" or not token_matches(presented, digest):
        raise CallerError("a valid admin token is required", code="unauthorized", status=401)


def _is_loopback(client: tuple[str, int] | None) -> bool:
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


async def _object(exchange: Exchange) -> dict[str, Any]:
    data = await exchange.body(_MAX_BODY)
    try:
        body = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError as error:
        raise CallerError("the body is not valid JSON", code="invalid_json") from error
    if not isinstance(body, dict):
        raise CallerError("the body must be a JSON object", code="invalid_json")
    return body


def _seconds(body: dict[str, Any], name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_SECONDS:
        raise CallerError(f"{name} must be a number from 0 to {_MOST_SECONDS:.0f}", param=name, code="invalid_value")
    return float(value)
