"""A node without a machine: pods that the real scheduler puts on it get an address and a fake engine."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from headwater_contracts import engine_env
from headwater_contracts.admin import EnginePhase, EngineState, RankState, token_matches
from headwater_operator import errors
from headwater_operator.adapters import kinds
from support.operator_cluster import Cluster, Object
from support.operator_launcher import POD_PREFIX, engine_address

_ADDRESSES = itertools.count(1)


def free_port() -> int:
    """A port that nobody listens on at any loopback address."""
    with socket.create_server(("", 0)) as found:
        return int(found.getsockname()[1])


@dataclass
class FakeEngine:
    """Answers the admin port as an engine would."""

    pod: Object
    ip: str
    port: int
    loads: bool = True
    state: EngineState = field(
        default_factory=lambda: EngineState(
            EnginePhase.READY,
            step=1,
            running=0,
            waiting=0,
            healthy=True,
            admitting=True,
            kv_used_blocks=0,
            kv_total_blocks=1000,
            ranks=(RankState(0, alive=True),),
        )
    )
    calls: list[str] = field(default_factory=list)
    refused_tokens: int = 0
    _runner: web.AppRunner | None = None

    @property
    def group(self) -> str:
        return str(self.pod["metadata"]["labels"]["headwater.dev/group"])

    def change(self, **fields: Any) -> None:
        """Changes fields of the state."""
        body = self.state.to_json() | fields
        self.state = EngineState.from_json(body)

    async def start(self) -> None:
        app = web.Application()
        app.add_routes(
            [
                web.get("/admin/state", self._get_state),
                web.post("/admin/drain", self._drain),
                web.post("/admin/undrain", self._undrain),
            ]
        )
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, engine_address(self.ip), self.port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _allowed(self, request: web.Request) -> bool:
        env = {item["name"]: item.get("value") for item in self.pod["spec"]["containers"][0]["env"]}
        presented = request.headers.get("authorization", "").removeprefix("Bearer ")
        allowed = token_matches(presented, env[engine_env.ADMIN_TOKEN_SHA256] or "")
        self.refused_tokens += not allowed
        return allowed

    async def _get_state(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.json_response({}, status=401)
        return web.json_response(self.state.to_json())

    async def _drain(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.json_response({}, status=401)
        self.calls.append("drain")
        busy = self.state.running + self.state.waiting > 0
        self.change(phase="draining", admitting=False, drained=not busy)
        return web.json_response({}, status=202)

    async def _undrain(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.json_response({}, status=401)
        self.calls.append("undrain")
        self.change(phase="ready", admitting=True, drained=False)
        return web.json_response({})

    def end_streams(self) -> None:
        """The last running request ends."""
        self.change(running=0, waiting=0, drained=self.state.phase is EnginePhase.DRAINING)


class FakeKubelet:
    """Runs pods of one namespace. ``hold``: new engines do not become ready until ``release``."""

    def __init__(self, cluster: Cluster, *, gpus: int = 64) -> None:
        self.cluster = cluster
        self.port = free_port()
        self.node = f"node-{cluster.namespace}"
        self.engines: dict[str, FakeEngine] = {}
        """By pod name."""
        self.loading = False
        """New engines answer, and say that they load, until ``finish_loading``."""
        self.dead: set[str] = set()
        self._gpus = gpus

    def of_group(self, group: str) -> FakeEngine:
        return self.engines[f"{group}-0"]

    async def run(self) -> None:
        """Until cancelled."""
        for beat in itertools.count():
            if beat % 60 == 0:
                await self._heartbeat()
            for pod in await self.cluster.all(kinds.POD):
                try:
                    await self._sync(pod)
                except (errors.Stale, errors.NotFound):
                    continue
            await asyncio.sleep(0.03)

    async def stop(self) -> None:
        for engine in self.engines.values():
            await engine.stop()

    async def kill(self, pod: str, *, exit_code: int = 137) -> None:
        """The engine process dies; its pod is never restarted."""
        self.dead.add(pod)
        await self.engines[pod].stop()
        ended = {"exitCode": exit_code, "reason": "Error", "startedAt": _now(), "finishedAt": _now()}
        await self._report(pod, "Failed", ready=False, container={"terminated": ended}, ip=self.engines[pod].ip)

    async def finish_loading(self) -> None:
        self.loading = False
        for engine in self.engines.values():
            engine.change(phase="ready", admitting=True)

    async def _sync(self, pod: Object) -> None:
        name, status = pod["metadata"]["name"], pod.get("status") or {}
        if not pod["spec"].get("nodeName"):
            return
        if "deletionTimestamp" in pod["metadata"]:
            engine = self.engines.pop(name, None)
            if engine is not None:
                await engine.stop()
            await self.cluster.delete(kinds.POD, name, grace_seconds=0)
            return
        if name not in self.engines:
            await self._start(pod)
        engine = self.engines[name]
        ready = engine.state.phase is EnginePhase.READY and engine.state.healthy is not False
        shown = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
        if name not in self.dead and (status.get("phase") != "Running" or ready != shown):
            running = {"running": {"startedAt": _now()}}
            await self._report(name, "Running", ready=ready, container=running, ip=engine.ip)

    async def _start(self, pod: Object) -> None:
        number = next(_ADDRESSES)
        engine = FakeEngine(pod, f"{POD_PREFIX}{number // 250}.{number % 250 + 1}", self.port)
        if self.loading:
            engine.change(phase="loading", admitting=False)
        await engine.start()
        self.engines[pod["metadata"]["name"]] = engine

    async def _report(self, pod: str, phase: str, *, ready: bool, container: Object, ip: str) -> None:
        conditions = [
            {"type": kind, "status": "True" if ready else "False", "lastTransitionTime": _now()}
            for kind in ("Ready", "ContainersReady")
        ]
        engine = {
            "name": "engine",
            "image": "sim",
            "imageID": "sim",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": container,
        }
        status = {
            "phase": phase,
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": conditions,
            "containerStatuses": [engine],
        }
        await self.cluster.patch(kinds.POD, pod, {"status": status}, subresource="status", strategic=True)

    async def _heartbeat(self) -> None:
        capacity = {"cpu": "64", "memory": "512Gi", "pods": "100", "nvidia.com/gpu": str(self._gpus)}
        ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastHeartbeatTime": _now()}
        path, body = kinds.NODE.path(None, self.node), {"metadata": {"name": self.node}}
        with suppress(errors.AlreadyExists):
            await self.cluster.client.call("POST", kinds.NODE.path(), body={"apiVersion": "v1", "kind": "Node", **body})
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        await self.cluster.client.call(
            "PATCH",
            f"{path}/status",
            body={"status": status},
            content_type="application/strategic-merge-patch+json",
        )
        await self.cluster.client.call(
            "PATCH", path, body={"spec": {"taints": None}}, content_type="application/merge-patch+json"
        )


@asynccontextmanager
async def kubelet_on(cluster: Cluster, **options: Any) -> AsyncIterator[FakeKubelet]:
    """A node while entered."""
    kubelet = FakeKubelet(cluster, **options)
    task = asyncio.create_task(kubelet.run(), name="fake kubelet")
    try:
        yield kubelet
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()  # type: ignore[misc]
        await kubelet.stop()
        await cluster.client.call("DELETE", kinds.NODE.path(None, kubelet.node))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - plays a kubelet
