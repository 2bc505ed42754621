"""The port that clients reach: OpenAI's endpoints, health and readiness."""

from __future__ import annotations

from headwater_contracts import headers, network
from headwater_contracts.admin import EnginePhase
from headwater_engine.api.exchange import Exchange, Headers
from headwater_engine.api.generate import Serving, chat_endpoint, completions_endpoint
from headwater_engine.api.router import Router, Routes
from headwater_engine.core.lifecycle import Admission


def http_app(serving: Serving, *, group: str | None) -> Router:
    """Routes of the HTTP port."""
    started = int(serving.wall_seconds())

    async def models(exchange: Exchange) -> None:
        context = serving.backend.max_model_len if serving.lifecycle.is_loaded else None
        model = {"id": serving.model.name, "object": "model", "created": started, "owned_by": "headwater"}
        await exchange.json(200, {"object": "list", "data": [{**model, "max_model_len": context}]})

    async def healthy(exchange: Exchange) -> None:
        failure = serving.lifecycle.failure
        if failure is None:
            await exchange.json(200, {"status": "ok"})
        else:
            await exchange.json(503, {"status": "failed", "reason": failure.reason, "message": failure.message})

    async def ready(exchange: Exchange) -> None:
        phase = serving.lifecycle.phase
        status = 200 if phase is EnginePhase.READY else 503
        reason = [] if status == 200 else [(headers.REASON.encode(), phase.value.encode())]
        await exchange.json(status, {"status": phase.value}, reason)

    def common() -> Headers:
        found: Headers = [] if group is None else [(headers.GROUP.encode(), group.encode())]
        # Keep-alive pools learn in time that this replica goes away.
        if serving.lifecycle.admission(serving.clock.now()) in (Admission.CLOSING, Admission.DRAINING):
            found.append((b"connection", b"close"))
        return found

    routes: Routes = {
        "/v1/chat/completions": {"POST": chat_endpoint(serving)},
        "/v1/completions": {"POST": completions_endpoint(serving)},
        "/v1/models": {"GET": models},
        network.HEALTH_PATH: {"GET": healthy},
        network.READY_PATH: {"GET": ready},
    }
    return Router(routes, common)
