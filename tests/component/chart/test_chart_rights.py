"""The operator lives on exactly the rights that the chart gives it: a real API server refuses none of its calls."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from kubernetes.aio.client import Configuration

from headwater_operator.adapters import kinds
from support import helm
from support.control_plane import control_plane
from support.fake_kubelet import kubelet_on
from support.operator_cluster import Cluster, cluster_in, configuration_of, install_crds, until
from support.operator_runs import operator_inside

__all__ = ["control_plane"]

Call = tuple[str, str, str]

RELEASE = "rights"
ACCOUNT = "rights-headwater-operator"
SAMPLE = re.compile(r'^headwater_api_calls_total\{code="(\w+)",resource="([\w/]+)",verb="(\w+)"\}', re.MULTILINE)

# Granted for what an ordinary life doesn't bring: answers lost on the way, names that are taken, events that repeat,
# a Service or a revision that somebody changed, a Lease that somebody deleted.
RARE = {
    *{(resource, "get") for resource in ("inferencepools", "replicagroups", "pods", "services", "controllerrevisions")},
    ("events", "patch"),
    ("leases", "create"),
    ("services", "patch"),
    *{("controllerrevisions", verb) for verb in ("patch", "delete")},
}


@pytest.fixture(scope="module")
def api_server(control_plane: Path) -> Path:
    """Kubeconfig of an admin, on an API server that serves our kinds."""
    asyncio.run(install_crds(control_plane))
    return control_plane


@pytest.fixture
async def cluster(api_server: Path) -> AsyncIterator[Cluster]:
    async with cluster_in(api_server) as found:
        yield found


async def install(cluster: Cluster, kubeconfig: Path, values: helm.Values) -> Configuration:
    """Installs the chart's objects and returns the client configuration of its service account."""
    where = ["--namespace", cluster.namespace, "--kubeconfig", str(kubeconfig)]
    arguments = ["upgrade", "--install", RELEASE, str(helm.CHART), *where]
    await asyncio.to_thread(helm.run, *arguments, values={**values, "crds": {"install": False}})
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/{ACCOUNT}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await cluster.client.call("POST", path, body=body)
    admin = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
    admin["users"] = [{"name": user["name"], "user": {"token": answer["status"]["token"]}} for user in admin["users"]]
    own = kubeconfig.with_name(f"{cluster.namespace}.kubeconfig")
    await asyncio.to_thread(own.write_text, yaml.safe_dump(admin))
    return await configuration_of(own)


async def uninstall(cluster: Cluster, kubeconfig: Path) -> None:
    where = ["--namespace", cluster.namespace, "--kubeconfig", str(kubeconfig)]
    await asyncio.to_thread(helm.run, "uninstall", RELEASE, *where)


async def live_a_life(
    cluster: Cluster, configuration: Configuration, namespaces: tuple[str, ...]
) -> set[tuple[str, str, str]]:
    """A pool from its creation to its end; every call that the operator made, as (code, resource, verb)."""
    fields = {"namespaces": namespaces, "lease_name": ACCOUNT}
    async with (
        kubelet_on(cluster) as kubelet,
        operator_inside(cluster, configuration, engine_admin_port=kubelet.port, **fields) as runtime,
    ):
        await cluster.create_pool(replicas=2, warmPool={"size": 1})
        await cluster.until_counts(active=2, standby=1)
        victim = (await cluster.groups("active"))[0]["metadata"]["name"]
        await kubelet.kill(f"{victim}-0")
        await cluster.until_counts(active=2, standby=1, quarantined=1)
        await cluster.patch(kinds.POOL, "p", {"spec": {"suspend": True}})

        async def gone() -> bool:
            return not [group for group in await cluster.groups() if group["spec"]["role"] != "quarantined"]

        await until(gone, "all groups of a suspended pool")
        return set(SAMPLE.findall(runtime.metrics.exposition()[0].decode()))


def granted(cluster: Cluster) -> set[tuple[str, str]]:
    """(resource, verb) of every rule that the chart binds to an operator for all namespaces."""
    manifests = helm.render({"rbac": {"userRoles": False}}, release=RELEASE, namespace=cluster.namespace)
    roles = [*helm.of_kind(manifests, "Role"), *helm.of_kind(manifests, "ClusterRole")]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


async def test_operator_for_all_namespaces_is_refused_nothing_and_uses_what_it_has(
    cluster: Cluster, api_server: Path
) -> None:
    configuration = await install(cluster, api_server, {})
    try:
        calls = await live_a_life(cluster, configuration, ())
    finally:
        await uninstall(cluster, api_server)
    assert {call for call in calls if call[0] in {"401", "403"}} == set()
    used = {(resource, verb) for _, resource, verb in calls}
    # The operator's counter calls a list a get.
    want = {(resource, "get" if verb == "list" else verb) for resource, verb in granted(cluster)}
    assert want - used - RARE == set()


async def test_operator_for_one_namespace_is_refused_nothing_but_the_nodes(cluster: Cluster, api_server: Path) -> None:
    configuration = await install(cluster, api_server, {"watchNamespaces": [cluster.namespace]})
    try:
        calls = await live_a_life(cluster, configuration, (cluster.namespace,))
    finally:
        await uninstall(cluster, api_server)
    assert {call[1:] for call in calls if call[0] in {"401", "403"}} == {("nodes", "get")}
