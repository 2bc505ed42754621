"""One operator at a time, by a Lease.

A holder is dead when its Lease has not changed for the Lease's duration as measured here, on the monotonic
clock: clocks of two nodes are never compared. A holder that cannot renew gives up before that time is over. A
restarted container of the same pod has the same identity and continues its own Lease at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from headwater_operator import errors
from headwater_operator.adapters.kinds import LEASE
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.ports import Clock

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """renew < give up < duration."""

    duration_seconds: float = 15.0
    give_up_seconds: float = 10.0
    renew_seconds: float = 3.0
    look_seconds: float = 1.0
    """Between looks at a Lease that another holds."""


class Lease:
    """Taken by ``acquire``, kept by ``keep``, given back by ``release``."""

    def __init__(
        self,
        client: KubeClient,
        clock: Clock,
        *,
        namespace: str,
        name: str,
        identity: str,
        timings: LeaseTimings | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.held = False
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._timings = timings or LeaseTimings()
        self._sleep = sleep
        self._seen: tuple[str, float] | None = None
        """Version of another's Lease, and when it was first seen here."""
        self._renewed_at = 0.0

    async def acquire(self) -> None:
        """Waits until the Lease is ours."""
        told = ""
        while True:
            try:
                holder = await self._try()
            except errors.Refused as error:
                raise errors.LeaseLost(f"may not use Lease {self._namespace}/{self._name}: {error}") from error
            except errors.Failed as error:
                holder = f"unknown: {error}"
            if holder is None:
                log.info("lease taken", lease=self._name, identity=self._identity)
                return
            if holder != told:
                log.info("waiting for the lease", lease=self._name, holder=holder)
                told = holder
            await self._sleep(self._timings.look_seconds)

    async def keep(self) -> None:
        """Renews until cancelled; raises LeaseLost before another may hold it."""
        while (left := self._seconds_left()) > 0:
            await self._sleep(min(self._timings.renew_seconds, left))
            # A try that hangs must not outlast the time that is left: a successor counts on it.
            holder = await self._renew(self._seconds_left())
            if holder is not None:
                self.held = False
                raise errors.LeaseLost(f"Lease {self._name} is held by {holder}")
        self.held = False
        raise errors.LeaseLost(f"Lease {self._name} could not be renewed for {self._timings.give_up_seconds:g} s")

    def _seconds_left(self) -> float:
        """Until this holder gives up."""
        return self._renewed_at + self._timings.give_up_seconds - self._clock.monotonic()

    async def _renew(self, within_seconds: float) -> str | None:
        """One attempt; None if the Lease is still ours, or may be, else who holds it."""
        try:
            async with asyncio.timeout(max(0.0, within_seconds)):
                return await self._try()
        except TimeoutError:
            log.warning("lease not renewed", lease=self._name, error="no answer in time")
        except errors.OperatorError as error:
            log.warning("lease not renewed", lease=self._name, error=str(error))
        return None

    async def release(self) -> None:
        """Lets a successor start at once; a failure only makes it wait."""
        if not self.held:
            return
        self.held = False
        try:
            lease = await self._read()
            if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
                spec = lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
                await self._write("PUT", lease | {"spec": spec})
        except errors.OperatorError as error:
            log.warning("lease not released", lease=self._name, error=str(error))

    async def _try(self) -> str | None:
        """One attempt to take or renew; None if it is ours, else who holds it."""
        began = self._clock.monotonic()
        lease = await self._read()
        if lease is None:
            lease = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.name,
                "metadata": {"name": self._name, "namespace": self._namespace},
            }
            method = "POST"
        else:
            method = "PUT"
            holder = (lease.get("spec") or {}).get("holderIdentity") or ""
            if holder not in ("", self._identity) and not self._expired(lease):
                return str(holder)
        try:
            await self._write(method, lease | {"spec": self._spec(lease.get("spec") or {})})
        except (errors.Stale, errors.AlreadyExists):
            return "another, just now"
        self.held, self._seen, self._renewed_at = True, None, began
        return None

    def _expired(self, lease: dict[str, Any]) -> bool:
        version, now = str(lease["metadata"]["resourceVersion"]), self._clock.monotonic()
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, now)
        duration = float(lease["spec"].get("leaseDurationSeconds") or self._timings.duration_seconds)
        return now - self._seen[1] > duration

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        same = old.get("holderIdentity") == self._identity
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._timings.duration_seconds),
            "acquireTime": old.get("acquireTime", now) if same else now,
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (0 if same else 1),
        }

    async def _read(self) -> dict[str, Any] | None:
        try:
            return await self._client.call("GET", LEASE.path(self._namespace, self._name), timeout_seconds=5.0)
        except errors.NotFound:
            return None

    async def _write(self, method: str, lease: dict[str, Any]) -> None:
        name = None if method == "POST" else self._name
        await self._client.call(method, LEASE.path(self._namespace, name), body=lease, timeout_seconds=5.0)
