"""The one translator from errors to what clients read; what the log says is another text."""

from __future__ import annotations

from typing import Any

import orjson

from headwater_contracts import headers
from headwater_engine.core.inflight import EndCause
from headwater_engine.errors import CallerError, EngineError, Unavailable

Headers = list[tuple[bytes, bytes]]

_END_MESSAGES = {
    EndCause.STREAM_STALLED: "no token came for too long",
    EndCause.DRAIN_TIMEOUT: "this replica is shutting down and the answer could not be finished in time",
    EndCause.ENGINE_FAILED: "the engine stopped",
    EndCause.EXITING: "this replica is shutting down",
}


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def described(error: Exception) -> tuple[int, dict[str, Any], Headers]:
    """Status, body and headers of an error before the first byte."""
    if isinstance(error, CallerError):
        body = error_body(error.public, "invalid_request_error", param=error.param, code=error.code)
        # After a 413 the connection stays: closing it under a client that still sends would cost it the answer.
        return error.status, body, [(b"connection", b"close")] if error.status == 408 else []
    if isinstance(error, Unavailable):
        kind = "rate_limit_error" if error.status == 429 else "server_error"
        return (
            error.status,
            error_body(error.public, kind, code=error.code),
            [
                (headers.RETRY_AFTER.encode(), str(error.retry_after_seconds).encode()),
                (headers.REASON.encode(), error.reason.encode()),
            ],
        )
    if isinstance(error, EngineError):
        return 500, error_body(error.public, "server_error", code=error.code), []
    return 500, error_body("internal error", "server_error", code="internal_error"), []


def ended(cause: EndCause) -> EngineError:
    """The error of a request that was ended from outside."""
    error = EngineError(_END_MESSAGES.get(cause, "internal error"))
    error.public = str(error)
    error.code = cause.value
    return error


def in_band(error: Exception) -> bytes:
    """The payload of an error after the first byte."""
    return orjson.dumps(described(error)[1])
