"""Probes every group's leader on a schedule of its own and says which pools have something new to decide on.

Each engine has its own phase within the interval, taken from its uid, so that probes spread evenly and do not
bunch after a restart. A probe that is still out when its next turn comes loses that turn.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import structlog

from headwater_contracts.admin import group_token
from headwater_contracts.labels import LABEL_GROUP, LABEL_POOL, LABEL_RANK
from headwater_operator import errors
from headwater_operator.adapters.cache import PoolKey
from headwater_operator.adapters.kinds import GROUP
from headwater_operator.adapters.readings import EngineHistory, beyond_dead_band, facts, load
from headwater_operator.adapters.store import Object, controller_of, key_of, uid_of
from headwater_operator.core.names import pod_name
from headwater_operator.core.snapshot import EngineReading
from headwater_operator.ports import Clock, EngineControl

log = structlog.get_logger(__name__)

MOST_AT_ONCE = 64
"""Probes in flight: a node full of dead addresses must not use up file descriptors."""
LONGEST_QUIET_SECONDS = 15.0
"""A pool with engines is decided on at least this often."""


@dataclass(slots=True)
class _Target:
    """One leader pod."""

    pool: PoolKey
    group: str
    pod_uid: str
    owner_uid: str
    """Of the ReplicaGroup that the pod says it belongs to."""
    ip: str
    history: EngineHistory = field(default_factory=EngineHistory)
    busy: bool = False
    due_at: float = 0.0
    """The one turn that counts; other entries of the heap are left over from before it was moved."""
    told_facts: tuple[object, ...] = ()
    told_load: tuple[float, ...] = ()
    told_at: float = 0.0


class Prober:
    """Keeps a reading of each engine."""

    def __init__(
        self,
        control: EngineControl,
        clock: Clock,
        wake: Callable[[PoolKey], None],
        group_uid: Callable[[str, str], str | None],
        *,
        master_token: bytes,
        interval_seconds: float,
    ) -> None:
        self._control = control
        self._clock = clock
        self._wake = wake
        self._group_uid = group_uid
        self._master_token = master_token
        self._interval = interval_seconds
        self._targets: dict[str, _Target] = {}
        self._due: list[tuple[float, str]] = []
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    def pod_changed(self, new: Object | None, old: Object | None) -> None:
        """Follows pods: a leader with an address that has not ended is probed."""
        item = new if new is not None else old
        owner = None if item is None else _group_led_by(item)
        if item is None or owner is None:
            return
        uid, status = uid_of(item), item.get("status") or {}
        ip = status.get("podIP")
        ended = new is None or status.get("phase") in ("Failed", "Succeeded")
        if ended or not ip:
            self._targets.pop(uid, None)
        elif uid not in self._targets:
            self._add(item, uid, owner, ip)
        else:
            self._targets[uid].ip = ip

    def _add(self, pod: Object, uid: str, owner: Mapping[str, Any], ip: str) -> None:
        key = (key_of(pod)[0], pod["metadata"]["labels"].get(LABEL_POOL, ""))
        self._targets[uid] = _Target(key, owner["name"], uid, owner["uid"], ip)
        self._schedule(self._clock.monotonic(), uid)

    def reading(self, pod_uid: str) -> EngineReading | None:
        """The last word of the engine in a pod; None if it was not asked yet."""
        target = self._targets.get(pod_uid)
        return None if target is None else target.history.reading(self._clock.monotonic())

    def ask_now(self, pod_uid: str) -> None:
        """Probes one engine ahead of its turn, after it was told to do something."""
        if pod_uid in self._targets:
            self._schedule(self._clock.monotonic(), pod_uid)

    def token(self, namespace: str, group: str) -> str:
        """The admin token of a group."""
        return group_token(self._master_token, namespace, group)

    def oldest_answer_seconds(self, pool: PoolKey) -> float | None:
        """Longest silence among a pool's engines, for metrics; None if it has none."""
        now = self._clock.monotonic()
        ages = (target.history.silent_seconds(now) for target in self._targets.values() if target.pool == pool)
        return max((age for age in ages if age is not None), default=None)

    async def run(self) -> None:
        """Probes until cancelled."""
        async with asyncio.TaskGroup() as probes:
            while True:
                await self._until_due()
                at, uid = heapq.heappop(self._due)
                target = self._targets.get(uid)
                if target is None or target.busy or target.due_at != at:
                    continue
                target.busy = True
                await self._slots.acquire()
                probes.create_task(self._probe(target))

    async def _until_due(self) -> None:
        while not self._due or self._due[0][0] > self._clock.monotonic():
            self._changed.clear()
            wait = self._due[0][0] - self._clock.monotonic() if self._due else None
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _schedule(self, at: float, uid: str) -> None:
        self._targets[uid].due_at = at
        heapq.heappush(self._due, (at, uid))
        self._changed.set()

    def _next_turn(self, uid: str) -> float:
        phase = crc32(uid.encode()) / 2**32 * self._interval
        now = self._clock.monotonic()
        turns = (now - phase) // self._interval + 1
        return phase + turns * self._interval

    async def _probe(self, target: _Target) -> None:
        try:
            if self._group_uid(target.pool[0], target.group) == target.owner_uid:
                await self._ask(target)
                self._tell(target)
        finally:
            target.busy = False
            self._slots.release()
            if self._targets.get(target.pod_uid) is target:
                self._schedule(self._next_turn(target.pod_uid), target.pod_uid)

    async def _ask(self, target: _Target) -> None:
        """One reading, whatever comes back: these tasks end all pools' operator if they raise."""
        target.history.asked(self._clock.monotonic())
        try:
            state = await self._control.state(target.ip, self.token(target.pool[0], target.group))
            target.history.answered(state, self._clock.monotonic())
        except errors.EngineUnreachable as error:
            refused = isinstance(error, errors.TokenRefused)
            if refused and not target.history.token_refused:
                log.warning("engine refuses the token", namespace=target.pool[0], group=target.group)
            target.history.failed(error.message, self._clock.monotonic(), token_refused=refused)
        except Exception as error:
            said = f"{target.ip}: an answer that cannot be read: {error!r}"
            if target.history.error != said:
                log.warning("probe failed", namespace=target.pool[0], group=target.group, error=said, exc_info=True)
            target.history.failed(said, self._clock.monotonic())

    def _tell(self, target: _Target) -> None:
        """Queues the pool if a decision could come out differently."""
        now = self._clock.monotonic()
        reading = target.history.reading(now)
        new_facts, new_load = facts(reading), load(reading)
        changed = new_facts != target.told_facts or beyond_dead_band(new_load, target.told_load)
        if changed or now - target.told_at >= LONGEST_QUIET_SECONDS:
            target.told_facts, target.told_load, target.told_at = new_facts, new_load, now
            self._wake(target.pool)


def _group_led_by(pod: Object) -> Mapping[str, Any] | None:
    """The owner reference of a group's leader, None for any other pod.

    A probe carries the group's token. Labels can be anybody's; a name is taken as long as the real pod is there.
    """
    owner, labels = controller_of(pod), pod["metadata"].get("labels") or {}
    if owner is None or owner["kind"] != GROUP.name or owner["apiVersion"] != GROUP.api_version:
        return None
    named_so = key_of(pod)[1] == pod_name(owner["name"], 0)
    labelled_so = labels.get(LABEL_GROUP) == owner["name"] and labels.get(LABEL_RANK) == "0"
    return owner if named_so and labelled_so else None
