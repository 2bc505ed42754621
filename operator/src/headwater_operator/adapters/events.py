"""Kubernetes events, counted instead of repeated."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import structlog

from headwater_operator import errors
from headwater_operator.adapters.kinds import EVENT
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.adapters.store import key_of, uid_of
from headwater_operator.ports import Clock, Object

log = structlog.get_logger(__name__)

REPEAT_SECONDS = 600.0
"""The same event within this time raises the count of the one before."""
QUIET_SECONDS = 30.0
"""The same event within this time is not written at all: a loop must not become a write loop."""
_REMEMBERED = 2000
_COMPONENT = "headwater-operator"
_LONGEST_MESSAGE = 1000


@dataclass(slots=True)
class _Posted:
    name: str
    count: int
    at: float


class EventPoster:
    """Implements Events with core/v1 events, which ``kubectl describe`` shows."""

    def __init__(self, client: KubeClient, clock: Clock, *, instance: str) -> None:
        self._client = client
        self._clock = clock
        self._instance = instance
        self._posted: OrderedDict[tuple[str, str, str], _Posted] = OrderedDict()

    async def emit(self, regarding: Object, reason: str, message: str, *, warning: bool) -> None:
        """Records an event; a failure is logged, never raised."""
        identity = (uid_of(regarding), reason, message)
        before, now = self._posted.get(identity), self._clock.monotonic()
        if before is not None and now - before.at < QUIET_SECONDS:
            return
        try:
            if before is not None and now - before.at < REPEAT_SECONDS:
                await self._repeat(regarding, before, now)
            else:
                await self._post(regarding, identity, warning, now)
        except errors.NotFound:
            self._posted.pop(identity, None)  # the API server has expired it; the next one starts anew
        except errors.OperatorError as error:
            log.warning("event not recorded", reason=reason, text=message, error=str(error))

    async def _post(self, regarding: Object, identity: tuple[str, str, str], warning: bool, now: float) -> None:
        namespace, name = key_of(regarding)
        stamp = self._clock.now()
        digest = hashlib.sha256("\0".join((*identity, stamp.isoformat())).encode()).hexdigest()[:16]
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{digest}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                "namespace": namespace,
                "name": name,
                "uid": uid_of(regarding),
            },
            "reason": identity[1],
            "message": identity[2][:_LONGEST_MESSAGE],
            "type": "Warning" if warning else "Normal",
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": _seconds(stamp.isoformat()),
            "lastTimestamp": _seconds(stamp.isoformat()),
            "count": 1,
        }
        await self._client.call("POST", EVENT.path(namespace), body=body, timeout_seconds=5.0)
        self._posted[identity] = _Posted(body["metadata"]["name"], 1, now)
        while len(self._posted) > _REMEMBERED:
            self._posted.popitem(last=False)

    async def _repeat(self, regarding: Object, before: _Posted, now: float) -> None:
        patch = {"count": before.count + 1, "lastTimestamp": _seconds(self._clock.now().isoformat())}
        path = EVENT.path(key_of(regarding)[0], before.name)
        await self._client.call(
            "PATCH", path, body=patch, content_type="application/merge-patch+json", timeout_seconds=5.0
        )
        before.count, before.at = before.count + 1, now


def _seconds(stamp: str) -> str:
    """RFC 3339 in whole seconds, as core/v1 wants it."""
    return f"{stamp[:19]}Z"
