"""What can go wrong with a request, as values: one kind each, told apart the same way everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Where a request failed."""

    CONNECT = "connect"
    """No HTTP response: refused, unknown host, or closed before the status line."""
    HTTP = "http"
    """A response with a status of 400 or above."""
    IN_BAND = "in_band"
    """An ``error`` object inside the stream, after the first byte."""
    TRUNCATED = "truncated"
    """The stream ended without ``[DONE]``, or without a finish reason."""
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    """An answer that is not what the OpenAI API promises."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request. ``message`` may hold the server's text: clean it before it meets a terminal."""

    kind: FailureKind
    message: str
    status: int | None = None
    code: str | None = None
    reason: str | None = None
    """The server's ``x-headwater-reason``."""
    retry_after_seconds: float | None = None


class RequestError(Exception):
    """Carries a Failure out of the streaming client."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def describe(failure: Failure, url: str) -> str:
    """One or two lines for a person: what happened, and what to do where that is known."""
    match failure.kind:
        case FailureKind.CONNECT:
            return f"cannot reach {url}: {failure.message}\nIs the server running? Set --url or HEADWATER_URL."
        case FailureKind.HTTP:
            return _describe_status(failure)
        case FailureKind.IN_BAND:
            code = f" ({failure.code})" if failure.code else ""
            return f"the engine ended the stream with an error{code}: {failure.message}"
        case FailureKind.TRUNCATED:
            return f"the answer is incomplete: {failure.message}"
        case FailureKind.TIMEOUT:
            return f"timed out: {failure.message}"
        case FailureKind.PROTOCOL:
            return f"unexpected answer from {url}: {failure.message}"


def _describe_status(failure: Failure) -> str:
    reason = f" ({failure.reason})" if failure.reason else ""
    text = f"the server answered {failure.status}{reason}: {failure.message}"
    if failure.retry_after_seconds is not None:
        return f"{text}\nTry again in {failure.retry_after_seconds:g} s."
    if failure.status == 404:
        return f"{text}\nGET /v1/models lists the models of this server; choose one with --model."
    if failure.status in (401, 403):
        return f"{text}\nSet --api-key or HEADWATER_API_KEY."
    return text
