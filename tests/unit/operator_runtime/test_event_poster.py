"""Events that the API server does not take."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from headwater_operator import errors
from headwater_operator.adapters.events import EventPoster
from headwater_operator.adapters.rest import KubeClient

POOL = {"apiVersion": "a", "kind": "InferencePool", "metadata": {"name": "p", "namespace": "n", "uid": "u"}}


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


class Api:
    def __init__(self, error: errors.OperatorError) -> None:
        self.error = error

    async def call(self, *_: Any, **__: Any) -> dict[str, Any]:
        raise self.error


@pytest.mark.parametrize(
    "error", [errors.Refused("exceeded quota: events"), errors.OutcomeUnknown("no answer"), errors.Failed("429")]
)
async def test_an_event_that_is_not_taken_is_logged_and_stops_nothing(error: errors.OperatorError) -> None:
    poster = EventPoster(cast("KubeClient", Api(error)), Clock(), instance="op")
    with capture_logs() as logs:
        await poster.emit(POOL, "Promoted", "g takes traffic", warning=False)
    want = {"event": "event not recorded", "reason": "Promoted", "text": "g takes traffic", "error": str(error)}
    assert logs == [want | {"log_level": "warning"}]
