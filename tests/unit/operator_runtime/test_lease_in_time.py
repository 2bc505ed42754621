"""When a holder gives its Lease up, in virtual time: before a successor may take it, whatever the API server does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from headwater_operator import errors
from headwater_operator.adapters.lease import Lease, LeaseTimings
from headwater_operator.adapters.rest import KubeClient

pytestmark = pytest.mark.looptime
TIMINGS = LeaseTimings(duration_seconds=15.0, give_up_seconds=10.0, renew_seconds=3.0)


class LoopClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass
class Api:
    """Holds one Lease; from ``hangs_from`` on it answers these methods only by a timeout, as a dead node does."""

    hangs_from: float = float("inf")
    hanging: tuple[str, ...] = ("GET", "PUT")
    slow_seconds: float = 0.0
    lease: dict[str, Any] | None = None
    asked: list[float] = field(default_factory=list)

    async def call(self, method: str, path: str, *, body: Any = None, timeout_seconds: float) -> dict[str, Any]:
        self.asked.append(asyncio.get_running_loop().time())
        if self.asked[-1] >= self.hangs_from and method in self.hanging:
            await asyncio.sleep(timeout_seconds)
            raise errors.OutcomeUnknown(f"{method} {path}: no answer")
        await asyncio.sleep(self.slow_seconds)
        if method == "GET" and self.lease is None:
            raise errors.NotFound(path)
        if body is not None:
            self.lease = body | {"metadata": body["metadata"] | {"resourceVersion": str(len(self.asked))}}
        return self.lease or {}


async def taken(api: Api) -> Lease:
    lease = Lease(cast("KubeClient", api), LoopClock(), namespace="n", name="operator", identity="one", timings=TIMINGS)
    await lease.acquire()
    return lease


@pytest.mark.parametrize("hanging", [("GET",), ("PUT",), ("GET", "PUT")])
@pytest.mark.parametrize("renewals_before", [0, 1, 4])
async def test_a_holder_whose_api_server_hangs_gives_up_before_a_successor_may_start(
    hanging: tuple[str, ...], renewals_before: int
) -> None:
    last_renewal = renewals_before * TIMINGS.renew_seconds
    lease = await taken(Api(hangs_from=last_renewal + 0.1, hanging=hanging))
    with pytest.raises(errors.LeaseLost, match="could not be renewed for 10 s"):
        await lease.keep()
    assert asyncio.get_running_loop().time() == pytest.approx(last_renewal + TIMINGS.give_up_seconds, abs=0.01)
    assert not lease.held


async def test_a_holder_whose_api_server_is_slow_keeps_its_lease() -> None:
    api = Api()
    lease = await taken(api)
    api.slow_seconds = 1.5
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(lease.keep(), 300)
    assert lease.held
    assert len(api.asked) > 60
