"""The operator's real reconcile over a simulated cluster, in virtual time.

``Simulation.run`` moves the world on in half seconds. The operator under it is a process that may crash: its caches,
readings and expectations are then lost, and a new one starts from a list.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from headwater_contracts.admin import EngineState
from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import Cache, PoolKey
from headwater_operator.adapters.expectations import Expectations
from headwater_operator.adapters.readings import EngineHistory
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import EngineReading
from headwater_operator.desired.refs import BuildSettings
from headwater_operator.ports import Object
from headwater_operator.reconcile.apply import Executor
from headwater_operator.reconcile.pool import PoolReconciler
from headwater_operator.reconcile.refusals import Refusals
from support.operator_sim_api import NAMESPACE, SimApi
from support.operator_sim_world import SimNode, World

T = TypeVar("T")
POOL = "pool"
TICK_SECONDS = 0.5
PROBE_SECONDS = 2.0
ALWAYS_SECONDS = 15.0
"""A pool is queued at least this often."""
SETTINGS = DecisionSettings(
    default_image_sim="engine-sim:1",
    allowed_images=("engine-*",),
    allowed_engine_args=frozenset({"max-num-seqs"}),
    allow_sim=True,
)


class SimCrashError(Exception):
    """The operator's process is gone."""


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never really waits."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("the reconcile waited for something that the simulation does not have")


def pool_object(**spec: Any) -> dict[str, Any]:
    """An InferencePool of a small simulated model; keyword arguments are fields of its spec."""
    whole = {
        "model": {"name": "m", "source": {"imagePath": "/models/m"}},
        "engine": {"backend": "sim", "tensorParallelSize": 8},
        "drain": {"timeout": "60s", "endpointSettle": "5s"},
        "replicas": 2,
        **spec,
    }
    return {"kind": "InferencePool", "metadata": {"name": POOL}, "spec": whole, "status": {}}


@dataclass
class Clock:
    """Implements the operator's Clock over the simulation's time."""

    api: SimApi

    def now(self) -> datetime:
        return self.api.wall()

    def monotonic(self) -> float:
        return self.api.now


class Writer:
    """Implements ClusterWriter; answers go into the cache, as the real one's do."""

    def __init__(self, api: SimApi, cache: Cache) -> None:
        self._api, self._cache = api, cache

    async def apply(self, body: Object, *, subresource: str | None = None) -> Object:
        return self._seen(self._api.apply(dict(body), status=subresource == "status"))

    async def create(self, body: Object) -> Object:
        return self._seen(self._api.create(dict(body)))

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> None:
        self._api.delete(kind, name, uid=uid)
        left = self._api.get(kind, name)
        if left is None or left["metadata"]["uid"] != uid:
            self._cache.forget(kind, uid)
        else:
            self._cache.observe(left)

    async def refresh(self, kind: str, namespace: str, name: str) -> Object | None:
        found, known = self._api.get(kind, name), self._cache.get(kind, namespace, name)
        if found is not None:
            self._cache.observe(found)
        elif known is not None:
            self._cache.forget(kind, known["metadata"]["uid"])
        return found

    def _seen(self, answer: dict[str, Any]) -> Object:
        self._cache.observe(answer)
        return answer


@dataclass
class Engines:
    """Implements EngineControl, Engines and Readings over the world's engines."""

    world: World
    histories: dict[str, EngineHistory] = field(default_factory=dict)

    def probe(self) -> None:
        """Asks every engine once."""
        for pod in self.world.api.of_kind("Pod"):
            if not (pod.get("status") or {}).get("podIP"):
                continue
            history = self.histories.setdefault(pod["metadata"]["uid"], EngineHistory())
            history.asked(self.world.now)
            engine = self.world.engines.get(pod["metadata"]["name"])
            state = engine.state(self.world.now) if engine else None
            if state is None:
                history.failed("no answer", self.world.now)
            else:
                history.answered(state, self.world.now)

    def reading(self, pod_uid: str) -> EngineReading | None:
        history = self.histories.get(pod_uid)
        return None if history is None else history.reading(self.world.now)

    def token(self, namespace: str, group: str) -> str:
        return f"token-{group}"

    def ask_now(self, pod_uid: str) -> None:
        pass

    async def state(self, ip: str, token: str) -> EngineState:
        raise AssertionError("the reconcile itself asks no engine for its state")

    async def drain(self, ip: str, token: str, *, timeout_seconds: float, settle_seconds: float) -> None:
        engine = self.world.engines.get(ip.removeprefix("ip-"))
        if engine is None or engine.hung or engine.exit_code is not None:
            raise errors.EngineUnreachable("no answer")
        engine.drain(self.world.now, settle_seconds, timeout_seconds)

    async def undrain(self, ip: str, token: str) -> None:
        engine = self.world.engines.get(ip.removeprefix("ip-"))
        if engine is None or engine.hung or engine.exit_code is not None:
            raise errors.EngineUnreachable("no answer")
        engine.drain_deadline = None


@dataclass
class Log:
    """Implements Events, Counters and PoolMetrics; keeps what was told."""

    api: SimApi
    events: list[tuple[float, str, str]] = field(default_factory=list)

    async def emit(self, regarding: Object, reason: str, message: str, *, warning: bool) -> None:
        self.events.append((self.api.now, reason, message))

    def promoted(self, pool: PoolKey, reason: str) -> None:
        pass

    def quarantined(self, pool: PoolKey, reason: str) -> None:
        pass

    def groups(self, pool: PoolKey, roles_and_phases: list[tuple[str, str]]) -> None:
        pass

    def forget(self, pool: PoolKey) -> None:
        pass


