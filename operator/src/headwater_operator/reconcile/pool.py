"""One reconcile of one pool: gather, decide, apply, then say how it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

import structlog

from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import PoolKey
from headwater_operator.adapters.kinds import Kind
from headwater_operator.api.parsing import InvalidSpec, parse_pool
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.actions import EventNote, Plan
from headwater_operator.core.decide import decide
from headwater_operator.core.names import NameSource
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import ForeignObject, PoolSnapshot
from headwater_operator.core.status import group_status, pool_status, status_needs_write
from headwater_operator.ports import Clock, Events, Object
from headwater_operator.reconcile.apply import Executor, Outcome
from headwater_operator.reconcile.gather import NodeMemo, Readings, gather_snapshot
from headwater_operator.reconcile.ownership import Ownership, ownership
from headwater_operator.reconcile.stalled import unreadable_spec_status

log = structlog.get_logger(__name__)


class PoolMetrics(Protocol):
    """Gauges that follow the snapshot."""

    def groups(self, pool: PoolKey, roles_and_phases: list[tuple[str, str]]) -> None:
        """Roles and phases of the pool's groups."""

    def forget(self, pool: PoolKey) -> None:
        """The pool is gone."""


@dataclass(frozen=True, slots=True)
class _Target:
    """An object whose status is written."""

    kind: Kind
    name: str
    uid: str


