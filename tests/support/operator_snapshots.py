"""Short ways to say what a pool looks like, for tests of single decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar

from headwater_contracts.admin import EnginePhase, EngineState, Histogram, RankState
from headwater_contracts.reasons import Role
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.actions import Plan
from headwater_operator.core.decide import decide
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import (
    EngineReading,
    GroupObservation,
    NodeObservation,
    PodObservation,
    PoolSnapshot,
    RevisionObservation,
)
from headwater_operator.core.times import format_time
from headwater_operator.desired.revision import resolve_template, revision_hash

A = TypeVar("A")
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SETTINGS = DecisionSettings(
    default_image_sim="engine-sim:1",
    default_image_vllm_cpu="engine-cpu:1",
    default_image_vllm_cuda="engine-cuda:1",
    allowed_images=("registry.example/engine-*",),
    allowed_engine_args=frozenset({"max-num-seqs"}),
    allow_sim=True,
)


def ago(seconds: float) -> datetime:
    """A moment before NOW."""
    return NOW - timedelta(seconds=seconds)


def stamp(seconds_ago: float) -> str:
    """A moment before NOW as Kubernetes writes it."""
    return format_time(ago(seconds_ago))


def pool_spec(**fields: Any) -> InferencePoolSpec:
    """A spec of the simulated backend; fields under their API names."""
    body = {
        "model": {"name": "m", "source": {"imagePath": "/models/m"}},
        "engine": {"backend": "sim"},
        "replicas": 2,
        **fields,
    }
    return InferencePoolSpec.model_validate(body)


def vllm_spec(**fields: Any) -> InferencePoolSpec:
    """A spec of the vllm backend."""
    return pool_spec(**{"engine": {}, **fields})


REVISION = revision_hash(pool_spec())
OLD_REVISION = "0123456789"


def engine_state(**fields: Any) -> EngineState:
    """A loaded, idle engine."""
    whole: dict[str, Any] = {
        "phase": EnginePhase.READY,
        "step": 10,
        "running": 0,
        "waiting": 0,
        "healthy": True,
        "admitting": True,
        "kv_used_blocks": 0,
        "kv_total_blocks": 100,
        "ranks": (RankState(0, alive=True),),
        **fields,
    }
    return EngineState(**whole)


def reading(state: EngineState | None = None, *, age: float = 1.0, **fields: Any) -> EngineReading:
    """An answered probe, or a failed one where ``state`` is None."""
    return EngineReading(state=state, age_seconds=age, **fields)


def pod(group: str, role: Role | None, **fields: Any) -> PodObservation:
    """A running, ready pod of rank 0."""
    whole: dict[str, Any] = {
        "name": f"{group}-0",
        "uid": f"uid-{group}-0",
        "rank": 0,
        "role_label": None if role is None else str(role),
        "phase": "Running",
        "ready": True,
        "terminating": False,
        "created_at": ago(600),
        "node": "node-1",
        "ip": "10.0.0.1",
        "scheduled": True,
        "started_at": ago(590),
        **fields,
    }
    return PodObservation(**whole)


def condition(kind: str, status: str = "True", *, seconds_ago: float = 300.0, **fields: Any) -> dict[str, Any]:
    """A stored condition."""
    return {
        "type": kind,
        "status": status,
        "reason": "Before",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": stamp(seconds_ago),
        **fields,
    }


def group(
    name: str,
    role: Role = Role.ACTIVE,
    *,
    revision: str = REVISION,
    pods: Sequence[PodObservation] | None = None,
    state: EngineState | None = None,
    loaded: bool = True,
    age: float = 600.0,
    **fields: Any,
) -> GroupObservation:
    """A group that works: loaded, healthy and long in its role, unless said otherwise."""
    engine = reading(state or engine_state(phase=EnginePhase.READY if loaded else EnginePhase.LOADING))
    default_pods = (pod(name, role, ready=loaded),)
    conditions = [condition("Loaded")] if loaded else []
    if loaded and role is Role.ACTIVE:
        conditions.append(condition("Routable"))
    whole: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "role": role,
        "revision": revision,
        "template": resolve_template(pool_spec(), SETTINGS),
        "created_at": ago(age),
        "terminating": False,
        "generation": 1,
        "annotations": {},
        "status": {"conditions": conditions},
        "pods": tuple(pods) if pods is not None else default_pods,
        "engine": engine,
        **fields,
    }
    return GroupObservation(**whole)


def standby(name: str, **fields: Any) -> GroupObservation:
    """A warm group."""
    return group(name, Role.STANDBY, **fields)


def loading(name: str, **fields: Any) -> GroupObservation:
    """A standby that still loads."""
    return group(name, Role.STANDBY, loaded=False, **fields)


def draining(name: str, *, since: float = 5.0, state: EngineState | None = None, **fields: Any) -> GroupObservation:
    """A group whose drain began so many seconds ago."""
    state = state or engine_state(phase=EnginePhase.DRAINING, running=1, admitting=False)
    annotations = {"headwater.dev/draining-since": stamp(since)}
    return group(name, Role.DRAINING, state=state, annotations=annotations, **fields)


def quarantined(name: str, *, since: float = 5.0, reason: str = "EngineExited", **fields: Any) -> GroupObservation:
    """A failed group whose engine has exited."""
    annotations = {"headwater.dev/quarantined-since": stamp(since), "headwater.dev/role-reason": reason}
    pods = fields.pop("pods", (exited_pod(name, Role.QUARANTINED),))
    return replace(
        group(name, Role.QUARANTINED, pods=pods, annotations=annotations, **fields), engine=reading(error="refused")
    )


def exited_pod(name: str, role: Role = Role.ACTIVE, code: int = 137, **fields: Any) -> PodObservation:
    """A pod whose engine has ended."""
    return pod(name, role, **{"phase": "Failed", "ready": False, "exit_code": code, "exit_reason": "Error", **fields})


def snapshot(*groups: GroupObservation, **fields: Any) -> PoolSnapshot:
    """A pool named ``pool`` whose groups are all listed by its Service."""
    spec: InferencePoolSpec = fields.pop("spec", pool_spec())
    template = resolve_template(spec, SETTINGS)
    whole: dict[str, Any] = {
        "namespace": "serving",
        "name": "pool",
        "uid": "uid-pool",
        "generation": 1,
        "terminating": False,
        "spec": spec,
        "spec_fields_set": {},
        "status": {"currentRevision": REVISION, "updateRevision": REVISION},
        "groups": groups,
        "revisions": (RevisionObservation(f"pool-{revision_hash(spec)}", revision_hash(spec), 1, template),),
        "nodes": (NodeObservation("node-1", ready=True, unschedulable=False),),
        "service_exists": True,
        "endpoints_ready": frozenset(f"{item.name}-0" for item in groups if item.role is Role.ACTIVE),
        **fields,
    }
    return PoolSnapshot(**whole)


def suffixes() -> Iterator[str]:
    """Names 00001, 00002 and so on."""
    return (f"{number:05d}" for number in count(1))


def plan_for(*groups: GroupObservation, **fields: Any) -> Plan:
    """The decision on such a pool."""
    return decide(snapshot(*groups, **fields), SETTINGS, NOW, suffixes())


def actions(plan: Plan, kind: type[A]) -> list[A]:
    """Actions of one kind, in order."""
    return [action for action in plan.actions if isinstance(action, kind)]


def roles(plan: Plan) -> dict[str, str]:
    """New role by group."""
    from headwater_operator.core.actions import SetRole

    return {action.group: str(action.role) for action in actions(plan, SetRole)}


def deleted(plan: Plan) -> list[str]:
    """Groups that the plan deletes."""
    from headwater_operator.core.actions import DeleteGroup

    return [action.group for action in actions(plan, DeleteGroup)]


def created(plan: Plan) -> int:
    """How many groups the plan creates."""
    from headwater_operator.core.actions import CreateGroup

    return len(actions(plan, CreateGroup))


def told(plan: Plan) -> Mapping[str, str]:
    """Message by event reason; the last one of each."""
    return {str(event.reason): event.message for event in plan.events}


def histogram(edges: Sequence[float], counts: Sequence[int]) -> Histogram:
    """A histogram whose sum plays no part."""
    return Histogram(tuple(edges), tuple(counts), 0.0)
