"""A namespace of a real API server, and what a test wants to ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from headwater_operator import errors
from headwater_operator.adapters import kinds
from headwater_operator.adapters.kinds import Kind
from headwater_operator.adapters.rest import KubeClient

T = TypeVar("T")
Object = dict[str, Any]

DEADLINE_SECONDS = 60.0
"""Far beyond what anything here takes: only a broken condition reaches it."""
_CRDS = Path(__file__).parents[2] / "crds"
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def configuration_of(kubeconfig: Path) -> Configuration:
    """Client configuration of a kubeconfig file."""
    found = Configuration()
    await config.load_kube_config(config_file=str(kubeconfig), client_configuration=found)
    return found


async def until(check: Callable[[], Awaitable[T | None]], what: str, seconds: float = DEADLINE_SECONDS) -> T:
    """Asks again and again until the answer is neither None nor False."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                got = await check()
                if got is not None and got is not False and got != []:
                    return got
                await asyncio.sleep(0.03)
    except TimeoutError:
        raise AssertionError(f"never happened: {what}") from None


class Cluster:
    """Calls to the API server as its admin, in one namespace."""

    def __init__(self, client: KubeClient, configuration: Configuration, namespace: str) -> None:
        self.client = client
        self.configuration = configuration
        self.namespace = namespace

    async def create(self, kind: Kind, body: Object) -> Object:
        """Creates an object in the namespace."""
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        return await self.client.call("POST", kind.path(self.namespace), body=whole)

    async def get(self, kind: Kind, name: str) -> Object | None:
        """One object, or None."""
        try:
            return await self.client.call("GET", kind.path(self.namespace, name))
        except errors.NotFound:
            return None

    async def all(self, kind: Kind, labels: str = "") -> list[Object]:
        """All objects of a kind in the namespace."""
        query = {"labelSelector": labels} if labels else {}
        answer = await self.client.call("GET", kind.path(self.namespace), query=query)
        return list(answer["items"])

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str | None = None,
        strategic: bool = False,
    ) -> Object:
        """Merge patch, or strategic merge patch."""
        form = "strategic-merge-patch" if strategic else "merge-patch"
        path = kind.path(self.namespace, name, subresource)
        return await self.client.call("PATCH", path, body=dict(patch), content_type=f"application/{form}+json")

    async def delete(self, kind: Kind, name: str, *, grace_seconds: int | None = None) -> None:
        """Deletes in the background; no error when it is gone already."""
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            await self.client.call("DELETE", kind.path(self.namespace, name), body=body)
        except errors.NotFound:
            return

    async def version(self) -> int:
        """The API server's present resource version: it rises with every write of anybody."""
        answer = await self.client.call("GET", kinds.POOL.path(self.namespace), query={"limit": "1"})
        return int(answer["metadata"]["resourceVersion"])

    # -- pools ------------------------------------------------------------------------------------------

    async def create_pool(self, name: str = "p", **spec: Any) -> Object:
        """A small pool of backend sim; spec fields by their names in YAML."""
        whole = {
            "model": {"name": "m", "source": {"imagePath": "/models/none"}},
            "engine": {"backend": "sim", "tensorParallelSize": 8},
            "resources": {"cpu": "1", "memory": "1Gi", "sharedMemory": "64Mi"},
            "drain": {"timeout": "5s", "endpointSettle": "0s"},
            "replicas": 2,
            "warmPool": {"size": 1},
        } | spec
        return await self.create(kinds.POOL, {"metadata": {"name": name}, "spec": whole})

    async def groups(self, role: str | None = None) -> list[Object]:
        """ReplicaGroups, of one role if given."""
        return [item for item in await self.all(kinds.GROUP) if role in (None, item["spec"]["role"])]

    async def condition(self, kind: str, pool: str = "p") -> Object | None:
        """One condition of a pool."""
        item = await self.get(kinds.POOL, pool)
        conditions = ((item or {}).get("status") or {}).get("conditions") or ()
        return next((condition for condition in conditions if condition["type"] == kind), None)

    async def until_condition(self, kind: str, status: str, pool: str = "p", reason: str | None = None) -> Object:
        """Waits for a condition, of the pool's present generation."""

        async def check() -> Object | None:
            item = await self.get(kinds.POOL, pool)
            got = await self.condition(kind, pool)
            fresh = got is not None and item is not None
            if not fresh or got is None or item is None or got["status"] != status:
                return None
            if reason is not None and got["reason"] != reason:
                return None
            return got if got.get("observedGeneration") == item["metadata"]["generation"] else None

        return await until(check, f"{kind}={status} of pool {pool}")

    async def until_counts(self, **want: int) -> None:
        """Waits until the groups' roles are exactly these."""

        async def check() -> bool:
            got: dict[str, int] = {}
            for item in await self.groups():
                got[item["spec"]["role"]] = got.get(item["spec"]["role"], 0) + 1
            return got == {role: count for role, count in want.items() if count}

        await until(check, f"groups by role {want}")

    async def events(self, reason: str) -> list[Object]:
        """Events of a reason."""
        return [event for event in await self.all(kinds.EVENT) if event["reason"] == reason]


@asynccontextmanager
async def cluster_in(kubeconfig: Path) -> AsyncIterator[Cluster]:
    """A namespace of its own, emptied at the end."""
    configuration = await configuration_of(kubeconfig)
    client = await asyncio.to_thread(KubeClient, configuration)
    namespace = f"t-{uuid4().hex[:10]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await client.call("POST", "/api/v1/namespaces", body=body)
    cluster = Cluster(client, configuration, namespace)
    await until(lambda: cluster.get(Kind("ServiceAccount", "", "v1", "serviceaccounts"), "default"), "service account")
    try:
        yield cluster
    finally:
        for kind in (kinds.POOL, kinds.GROUP):
            await client.call("DELETE", kind.path(namespace))
        await client.call("DELETE", kinds.POD.path(namespace), query={"gracePeriodSeconds": "0"})
        await client.call("DELETE", f"/api/v1/namespaces/{namespace}")
        await client.close()


async def install_crds(kubeconfig: Path) -> None:
    """Creates our CustomResourceDefinitions and waits until they are served."""
    client = await asyncio.to_thread(KubeClient, await configuration_of(kubeconfig))
    try:
        for file in sorted(_CRDS.glob("*.yaml")):
            body = yaml.safe_load(file.read_text())
            try:
                await client.call("POST", _CRD_PATH, body=body)
            except errors.AlreadyExists:
                continue
        for kind in (kinds.POOL, kinds.GROUP):
            await until(partial(_served, client, kind), f"{kind.plural} are served")
    finally:
        await client.close()


async def _served(client: KubeClient, kind: Kind) -> bool:
    try:
        await client.call("GET", kind.path())
    except errors.OperatorError:
        return False
    return True