class Process:
    """One operator process: what a crash takes with it."""

    def __init__(self, world: World, log: Log, names: Iterator[str], start: int) -> None:
        self.queued = True
        self.due = 0.0
        self.failures = 0
        self.watched = start
        self.engines = Engines(world)
        self.cache = Cache(self._wake)
        clock = Clock(world.api)
        executor = Executor(
            reader=self.cache,
            writer=Writer(world.api, self.cache),
            control=self.engines,
            engines=self.engines,
            expectations=Expectations(),
            refusals=Refusals(),
            counters=log,
            clock=clock,
            build=BuildSettings(),
        )
        self.reconciler = PoolReconciler(
            executor, self.engines, log, clock, SETTINGS, names, metrics=log, wake=self._wake
        )
        for kind in (
            kinds.POOL,
            kinds.GROUP,
            kinds.POD,
            kinds.SERVICE,
            kinds.REVISION,
            kinds.ENDPOINT_SLICE,
            kinds.NODE,
        ):
            for item in world.api.of_kind(kind.name):
                self.cache.observe(item)

    def _wake(self, key: PoolKey) -> None:
        self.queued = True


@dataclass
class Simulation:
    """A world with an operator in it."""

    pool: dict[str, Any]
    nodes: dict[str, int] = field(default_factory=lambda: {"node-1": 24, "node-2": 24})
    seed: int | None = None
    """Seeds faults of the watch: delays, repeats. None: each event arrives once, at the next tick."""
    checks: list[Callable[[Simulation], None]] = field(default_factory=list)
    crashes: int = 0
    faulty: bool = False
    """Faults strike the operator's own calls."""
    by_hand: str | None = None
    """A group that a user deletes: rules about deletions do not bind users."""

    def __post_init__(self) -> None:
        self.api = SimApi()
        self.world = World(self.api, {name: SimNode(gpus) for name, gpus in self.nodes.items()})
        self.api.create(self.pool)
        self.log = Log(self.api)
        self.random = random.Random(self.seed)
        self.names = (f"{number:05d}" for number in itertools.count(1))
        self._late: list[tuple[float, int, tuple[str, dict[str, Any]]]] = []
        self._tick = 0
        self.restart()

    def restart(self) -> None:
        """Ends the operator's process, if any, and starts another."""
        self._late.clear()
        self.process = Process(self.world, self.log, self.names, len(self.api.watch))

    def run(self, seconds: float) -> None:
        """Lets time pass."""
        for _ in range(round(seconds / TICK_SECONDS)):
            self.api.now = round(self.api.now + TICK_SECONDS, 3)
            self._tick += 1
            self.world.tick()
            self._deliver()
            if self.api.now % PROBE_SECONDS == 0:
                self.process.engines.probe()
                self.process.queued = True
            self._reconcile()
            for check in self.checks:
                check(self)

    def until(self, done: Callable[[], bool], within: float = 300.0) -> float:
        """Lets time pass until the condition holds; how long that took."""
        start = self.api.now
        while not done():
            if self.api.now - start >= within:
                raise AssertionError(f"not reached within {within} s; pool status: {self.status()}")
            self.run(TICK_SECONDS)
        return self.api.now - start

    def _deliver(self) -> None:
        """Watch events reach the operator: in order at once, or late, twice and out of order."""
        fresh = self.api.watch[self.process.watched :]
        self.process.watched = len(self.api.watch)
        for number, event in enumerate(fresh):
            delay = 0.0
            if self.seed is not None and self.random.random() < 0.2:
                delay = self.random.choice((0.5, 1.0, 3.0))
            heapq.heappush(self._late, (self.api.now + delay, self._tick * 100_000 + number, event))
        while self._late and self._late[0][0] <= self.api.now:
            _, _, (verb, item) = heapq.heappop(self._late)
            if verb == "DELETED":
                self.process.cache.forget(item["kind"], item["metadata"]["uid"])
            else:
                self.process.cache.observe(item)

    def _reconcile(self) -> None:
        """Works the queue off: at most a handful of turns, since a pool that wakes itself for ever is a fault."""
        process = self.process
        for turn in range(12):
            if not process.queued and self.api.now < process.due:
                return
            assert turn < 11, "the pool wakes itself without end"
            process.queued = False
            try:
                wait = run_now(process.reconciler.reconcile((NAMESPACE, POOL)))
            except SimCrashError:
                self.crashes += 1
                self.restart()
                return
            except errors.OperatorError:
                process.failures += 1
                process.due = self.api.now + min(30.0, 0.5 * 2**process.failures)
                process.queued = False
                return
            process.failures = 0
            process.due = self.api.now + min(ALWAYS_SECONDS, wait if wait is not None else ALWAYS_SECONDS)

    # -- what a test reads -----------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Status of the pool."""
        return self.api.objects["InferencePool", POOL].get("status") or {}

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition of the pool; empty if it was never written."""
        return next((item for item in self.status().get("conditions", ()) if item["type"] == kind), {})

    def is_true(self, kind: str) -> bool:
        """Whether a condition of the pool is True and about the present spec."""
        generation = self.api.objects["InferencePool", POOL]["metadata"]["generation"]
        found = self.condition(kind)
        return found.get("status") == "True" and found.get("observedGeneration") == generation

    def groups(self, role: str | None = None) -> list[str]:
        """Names of the groups, or of those of a role."""
        return [
            item["metadata"]["name"]
            for item in self.api.of_kind("ReplicaGroup")
            if role is None or item["spec"]["role"] == role
        ]

    def change_spec(self, **fields: Any) -> None:
        """What a user applies."""
        self.api.modify("InferencePool", POOL, lambda pool: pool["spec"].update(fields), spec=True)
