"""Parses the JSON of ``chat.completion.chunk`` events and of OpenAI's error bodies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headwater_client.core.failures import Failure, FailureKind, RequestError

NO_JSON = (ValueError, RecursionError)
"""What ``json.loads`` raises, the second for what is nested too deep."""
MAX_ECHO_CHARACTERS = 500
"""How much of an answer that cannot be parsed is shown."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the server reports them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream; ``at_seconds`` is the client's clock when its last byte was received."""

    at_seconds: float
    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None


def parse_chunk(data: str, at_seconds: float) -> Chunk:
    """Parses one event. Raises RequestError for an error object, or for what is not a chunk."""
    body = _json_object(data)
    if (error := body.get("error")) is not None:
        raise RequestError(_in_band(error))
    try:
        choices = body["choices"]
        choice = choices[0] if choices else {}
        text = _text((choice.get("delta") or {}).get("content"))
        finish = _text(choice.get("finish_reason"))
        return Chunk(at_seconds, text, finish or None, _usage(body.get("usage")))
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise protocol_error(f"not a chat completion chunk: {data[:MAX_ECHO_CHARACTERS]}") from error


def parse_error_body(body: str) -> tuple[str, str | None]:
    """Message and code of an HTTP error body: OpenAI's shape, FastAPI's ``detail``, or plain text."""
    try:
        parsed = json.loads(body)
    except NO_JSON:
        parsed = None
    if isinstance(parsed, dict):
        error = parsed.get("error", parsed.get("detail"))
        if isinstance(error, dict) and "message" in error:
            return str(error["message"]), _text_or_none(error.get("code"))
        if isinstance(error, str):
            return error, None
    return body.strip()[:MAX_ECHO_CHARACTERS] or "(empty body)", None


def protocol_error(message: str) -> RequestError:
    """An answer that breaks the API's promise."""
    return RequestError(Failure(FailureKind.PROTOCOL, message))


def _json_object(data: str) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except NO_JSON as error:
        raise protocol_error(f"not JSON: {data[:MAX_ECHO_CHARACTERS]}") from error
    if not isinstance(body, dict):
        raise protocol_error(f"not a JSON object: {data[:MAX_ECHO_CHARACTERS]}")
    return body


def _in_band(error: Any) -> Failure:
    if not isinstance(error, dict):
        return Failure(FailureKind.IN_BAND, str(error))
    return Failure(FailureKind.IN_BAND, str(error.get("message", error)), code=_text_or_none(error.get("code")))


def _usage(body: Any) -> Usage | None:
    if body is None:
        return None
    usage = Usage(int(body["prompt_tokens"]), int(body.get("completion_tokens") or 0))
    if min(usage.prompt_tokens, usage.completion_tokens) < 0:
        raise ValueError("negative counts")
    return usage


def _text(value: Any) -> str:
    if not isinstance(value, str | None):
        raise TypeError("not a text")
    return value or ""


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)
