"""Scripts: a request that says itself what the engine is to answer (``HEADWATER_SIM_SCRIPTS=1``).

A list of steps, each ``{"tokens": ["AB", {"b64": "8J+R"}], "delay_ms": 5, "finish": "stop" | "length" | null,
"error": "…" | null}``. A token is a text or raw bytes. The delay passes before the step. A last step without
finish or error leaves the request hanging.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headwater_engine.errors import CallerError
from headwater_engine.ports import FinishReason

_KEYS = {"tokens", "delay_ms", "finish", "error"}
_MAX_DELAY_MS = 600_000


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One step to play back; ``delay`` in seconds."""

    tokens: tuple[bytes, ...]
    delay: float
    finish: FinishReason | None
    error: str | None


def parse(script: Sequence[Mapping[str, Any]]) -> tuple[ScriptStep, ...]:
    """Checks a script. Raises CallerError that names the step."""
    return tuple(_step(index, step) for index, step in enumerate(script))


def _step(index: int, step: Any) -> ScriptStep:
    if not isinstance(step, Mapping):
        raise _wrong(index, "is not an object")
    unknown = sorted(set(step) - _KEYS)
    if unknown:
        raise _wrong(index, f"has unknown fields: {', '.join(unknown)}")
    tokens, delay = step.get("tokens") or (), step.get("delay_ms") or 0
    finish, error = step.get("finish"), step.get("error")
    if not isinstance(tokens, list | tuple):
        raise _wrong(index, "has tokens that are not a list")
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= _MAX_DELAY_MS:
        raise _wrong(index, f"has a delay_ms outside 0 to {_MAX_DELAY_MS}")
    if finish not in (None, "stop", "length"):
        raise _wrong(index, "has a finish that is neither stop, length nor null")
    if error is not None and not isinstance(error, str):
        raise _wrong(index, "has an error that is not a text")
    return ScriptStep(
        tuple(_token(index, token) for token in tokens), delay / 1000, cast("FinishReason | None", finish), error
    )


def _token(index: int, token: Any) -> bytes:
    if isinstance(token, str):
        return token.encode("utf-8", errors="surrogatepass")
    try:
        return base64.b64decode(token["b64"], validate=True)
    except (TypeError, KeyError, IndexError, binascii.Error, ValueError) as error:
        raise _wrong(index, 'has a token that is neither a text nor {"b64": …}') from error


def _wrong(index: int, what: str) -> CallerError:
    return CallerError(f"headwater_script[{index}] {what}", param="headwater_script")
