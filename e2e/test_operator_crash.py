"""The operator may be killed at any moment: it converges afterwards, with no orphan and no double group."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import (
    SYSTEM_NAMESPACE,
    Site,
    groups,
    kill_pod_processes,
    names,
    operator_pod,
    pod_pids,
    sim_pool,
    wait_counts,
    wait_ready,
)
from e2e.kit.wait import wait_until
from headwater_contracts.reasons import Role


@dataclass(frozen=True)
class Moment:
    """A change of the pool in whose midst the operator dies, and the counts that must come of it."""

    name: str
    act: Callable[[Kubectl], object]
    active: int
    standby: int


def kill_one_active(kubectl: Kubectl) -> None:
    kill_pod_processes(f"{min(names(groups(kubectl, 'x', Role.ACTIVE)))}-0")


MOMENTS = (
    Moment("create", lambda k: k.apply(sim_pool("x", replicas=2, warmPool={"size": 1})), 2, 1),
    Moment("failure", kill_one_active, 2, 1),
    Moment("scale up", lambda k: k.run("scale", "ipool/x", "--replicas=3"), 3, 1),
    Moment("scale down", lambda k: k.run("scale", "ipool/x", "--replicas=1"), 1, 1),
)


def kill_operator(site: Site) -> None:
    """kill -9 of the operator, then waits until another runs.

    The dead pod is removed at once: the kubelet would start its container again, but after each crash later.
    """
    pod = operator_pod(site)
    kill_pod_processes(pod)
    site.kubectl.in_namespace(SYSTEM_NAMESPACE).run("delete", "pod", pod, "--grace-period=0", "--force")
    wait_until(lambda: new_operator(site, pod), timeout=120, what="a new operator process")


def new_operator(site: Site, old: str) -> list[int]:
    """Pids of an operator pod that is not the old one."""
    system = site.kubectl.in_namespace(SYSTEM_NAMESPACE)
    pods = names(system.list("pods", "-l", "app.kubernetes.io/component=operator")) - {old}
    return [pid for pod in pods for pid in pod_pids(pod)]


@pytest.mark.timeout(900)
def test_operator_killed_in_the_midst_of_each_change_converges(site: Site, kubectl: Kubectl) -> None:
    kills = itertools.count()
    for moment in MOMENTS:
        moment.act(kubectl)
        # Two kills a change: one at once, one when the change has shown its first effect.
        kill_operator(site)
        next(kills)
        wait_until(lambda: groups(kubectl, "x"), timeout=120, what="a group")
        kill_operator(site)
        next(kills)
        wait_counts(kubectl, "x", active=moment.active, standby=moment.standby, timeout=240)
        wait_ready(kubectl, "x")
        assert_no_orphan(kubectl, moment.active + moment.standby)
    assert next(kills) == 2 * len(MOMENTS)


def assert_no_orphan(kubectl: Kubectl, want: int) -> None:
    """Every pod belongs to a living group and every group has one pod. A failed group is kept for its logs."""
    living = groups(kubectl, "x")
    kept = groups(kubectl, "x", Role.QUARANTINED)
    assert len(living) - len(kept) == want
    wait_until(lambda: len(kubectl.list("pods")) == len(living), timeout=120, what=f"{len(living)} pods")
    owners = [pod["metadata"]["ownerReferences"][0]["name"] for pod in kubectl.list("pods")]
    assert sorted(owners) == sorted(names(living))
    assert len(kept) <= 1
