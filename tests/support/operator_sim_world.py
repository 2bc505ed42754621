"""Nodes, kubelets, kube-proxy and engines in virtual time over a ``SimApi``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headwater_contracts.admin import EnginePhase, EngineState, RankState
from headwater_operator.core.times import format_time
from support.operator_sim_api import SimApi

PULL_SECONDS = 1.0
ENDPOINT_LAG_SECONDS = 0.5
PROXY_LAG_SECONDS = 1.0
SETTLE_SECONDS = 5.0


@dataclass
class SimEngine:
    """One engine process."""

    started: float
    load_seconds: float
    group: str
    streams: list[float] = field(default_factory=list)
    """Times at which running streams end."""
    exit_code: int | None = None
    hung: bool = False
    failed: bool = False
    drain_deadline: float | None = None
    settle_until: float = 0.0
    step: int = 0

    def loaded(self, now: float) -> bool:
        return now >= self.started + self.load_seconds

    def ready(self, now: float) -> bool:
        """What ``/readyz`` says."""
        works = self.exit_code is None and self.loaded(now) and not self.failed and not self.hung
        return works and self.drain_deadline is None

    def admits(self, now: float) -> bool:
        """A request that arrives now is answered: for a while after a drain began, still."""
        works = self.exit_code is None and self.loaded(now) and not self.failed and not self.hung
        return works and (self.drain_deadline is None or now < self.settle_until)

    def drain(self, now: float, settle_seconds: float, timeout_seconds: float) -> None:
        """Begins a drain, once."""
        if self.drain_deadline is None:
            self.settle_until = now + settle_seconds
            self.drain_deadline = self.settle_until + timeout_seconds

    def state(self, now: float) -> EngineState | None:
        """What ``/admin/state`` says; None is no answer."""
        if self.exit_code is not None or self.hung:
            return None
        running = sum(end > now for end in self.streams)
        draining = self.drain_deadline is not None
        phase = EnginePhase.DRAINING if draining else EnginePhase.READY
        if not self.loaded(now):
            phase = EnginePhase.LOADING
        self.step += 1
        return EngineState(
            phase=EnginePhase.FAILED if self.failed else phase,
            step=self.step,
            running=running,
            waiting=0,
            healthy=None if phase is EnginePhase.LOADING else not self.failed,
            failure_reason="ForwardProgressStopped" if self.failed else None,
            admitting=self.admits(now),
            drained=draining and now >= self.settle_until and (running == 0 or now >= (self.drain_deadline or 0)),
            kv_used_blocks=running * 10,
            kv_total_blocks=1000,
            ranks=(RankState(0, alive=True),),
        )


@dataclass
class SimNode:
    gpus: int
    up: bool = True
    down_since: float = 0.0


@dataclass
class World:
    """See the module's note. ``tick`` lets every component do what is due."""

    api: SimApi
    nodes: dict[str, SimNode]
    load_seconds: float = 10.0
    crash_revisions: dict[str, int] = field(default_factory=dict)
    """Revision → exit code of its engines, two seconds after their start."""
    missing_images: set[str] = field(default_factory=set)
    engines: dict[str, SimEngine] = field(default_factory=dict)
    """By pod name."""
    proxied: set[str] = field(default_factory=set)
    """Pods that kube-proxy sends requests to."""
    faults_at: list[float] = field(default_factory=list)
    """When something broke; the operator may learn of it a little later."""
    _ready_since: dict[str, float] = field(default_factory=dict)
    _slice: tuple[str, ...] = ()
    _slices: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in self.nodes:
            condition = {"type": "Ready", "status": "True"}
            node = {"kind": "Node", "metadata": {"name": name}, "spec": {}, "status": {"conditions": [condition]}}
            self.api.create(node)

    @property
    def now(self) -> float:
        return self.api.now

    def tick(self) -> None:
        """Scheduler, kubelets, endpoint controller."""
        for node, facts in self.nodes.items():
            if not facts.up and self.now - facts.down_since >= 40:
                self._node_lost(node)
        for pod in self.api.of_kind("Pod"):
            name = pod["metadata"]["name"]
            node = pod["spec"].get("nodeName")
            if node is None:
                self._schedule(name)
            elif self.nodes[node].up:
                self._run(name)
        self._publish()
        self._collect_garbage()

    def _collect_garbage(self) -> None:
        """Pods that were created for a group after it was gone."""
        owners = {group["metadata"]["uid"] for group in self.api.of_kind("ReplicaGroup")}
        for pod in self.api.of_kind("Pod"):
            if pod["metadata"]["ownerReferences"][0]["uid"] not in owners:
                with self.api.by_others():
                    self.api.delete("Pod", pod["metadata"]["name"])

    # -- scheduler -------------------------------------------------------------------------------------------

    def _schedule(self, name: str) -> None:
        pod = self.api.objects["Pod", name]
        if "deletionTimestamp" in pod["metadata"]:
            self.api.remove("Pod", name)
            return
        need = _gpus(pod)
        for node, facts in self.nodes.items():
            used = sum(_gpus(other) for other in self.api.of_kind("Pod") if self._holds(other, node))
            if facts.up and used + need <= facts.gpus:
                self.api.modify("Pod", name, partial(_bind, node=node, now=self.now))
                return
        message = f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} Insufficient nvidia.com/gpu."
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.api.modify("Pod", name, lambda pod: _set_condition(pod, condition))

    def _holds(self, pod: dict[str, Any], node: str) -> bool:
        return pod["spec"].get("nodeName") == node and pod["status"].get("phase") not in ("Failed", "Succeeded")

    # -- kubelet ---------------------------------------------------------------------------------------------

    def _run(self, name: str) -> None:
        pod, engine = self.api.objects["Pod", name], self.engines.get(name)
        if engine is None:
            self._start(name)
            return
        if "deletionTimestamp" in pod["metadata"]:
            grace = pod["spec"]["terminationGracePeriodSeconds"]
            engine.drain(self.now, SETTLE_SECONDS, grace - SETTLE_SECONDS)
            idle = self.now >= engine.settle_until and not any(end > self.now for end in engine.streams)
            if idle or engine.exit_code is not None or self.now >= (engine.drain_deadline or 0.0):
                self.engines.pop(name)
                self.api.remove("Pod", name)
                return
        self._crash_if_due(pod, engine)
        ready, phase = engine.ready(self.now), pod["status"]["phase"]
        if ready != _ready(pod) or (engine.exit_code is not None and phase == "Running"):
            self.api.modify("Pod", name, lambda pod: self._report(pod, engine))

    def _start(self, name: str) -> None:
        pod = self.api.objects["Pod", name]
        if "deletionTimestamp" in pod["metadata"]:
            self.api.remove("Pod", name)
            return
        image = pod["spec"]["containers"][0]["image"]
        if image in self.missing_images:
            waiting = {"reason": "ErrImagePull", "message": f"{image}: not found"}
            state = {"waiting": waiting}
            self.api.modify("Pod", name, lambda pod: _container(pod, state))
            return
        if self.now - pod["status"]["boundAt"] < PULL_SECONDS:
            return
        group = pod["metadata"]["labels"]["headwater.dev/group"]
        self.engines[name] = SimEngine(self.now, self.load_seconds, group)
        self.api.modify("Pod", name, lambda pod: self._report(pod, self.engines[name]))

    def _crash_if_due(self, pod: dict[str, Any], engine: SimEngine) -> None:
        code = self.crash_revisions.get(pod["metadata"]["labels"]["headwater.dev/revision"])
        if code is not None and self.now >= engine.started + 2 and engine.exit_code is None:
            engine.exit_code = code

    def _report(self, pod: dict[str, Any], engine: SimEngine) -> None:
        started = format_time(self.api.wall())
        status = pod["status"]
        if engine.exit_code is not None:
            status["phase"] = "Failed" if engine.exit_code else "Succeeded"
            state = {"terminated": {"exitCode": engine.exit_code, "reason": "Error", "startedAt": started}}
        else:
            status["phase"] = "Running"
            state = {"running": {"startedAt": started}}
        before: list[dict[str, Any]] = status.get("containerStatuses") or [{"state": {}}]
        if before[0]["state"].keys() != state.keys():
            _container(pod, state)
        status["podIP"] = f"ip-{pod['metadata']['name']}"
        _set_condition(pod, {"type": "Ready", "status": "True" if engine.ready(self.now) else "False"})

    # -- endpoints and kube-proxy ----------------------------------------------------------------------------

    def _publish(self) -> None:
        service = self.api.get("Service", "pool")
        listed: dict[str, float] = {}
        for pod in self.api.of_kind("Pod"):
            name = pod["metadata"]["name"]
            selector: dict[str, str] = service["spec"]["selector"] if service is not None else {"none": ""}
            labels: dict[str, str] = pod["metadata"]["labels"]
            selected = selector.items() <= labels.items()
            if selected and _ready(pod) and "deletionTimestamp" not in pod["metadata"]:
                listed[name] = self._ready_since.get(name, self.now)
        self._ready_since = listed
        ready = tuple(sorted(name for name, since in listed.items() if self.now - since >= ENDPOINT_LAG_SECONDS))
        if service is not None and ready != self._slice:
            self._slice = ready
            self._slices.append((self.now, ready))
            self._write_slice(service, ready)
        while self._slices and self.now - self._slices[0][0] >= PROXY_LAG_SECONDS:
            self.proxied = set(self._slices.pop(0)[1])

    def _write_slice(self, service: dict[str, Any], ready: tuple[str, ...]) -> None:
        endpoints = [{"conditions": {"ready": True}, "targetRef": {"kind": "Pod", "name": name}} for name in ready]
        if ("EndpointSlice", "pool-1") not in self.api.objects:
            owner = {"kind": "Service", "name": "pool", "uid": service["metadata"]["uid"], "controller": True}
            metadata = {"name": "pool-1", "ownerReferences": [owner], "labels": {"headwater.dev/pool": "pool"}}
            with self.api.by_others():
                self.api.create({"kind": "EndpointSlice", "metadata": metadata, "endpoints": []})
        self.api.modify("EndpointSlice", "pool-1", lambda item: item.update(endpoints=endpoints))

    def served_pods(self) -> list[str]:
        """Pods that a request sent to the Service now may reach, and that answer it."""
        return sorted(name for name in self.proxied if name in self.engines and self.engines[name].admits(self.now))

    def dead_routes(self) -> list[str]:
        """Pods that a request sent to the Service now may reach, and that do not answer it."""
        return sorted(self.proxied - set(self.served_pods()))

    # -- faults ----------------------------------------------------------------------------------------------

    def kill(self, pod: str, code: int = 137) -> None:
        """The engine's process dies."""
        self.faults_at.append(self.now)
        self.engines[pod].exit_code = code

    def fail(self, pod: str) -> None:
        """The engine's watchdog says that nothing moves any more."""
        self.faults_at.append(self.now)
        self.engines[pod].failed = True

    def hang(self, pod: str) -> None:
        """The engine's process stands still: it answers nobody."""
        self.faults_at.append(self.now)
        self.engines[pod].hung = True

    def stop_node(self, node: str) -> None:
        """Power cut: nothing on the node answers; the API server learns of it 40 s later."""
        self.nodes[node].up, self.nodes[node].down_since = False, self.now
        for pod in self.api.of_kind("Pod"):
            if pod["spec"].get("nodeName") == node and pod["metadata"]["name"] in self.engines:
                self.engines[pod["metadata"]["name"]].hung = True
                self.faults_at.append(self.now)

    def start_node(self, node: str) -> None:
        """Power is back: what ran on the node is gone, and its pods are found dead."""
        if self.nodes[node].up:
            return
        self.nodes[node].up = True
        ready = {"type": "Ready", "status": "True"}
        self.api.modify("Node", node, lambda item: item["status"].update(conditions=[ready]))
        for pod in self.api.of_kind("Pod"):
            if pod["spec"].get("nodeName") == node and pod["metadata"]["name"] in self.engines:
                self.kill(pod["metadata"]["name"], 255)

    def _node_lost(self, node: str) -> None:
        lost = {"type": "Ready", "status": "Unknown"}
        self.api.modify("Node", node, lambda item: item["status"].update(conditions=[lost]))
        for pod in self.api.of_kind("Pod"):
            if pod["spec"].get("nodeName") == node and _ready(pod):
                self.faults_at.append(self.now)
                condition = {"type": "Ready", "status": "False"}
                self.api.modify("Pod", pod["metadata"]["name"], partial(_set_condition, condition=condition))


def _gpus(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu", 0))


def _bind(pod: dict[str, Any], node: str, now: float) -> None:
    pod["spec"]["nodeName"] = node
    pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}], "boundAt": now}


def _container(pod: dict[str, Any], state: dict[str, Any]) -> None:
    pod["status"]["containerStatuses"] = [{"name": "engine", "state": state}]


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _set_condition(pod: dict[str, Any], condition: dict[str, Any]) -> None:
    kept = [item for item in pod["status"].get("conditions", []) if item["type"] != condition["type"]]
    pod["status"]["conditions"] = [*kept, condition]
