"""Deleting leaves nothing behind, whether or not an operator is there to help."""

from __future__ import annotations

import pytest

from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import SYSTEM_NAMESPACE, Site, describe, sim_pool, wait_counts, wait_ready
from e2e.kit.wait import wait_until

OWNED = "rgroup,pods,services,controllerrevisions,poddisruptionbudgets"


def leftovers(kubectl: Kubectl) -> list[str]:
    """What Headwater made in the namespace and still stands."""
    return [f"{obj['kind']}/{obj['metadata']['name']}" for obj in kubectl.list(OWNED)]


def test_deleting_a_pool_leaves_nothing_of_it(kubectl: Kubectl) -> None:
    kubectl.apply(sim_pool("x", replicas=2, warmPool={"size": 1}))
    wait_counts(kubectl, "x", active=2, standby=1)
    kubectl.run("delete", "ipool", "x")
    wait_until(
        lambda: not leftovers(kubectl), timeout=120, what="empty namespace", describe=lambda: str(leftovers(kubectl))
    )


def test_deleting_a_group_has_it_replaced(kubectl: Kubectl) -> None:
    kubectl.apply(sim_pool("x", replicas=1, warmPool={"size": 1}))
    wait_counts(kubectl, "x", active=1, standby=1)
    (victim,) = (g["metadata"]["name"] for g in kubectl.list("rgroup") if g["spec"]["role"] == "active")
    kubectl.run("delete", "rgroup", victim)
    wait_counts(kubectl, "x", active=1, standby=1)
    assert kubectl.get("rgroup", victim) is None


@pytest.mark.parametrize("operator_runs", [True, False], ids=["with-operator", "without-operator"])
def test_namespace_deletion_does_not_hang(site: Site, kubectl: Kubectl, operator_runs: bool) -> None:
    kubectl.apply(sim_pool("x"))
    wait_ready(kubectl, "x")
    system = site.kubectl.in_namespace(SYSTEM_NAMESPACE)
    (deployment,) = (d["metadata"]["name"] for d in system.list("deployments"))
    try:
        if not operator_runs:
            system.run("scale", f"deployment/{deployment}", "--replicas=0")
            wait_until(lambda: not system.list("pods"), timeout=120, what="end of the operator")
        site.kubectl.run("delete", "namespace", str(kubectl.namespace), "--timeout=120s", timeout=150)
    finally:
        system.run("scale", f"deployment/{deployment}", "--replicas=1")
    assert site.kubectl.get("namespace", str(kubectl.namespace)) is None, describe(kubectl, "x")
    system.run("rollout", "status", f"deployment/{deployment}", "--timeout=120s", timeout=150)
