"""Runs the operator for a test: inside this process, or as the process that an image runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import yaml
from kubernetes.aio.client import Configuration

from headwater_operator.handlers.runtime import Runtime
from headwater_operator.settings import PREFIX, Settings
from support.fake_kubelet import free_port
from support.operator_cluster import Cluster, until
from support.operator_launcher import look_at_loopback

_TESTS = Path(__file__).parents[1]
TOKEN = b"a master token for tests"
SIM_IMAGE = "localhost/headwater-engine-sim:test"
RunOperator = Callable[..., AbstractAsyncContextManager[Runtime]]


def operator_settings(cluster: Cluster, **fields: object) -> Settings:
    """Settings for one namespace."""
    values: dict[str, object] = {
        "namespaces": (cluster.namespace,),
        "pod_namespace": cluster.namespace,
        "pod_name": "operator-1",
        "pod_uid": "1",
        "default_image_sim": SIM_IMAGE,
        "listen_host": "127.0.0.1",
        "metrics_port": 0,
        "probe_port": 0,
        "probe_interval_seconds": 0.2,
        "lease_seconds": 3.0,
    }
    return Settings(**(values | fields))  # type: ignore[arg-type]


@asynccontextmanager
async def operator_inside(
    cluster: Cluster, configuration: Configuration | None = None, **fields: object
) -> AsyncIterator[Runtime]:
    """The operator without kopf, in this event loop."""
    look_at_loopback()
    runtime = Runtime(operator_settings(cluster, **fields), configuration or cluster.configuration, TOKEN)
    task = asyncio.create_task(runtime.run(), name="operator")

    async def ready() -> bool:
        if task.done():
            await task
        return runtime.not_ready() is None

    try:
        await until(ready, "operator ready")
        yield runtime
    finally:
        runtime.stop()
        await task


def plain_kubeconfig(file: Path, server: str) -> Path:
    """A kubeconfig for a server without TLS or login."""
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(yaml.safe_dump(body))
    return file


class OperatorProcess:
    """``python -m headwater_operator``, with its log in a file."""

    def __init__(self, cluster: Cluster, kubeconfig: Path, folder: Path, fields: Mapping[str, object]) -> None:
        self.metrics_port, self.probe_port = free_port(), free_port()
        self.log = folder / "operator.log"
        self._process: asyncio.subprocess.Process | None = None
        token = folder / "token"
        token.write_bytes(TOKEN)
        values: dict[str, object] = {
            "namespaces": cluster.namespace,
            "pod_namespace": cluster.namespace,
            "pod_name": "operator-1",
            "pod_uid": "1",
            "default_image_sim": SIM_IMAGE,
            "listen_host": "127.0.0.1",
            "metrics_port": self.metrics_port,
            "probe_port": self.probe_port,
            "probe_interval_seconds": 0.2,
            "lease_seconds": 3.0,
            "admin_token_file": token,
        }
        environment = {PREFIX + name.upper(): str(value) for name, value in (values | dict(fields)).items()}
        keep = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        self._environment = keep | environment | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(_TESTS)}

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        with self.log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "support.operator_launcher", env=self._environment, stdout=out, stderr=out
            )

    async def until_ready(self) -> None:
        await until(self._ready, f"operator ready; its log ends:\n{self.tail()}")

    async def _ready(self) -> bool:
        if not self.alive:
            raise AssertionError(f"the operator ended:\n{self.tail()}")
        return (await self.get(self.metrics_port, "/readyz"))[0] == 200

    async def get(self, port: int, path: str) -> tuple[int, str]:
        """(status, body) of an HTTP answer; status 0 if there is none."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""

    def kill(self) -> None:
        """kill -9."""
        if self.alive and self._process is not None:
            self._process.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Exit code, once it has ended."""
        assert self._process is not None
        return await self._process.wait()

    async def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return await self.wait()

    def tail(self) -> str:
        return self.log.read_text()[-3000:] if self.log.exists() else "(no log)"


@asynccontextmanager
async def operator_process(
    cluster: Cluster, kubeconfig: Path, folder: Path, **fields: object
) -> AsyncIterator[OperatorProcess]:
    """Started; killed at the end if it still runs."""
    process = OperatorProcess(cluster, kubeconfig, folder, fields)
    await process.start()
    try:
        yield process
    finally:
        if process.alive:
            process.kill()
            await process.wait()


async def reconciled(operator: Runtime, cluster: Cluster, count: int, pool: str = "p") -> None:
    """Queues a pool and waits until it was reconciled, several times."""

    async def idle() -> bool:
        return operator.queue.oldest_age_seconds() == 0

    for _ in range(count):
        operator.wake((cluster.namespace, pool))
        await until(idle, "the queue is empty")
