"""Whether a request may start. Pure."""

from __future__ import annotations

from headwater_engine.core.lifecycle import Admission
from headwater_engine.errors import Unavailable

_RETRY_LOADING_SECONDS = 5
_RETRY_SECONDS = 1

_REFUSALS = {
    Admission.LOADING: ("the model is still loading", _RETRY_LOADING_SECONDS),
    Admission.DRAINING: ("this replica takes no new requests; try again", _RETRY_SECONDS),
    Admission.UNHEALTHY: ("this replica has failed; try again", _RETRY_SECONDS),
}


def admit(state: Admission, *, waiting: int, max_waiting: int) -> None:
    """Raises Unavailable: 503 by state, 429 when ``max_waiting`` requests have no first token yet."""
    refusal = _REFUSALS.get(state)
    if refusal is not None:
        raise Unavailable(refusal[0], reason=state.value, retry_after_seconds=refusal[1])
    if waiting >= max_waiting:
        raise Unavailable(
            "too many requests are waiting; try again",
            reason="too_many_waiting",
            retry_after_seconds=_RETRY_SECONDS,
            status=429,
        )
