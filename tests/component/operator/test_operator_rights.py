"""The operator with the chart's rights and no other, enforced by the API server's own authorizer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from headwater_operator.adapters import kinds
from headwater_operator.adapters.kinds import Kind
from support import helm
from support.api_proxy import ApiProxy
from support.fake_kubelet import FakeKubelet
from support.operator_cluster import Cluster, until
from support.operator_runs import operator_process, plain_kubeconfig

_ROLE_KINDS = ("Role", "RoleBinding")
_RBAC = {name: Kind(name, "rbac.authorization.k8s.io", "v1", f"{name.lower()}s") for name in _ROLE_KINDS}

UNUSED_IN_A_RUN = {
    # After a lost answer only, which test_operator_restarts makes: the object is looked up.
    ("get", "headwater.dev/inferencepools"),
    ("get", "headwater.dev/replicagroups"),
    ("get", "pods"),
    ("get", "services"),
    ("get", "apps/controllerrevisions"),
    # Old revisions are dropped after five changes of the template; a rollback numbers one anew.
    ("delete", "apps/controllerrevisions"),
    ("patch", "apps/controllerrevisions"),
    # The chart makes the Lease.
    ("create", "coordination.k8s.io/leases"),
    # A Service that somebody changed is restored, and an event repeated, by a patch.
    ("patch", "services"),
    ("patch", "events"),
}


def granted(manifests: list[dict[str, Any]]) -> set[tuple[str, str]]:
    found = set()
    for role in helm.of_kind(manifests, "Role"):
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                found |= {
                    (verb, f"{group}/{resource}" if group else resource)
                    for verb in rule["verbs"]
                    for resource in rule["resources"]
                }
    return found


async def test_in_one_namespace_the_charts_role_suffices_for_a_pools_whole_life_and_grants_little_more(
    cluster: Cluster, kubelet: FakeKubelet, proxy: ApiProxy, tmp_path: Path
) -> None:
    namespace = cluster.namespace
    manifests = await asyncio.to_thread(
        helm.render, {"watchNamespaces": [namespace], "rbac": {"readNodes": False}}, namespace=namespace
    )
    for manifest in manifests:
        if manifest["kind"] in _RBAC:
            await cluster.client.call("POST", _RBAC[manifest["kind"]].path(namespace), body=manifest)
    lease = helm.only(manifests, "Lease")
    await cluster.create(kinds.LEASE, {"metadata": {"name": lease["metadata"]["name"]}})
    account = helm.only(manifests, "ServiceAccount")["metadata"]["name"]
    proxy.user = f"system:serviceaccount:{namespace}:{account}"
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    options = {"engine_admin_port": kubelet.port, "lease_name": lease["metadata"]["name"]}
    async with operator_process(cluster, kubeconfig, tmp_path, **options) as operator:
        await operator.until_ready()
        await cluster.create_pool(replicas=1, warmPool={"size": 1})
        await cluster.until_condition("Ready", "True")
        await cluster.until_condition("WarmPoolReady", "True")
        victim = (await cluster.groups("active"))[0]["metadata"]["name"]
        await kubelet.kill(f"{victim}-0")
        await until(lambda: cluster.events("Replaced"), "the replacement's event")
        await cluster.until_condition("WarmPoolReady", "True")
        await cluster.patch(kinds.POOL, "p", {"spec": {"warmPool": {"size": 0}}})

        async def shrunk() -> bool:
            return not await cluster.groups("standby")

        await until(shrunk, "the standby is gone")
        assert await operator.terminate() == 0
    unexpected = [text for text in proxy.forbidden if "nodes" not in text]
    assert unexpected == []
    assert granted(manifests) - proxy.calls - UNUSED_IN_A_RUN == set()
