"""Carries out a plan, one action after the other.

An error stops the list: the next reconcile starts from what is really there. Two kinds of trouble do not stop
it, since the rest of the plan does not depend on them: a pod that the API server refuses (a quota hit by one
group must not hold up the others) and an engine that cannot be reached (a drain is asked for again each time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import structlog

from headwater_contracts.admin import token_digest
from headwater_contracts.reasons import Reason, Role
from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import PoolKey
from headwater_operator.adapters.expectations import Expectations
from headwater_operator.api.parsing import InvalidSpec
from headwater_operator.core import actions as act
from headwater_operator.core.names import pod_name, revision_name
from headwater_operator.core.snapshot import (
    NEW_GROUP,
    ForeignObject,
    GroupObservation,
    PodObservation,
    PoolSnapshot,
)
from headwater_operator.desired.groups import build_group, build_group_role
from headwater_operator.desired.pods import build_pod, build_pod_role
from headwater_operator.desired.refs import BuildSettings, PoolRef
from headwater_operator.desired.revisions import build_revision
from headwater_operator.desired.services import build_service
from headwater_operator.ports import Clock, ClusterReader, ClusterWriter, EngineControl, Object
from headwater_operator.reconcile.engine_calls import Engines, tell_engine
from headwater_operator.reconcile.gather import gather_group
from headwater_operator.reconcile.observe import observe_pod
from headwater_operator.reconcile.refusals import Refusals
from headwater_operator.reconcile.writes import Writes

log = structlog.get_logger(__name__)


class Counters(Protocol):
    """What is counted of carried-out actions."""

    def promoted(self, pool: PoolKey, reason: str) -> None:
        """A standby became active."""

    def quarantined(self, pool: PoolKey, reason: str) -> None:
        """A group was found unhealthy."""


@dataclass(slots=True)
class Outcome:
    """What became of a plan."""

    done: list[act.Action] = field(default_factory=list)
    foreign: list[ForeignObject] = field(default_factory=list)
    news: list[act.EventNote] = field(default_factory=list)
    """What was refused that the snapshot did not know: say it, and decide again soon."""
    error: errors.OperatorError | None = None
    """What stopped the list."""


@dataclass(frozen=True, slots=True)
class Executor:
    """The only writer of everything but status."""

    reader: ClusterReader
    writer: ClusterWriter
    control: EngineControl
    engines: Engines
    expectations: Expectations[PoolKey]
    refusals: Refusals
    counters: Counters
    clock: Clock
    build: BuildSettings

    async def apply_plan(self, plan: act.Plan, snapshot: PoolSnapshot) -> Outcome:
        """Carries out the plan's actions in order, until one fails."""
        pool, outcome = PoolRef.of(snapshot), Outcome()
        writes = Writes(self.reader, self.writer, self.expectations, pool, outcome.foreign)
        run = _Run(self, snapshot, pool, writes, outcome)
        self.refusals.keep(run.key, _creates(plan))
        for action in plan.actions:
            entry = log.bind(namespace=snapshot.namespace, pool=snapshot.name, **_said(action))
            waits = len(run.waiting)
            try:
                await run.step(action)
            except errors.OperatorError as error:
                entry.warning("action failed", error=str(error))
                run.outcome.error = error
                break
            if len(run.waiting) > waits:
                continue
            run.outcome.done.append(action)
            entry.info("action done")
        return run.outcome