@dataclass(slots=True)
class PoolReconciler:
    """Joins the pure core to the world. One instance, many pools, never two runs of one pool."""

    executor: Executor
    readings: Readings
    events: Events
    clock: Clock
    settings: DecisionSettings
    names: NameSource
    metrics: PoolMetrics
    wake: Callable[[PoolKey], None]
    _written_at: dict[PoolKey, dict[str, float]] = field(default_factory=dict)
    """When the status of an object (by uid) of a pool was last written."""
    _foreign: dict[PoolKey, tuple[ForeignObject, ...]] = field(default_factory=dict)
    _nodes: NodeMemo = field(default_factory=NodeMemo)

    async def reconcile(self, key: PoolKey) -> float | None:
        """Runs once; returns after how many seconds to look again, if at all. Raises OperatorError."""
        pool = self.executor.reader.get(kinds.POOL.name, *key)
        if pool is None:
            self._forget(key)
            return None
        await self._look_up_open_writes(key)
        await self._look_at_foreign(key, pool)
        try:
            spec = parse_pool(pool)
        except InvalidSpec as invalid:
            await self._say_unreadable(key, pool, str(invalid))
            return None
        snapshot = self._gather(key, pool, spec)
        plan = decide(snapshot, self.settings, self.clock.now(), self._names(key))
        outcome = await self.executor.apply_plan(plan, snapshot)
        await self._say(pool, snapshot, replace(plan, events=_true_events(plan, outcome)))
        for note in outcome.news:
            await self.events.emit(pool, str(note.reason), note.message, warning=note.warning)
        return self._next_look(key, plan, outcome)

    def _gather(self, key: PoolKey, pool: Object, spec: InferencePoolSpec) -> PoolSnapshot:
        reader, refusals, metadata = self.executor.reader, self.executor.refusals, pool["metadata"]
        groups = reader.owned(kinds.GROUP.name, key[0], metadata["uid"])
        refusals.begin(key, int(metadata.get("generation") or 0), (group["metadata"]["name"] for group in groups))
        foreign = tuple(self._foreign.get(key, ()))
        return gather_snapshot(
            pool,
            spec,
            reader,
            self.readings,
            nodes=self._nodes.observed(reader),
            refused=refusals.standing(key, self.clock.monotonic()),
            foreign=foreign,
        )

    async def _look_at_foreign(self, key: PoolKey, pool: Object) -> None:
        """Whether what stood in the way before still does: such objects need not be among those watched."""
        still = []
        for found in self._foreign.pop(key, ()):
            item = await self.executor.writer.refresh(found.kind, key[0], found.name)
            if ownership(item, key[1], pool["metadata"]["uid"]) is Ownership.FOREIGN:
                still.append(found)
        if still:
            self._foreign[key] = tuple(still)

    async def _look_up_open_writes(self, key: PoolKey) -> None:
        """Asks the API server about each write of which no answer came, before anything is decided."""
        expectations, now = self.executor.expectations, self.clock.monotonic()
        for write in expectations.open(key):
            found = await self.executor.writer.refresh(write.kind, write.namespace, write.name)
            if found is None:
                expectations.absent(key, write, now=now)
            else:
                expectations.settle(key, write)

    def _names(self, key: PoolKey) -> Iterator[str]:
        """Suffixes of creates that may yet come through first, then fresh ones."""
        tried = self.executor.expectations.tried_names(key, now=self.clock.monotonic())
        return chain((name.rpartition("-")[2] for name in tried), self.names)

    async def _say(self, pool: Object, snapshot: PoolSnapshot, plan: Plan) -> None:
        """Status of the pool and its groups, events, gauges."""
        now, key = self.clock.now(), (snapshot.namespace, snapshot.name)
        phases = []
        for group in snapshot.groups:
            status = group_status(group, snapshot, now)
            phases.append((str(group.role), str(status.get("phase", ""))))
            if not group.terminating:
                await self._write_status(key, _Target(kinds.GROUP, group.name, group.uid), group.status, status)
        new = pool_status(snapshot, plan, self.settings, now)
        await self._write_status(key, _Target(kinds.POOL, snapshot.name, snapshot.uid), snapshot.status, new)
        self._keep_written(key, {snapshot.uid, *(group.uid for group in snapshot.groups)})
        self.metrics.groups(key, phases)
        for note in plan.events:
            await self.events.emit(pool, str(note.reason), note.message, warning=note.warning)

    async def _say_unreadable(self, key: PoolKey, pool: Object, message: str) -> None:
        metadata, old = pool["metadata"], pool.get("status") or {}
        log.warning("spec not readable", namespace=key[0], pool=key[1], error=message)
        new = unreadable_spec_status(old, message, int(metadata.get("generation") or 0), self.clock.now())
        await self._write_status(key, _Target(kinds.POOL, key[1], metadata["uid"]), old, new)

    async def _write_status(
        self, key: PoolKey, target: _Target, old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> None:
        now, written = self.clock.monotonic(), self._written_at.setdefault(key, {})
        last = written.get(target.uid)
        if not status_needs_write(old, new, None if last is None else now - last):
            return
        body = {
            "apiVersion": target.kind.api_version,
            "kind": target.kind.name,
            "metadata": {"name": target.name, "namespace": key[0], "uid": target.uid},
            "status": dict(new),
        }
        try:
            await self.executor.writer.apply(body, subresource="status")
        except (errors.Stale, errors.NotFound):
            return  # it is gone
        written[target.uid] = now

    def _keep_written(self, key: PoolKey, uids: set[str]) -> None:
        written = self._written_at.get(key, {})
        for uid in written.keys() - uids:
            del written[uid]

    def _next_look(self, key: PoolKey, plan: Plan, outcome: Outcome) -> float | None:
        if outcome.foreign:
            self._foreign[key] = tuple(outcome.foreign)
        if outcome.news or outcome.foreign:
            self.wake(key)
        if outcome.error is not None:
            raise outcome.error
        waits = (plan.requeue_after_seconds, self.executor.refusals.next_try_seconds(key, self.clock.monotonic()))
        return min((wait for wait in waits if wait is not None), default=None)

    def _forget(self, key: PoolKey) -> None:
        self.executor.expectations.forget(key)
        self.executor.refusals.forget(key)
        self._foreign.pop(key, None)
        self._written_at.pop(key, None)
        self.metrics.forget(key)


def _true_events(plan: Plan, outcome: Outcome) -> tuple[EventNote, ...]:
    """All but those of actions that were not carried out: these are decided on, and told, again. An event that goes
    with no action, such as a change of the wanted number, is never decided on again, since the status has it."""
    done = {getattr(action, "message", None) for action in outcome.done}
    undone = {getattr(action, "message", None) for action in plan.actions} - done
    return tuple(note for note in plan.events if note.message not in undone)
