"""Rules of the reconcile, checked from the API's history and the world's truth.

Independent on purpose: nothing here imports the operator's decisions, its plan checks, or its reading of health.
"""

from __future__ import annotations

from typing import Any

from support.operator_sim import POOL, Simulation
from support.operator_sim_api import Write

NEWS_SECONDS = 6.0
"""A changed spec may reach the operator this late; until then the former one binds it."""


class RuleChecker:
    """Reads each write once; ``check`` raises AssertionError with the rule that was broken."""

    def __init__(self) -> None:
        self._read = 0
        self._roles: dict[str, str] = {}
        self._ready = False
        self._statuses: dict[str, dict[str, Any]] = {}
        self._wanted: list[tuple[float, int, int]] = []
        self.group_creations = 0

    def __call__(self, sim: Simulation) -> None:
        for write in sim.api.history[self._read :]:
            self._judge(sim, write)
        self._read = len(sim.api.history)
        if not sim.world.faults_at and sim.by_hand is None:
            assert not sim.world.dead_routes(), "nothing broke, and requests are lost"

    def _judge(self, sim: Simulation, write: Write) -> None:
        if write.kind == "InferencePool" and write.after:
            self._wanted.append((write.at, *_wanted(write.after)))
            recent = [item for item in self._wanted if item[0] > write.at - NEWS_SECONDS]
            # The one before the recent ones was in force until the first of them.
            self._wanted = self._wanted[-len(recent) - 1 :]
        if write.kind == "ReplicaGroup":
            self._group(sim, write)
        elif write.kind == "InferencePool" and write.verb == "status" and write.after:
            self._pool_status(sim, write.after)

    def _group(self, sim: Simulation, write: Write) -> None:
        if write.after is None:
            self._deleted(sim, write)
            self._roles.pop(write.name, None)
            return
        role, before = write.after["spec"]["role"], self._roles.get(write.name)
        self._roles[write.name] = role
        if before is None and write.verb == "create":
            self._created(sim, role)
        if before is not None and before != role and write.verb == "apply":
            self._changed(sim, write.name, before, role)

    def _created(self, sim: Simulation, role: str) -> None:
        self.group_creations += 1
        assert role == "standby", "a group starts as a standby"
        spec = sim.api.objects["InferencePool", POOL]["spec"]
        limit = max(item[1] + item[2] for item in self._wanted) + spec.get("rollout", {}).get("maxSurge", 1)
        held = sum(each in ("active", "standby") for each in self._roles.values())
        assert held <= limit, f"{held} groups beside the draining ones, {limit} are allowed"

    def _changed(self, sim: Simulation, name: str, before: str, role: str) -> None:
        active = [group for group, each in self._roles.items() if each == "active"]
        wanted = max(item[1] for item in self._wanted)
        if role == "active":
            rollout = self._of_two_revisions(sim)
            assert len(active) <= wanted + (1 if rollout else 0), f"{active} are active, {wanted} are wanted"
            assert _loaded(sim, name), f"{name} was promoted before it had loaded"
        if before == "active" and role == "draining":
            slack = sim.api.objects["InferencePool", POOL]["spec"].get("rollout", {}).get("maxUnavailable", 0)
            ready = sum(_pod_ready(sim, group) for group in active) + self._news(sim)
            floor = min(ready + _pod_ready(sim, name), min(item[1] for item in self._wanted) - slack)
            assert ready >= floor, f"draining {name} leaves {ready} ready active groups, {floor} are promised"

    def _deleted(self, sim: Simulation, write: Write) -> None:
        group, role = write.before, self._roles.get(write.name)
        if write.verb != "delete" or group is None or sim.by_hand == write.name:
            return
        engine = sim.world.engines.get(f"{write.name}-0")
        works = engine is not None and engine.exit_code is None and not engine.hung and not engine.failed
        streams = sum(end > write.at for end in engine.streams) if engine and works else 0
        assert role != "active" or not works, f"{write.name} was deleted while active and well"
        if role in ("standby", "draining") and streams and engine:
            over = engine.drain_deadline is not None and write.at >= engine.drain_deadline
            assert over, f"{write.name} was deleted with {streams} running streams"

    def _news(self, sim: Simulation) -> int:
        """Faults that the operator need not have heard of yet."""
        return sum(sim.api.now - at < NEWS_SECONDS for at in sim.world.faults_at)

    def _of_two_revisions(self, sim: Simulation) -> bool:
        groups = sim.api.of_kind("ReplicaGroup")
        return len({group["spec"]["revision"] for group in groups}) > 1

    def _pool_status(self, sim: Simulation, pool: dict[str, Any]) -> None:
        conditions = {item["type"]: item for item in pool["status"]["conditions"]}
        ready = conditions["Ready"]["status"] == "True"
        if ready and not self._ready:
            served, wanted = sim.world.served_pods(), min(item[1] for item in self._wanted)
            known = len(served) + self._news(sim)
            slack = pool["spec"].get("rollout", {}).get("maxUnavailable", 0)
            assert known >= wanted - slack, f"Ready was said while only {served} answered through the Service"
        self._ready = ready
        assert not (conditions["Stalled"]["status"] == conditions["Reconciling"]["status"] == "True")
        if ready:
            assert conditions["Reconciling"]["status"] == "False"
        for kind, condition in conditions.items():
            before = self._statuses.get(kind, {})
            if before.get("status") == condition["status"]:
                # A lost answer may leave the operator with the status before: it then tells the change again.
                same = sim.faulty or before["lastTransitionTime"] == condition["lastTransitionTime"]
                assert same, f"{kind}: the transition time moved without a transition"
            self._statuses[kind] = condition
            assert condition["reason"]
            assert condition["observedGeneration"] <= pool["metadata"]["generation"]


def _wanted(pool: dict[str, Any]) -> tuple[int, int]:
    spec = pool["spec"]
    if spec.get("suspend"):
        return 0, 0
    return spec.get("replicas", 1), spec.get("warmPool", {}).get("size", 0)


def _pod_ready(sim: Simulation, group: str) -> bool:
    pod = sim.api.objects.get(("Pod", f"{group}-0"))
    conditions = (pod or {}).get("status", {}).get("conditions") or ()
    terminating = pod is not None and "deletionTimestamp" in pod["metadata"]
    return not terminating and any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _loaded(sim: Simulation, group: str) -> bool:
    engine = sim.world.engines.get(f"{group}-0")
    return engine is not None and engine.loaded(sim.api.now)


def assert_settled(sim: Simulation) -> None:
    """Everything wanted is there, and nothing else: no orphan, no double."""
    active, standby = _wanted(sim.api.objects["InferencePool", POOL])
    live = {group: sim.groups(group) for group in ("active", "standby", "draining", "quarantined")}
    assert (len(live["active"]), len(live["standby"])) == (active, standby), live
    assert not live["draining"], live
    assert len(live["quarantined"]) <= 1, live
    assert len(sim.world.served_pods()) == active, live
    names = set(sim.groups())
    for pod in sim.api.of_kind("Pod"):
        assert pod["metadata"]["labels"]["headwater.dev/group"] in names, f"orphan {pod['metadata']['name']}"
    for group in names:
        own = sim.api.objects.get(("Pod", f"{group}-0"))
        assert own is not None, f"{group} has no pod"
        role = sim.api.objects["ReplicaGroup", group]["spec"]["role"]
        assert own["metadata"]["labels"]["headwater.dev/role"] == role