@dataclass(frozen=True, slots=True)
class _Run:
    """One plan of one pool."""

    on: Executor
    snapshot: PoolSnapshot
    pool: PoolRef
    writes: Writes
    outcome: Outcome
    not_made: set[str] = field(default_factory=set)
    """Groups of this plan that were refused: their pods are left out with them."""
    waiting: list[str] = field(default_factory=list)
    """What was not done since it was refused, now or lately."""

    @property
    def key(self) -> PoolKey:
        return self.pool.namespace, self.pool.name

    async def step(self, action: act.Action) -> None:
        match action:
            case act.CreateRevision():
                name = revision_name(self.pool.name, action.revision)
                await self.writes.ensure(kinds.REVISION.name, name, build_revision(self.pool, action))
            case act.DeleteRevision():
                await self.writes.delete_revision(action.name)
            case act.ApplyService():
                await self.writes.ensure(kinds.SERVICE.name, self.pool.name, build_service(self.pool))
            case act.CreateGroup():
                await self._create_group(action)
            case act.CreatePod():
                await self._create_pod(action)
            case act.SetRole():
                await self._set_role(action)
            case act.LabelPod():
                await self._label(self._pod(action), action.role)
            case act.StartDrain() | act.CancelDrain():
                group = self._group(action.group)
                await tell_engine(action, group, self.pool.namespace, self.on.control, self.on.engines)
            case act.DeleteGroup():
                await self.writes.delete(kinds.GROUP.name, action.group, action.uid)

    # -- groups and pods ----------------------------------------------------------------------------------

    async def _create_group(self, action: act.CreateGroup) -> None:
        if self._must_wait(NEW_GROUP):
            self._leave_out(action.name)
            return
        try:
            await self.writes.create(build_group(self.pool, action), reusable=True)
        except errors.AlreadyExists:
            # Its object counts, and nothing is made twice.
            await self.writes.check_ours(kinds.GROUP.name, action.name, self.pool.uid)
        except errors.Refused as refusal:
            # Each attempt has another name: with it in the message, each would be news.
            self._refused(NEW_GROUP, refusal.message.replace(f'"{action.name}" ', ""))
            self._leave_out(action.name)
            return
        self.on.refusals.accepted(self.key, NEW_GROUP)

    async def _create_pod(self, action: act.CreatePod) -> None:
        name = pod_name(action.group, action.rank)
        if action.group in self.not_made or self._must_wait(name):
            self.waiting.append(name)
            return
        group = self._group(action.group)
        digest = token_digest(self.on.engines.token(self.pool.namespace, group.name))
        try:
            body = build_pod(group, action.rank, self.snapshot.spec, self.pool, self.on.build, digest)
            await self.writes.create(body)
        except errors.AlreadyExists:
            await self.writes.check_ours(kinds.POD.name, name, group.uid)
        except errors.Refused as refusal:
            self._refused(name, refusal.message)
            return
        except InvalidSpec as invalid:
            self._refused(name, str(invalid))
            return
        self.on.refusals.accepted(self.key, name)

    def _leave_out(self, group: str) -> None:
        self.not_made.add(group)
        self.waiting.append(group)

    def _must_wait(self, name: str) -> bool:
        return self.on.refusals.wait_seconds(self.key, name, self.on.clock.monotonic()) > 0

    async def _set_role(self, action: act.SetRole) -> None:
        group = self._group(action.group)
        await self.writes.apply(build_group_role(self.pool.namespace, group, action))
        for pod in group.pods:
            await self._label(pod, action.role)
        if action.role is Role.ACTIVE:
            self.on.counters.promoted(self.key, str(action.reason))
        if action.role is Role.QUARANTINED:
            self.on.counters.quarantined(self.key, str(action.reason))

    async def _label(self, pod: PodObservation, role: Role) -> None:
        if pod.role_label == role:
            return
        try:
            await self.writes.apply(build_pod_role(self.pool.namespace, pod, role))
        except (errors.Stale, errors.NotFound):
            log.debug("pod is gone, nothing to label", pod=pod.name)

    # -- look-ups -----------------------------------------------------------------------------------------

    def _group(self, name: str) -> GroupObservation:
        """As in the snapshot, or as just created by this plan."""
        for group in self.snapshot.groups:
            if group.name == name:
                return group
        made = self.on.reader.get(kinds.GROUP.name, self.pool.namespace, name)
        if made is None:
            raise errors.Stale(f"group {name} is gone")
        return gather_group(made, self.on.reader, _NoReadings())

    def _pod(self, action: act.LabelPod) -> PodObservation:
        for pod in self._group(action.group).pods:
            if pod.name == action.pod:
                return pod
        item: Object | None = self.on.reader.get(kinds.POD.name, self.pool.namespace, action.pod)
        if item is None:
            raise errors.Stale(f"pod {action.pod} is gone")
        return observe_pod(item)

    def _refused(self, name: str, message: str) -> None:
        log.warning("refused", namespace=self.key[0], pool=self.key[1], object=name, error=message)
        self.waiting.append(name)
        if self.on.refusals.add(self.key, name, message, self.on.clock.monotonic()):
            reason, what = (Reason.GROUP_REFUSED, "a new group") if name == NEW_GROUP else (Reason.POD_REFUSED, name)
            said = f"the API server refuses {what}: {message}"
            self.outcome.news.append(act.EventNote(reason, said, warning=True))


class _NoReadings:
    def reading(self, pod_uid: str) -> None:
        return None


def _creates(plan: act.Plan) -> set[str]:
    """What the API server may refuse of a plan, under the names that refusals go by."""
    pods = {pod_name(action.group, action.rank) for action in plan.actions if isinstance(action, act.CreatePod)}
    return pods | {NEW_GROUP for action in plan.actions if isinstance(action, act.CreateGroup)}


def _said(action: act.Action) -> dict[str, str]:
    """What a log line says of an action."""
    said = {"action": type(action).__name__}
    for name in ("group", "name", "pod", "role", "reason", "message", "revision"):
        value = getattr(action, name, None)
        if value is not None:
            said["detail" if name == "message" else name] = str(value)
    if isinstance(action, act.CreateGroup):
        said["group"] = said.pop("name")
    return said
