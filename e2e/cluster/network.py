"""The cluster's network: one bridge on the host, one veth pair a node, routed pod ranges.

Addresses: 10.N.0.0/16 with the first free N from 200. The host's end is 10.N.0.1, nodes are 10.N.0.11 and up,
their pods 10.N.65.0/24 and up, Services 10.N.192.0/18. The host reaches all of them; pods reach no further.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from e2e.cluster.commands import find, run
from e2e.cluster.errors import ClusterError
from e2e.cluster.state import State


@dataclass(frozen=True)
class NodePlan:
    """Addresses of one node."""

    ip: str
    pods: str
    link: str


def bridge(state: State) -> str:
    """Name of the cluster's bridge; its links begin with the same letters."""
    return f"hw{state.id}"


def node_plan(state: State, net: str, name: str) -> NodePlan:
    """Addresses of node1, node2, …"""
    number = int(name.removeprefix("node"))
    return NodePlan(f"{net}.0.{10 + number}", f"{net}.{64 + number}.0/24", f"{bridge(state)}n{number}")


def create_bridge(state: State) -> str:
    """Make the bridge on a free network and return that network's first two numbers."""
    with _network_lock():
        net = _free_net()
        run("ip", "link", "add", bridge(state), "type", "bridge")
        run("ip", "addr", "add", f"{net}.0.1/24", "dev", bridge(state))
        run("ip", "link", "set", bridge(state), "up")
    return net


def bridge_exists(state: State) -> bool:
    """Whether the bridge is there (it is gone after the machine was restarted)."""
    return bridge(state) in links(state)


def route_services(state: State, net: str, node: str) -> None:
    """Let the host reach ClusterIPs by way of one node."""
    run("ip", "route", "replace", f"{net}.192.0/18", "via", node_plan(state, net, node).ip)


def attach(state: State, plan: NodePlan, pid: int) -> None:
    """Give the network namespace of `pid` its eth0, hung on the bridge."""
    # A stopped node's link goes some time after its processes.
    run("ip", "link", "del", plan.link, check=False)
    run("ip", "link", "add", plan.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
    run("ip", "link", "set", plan.link, "master", bridge(state), "up")
    run("ip", "route", "replace", plan.pods, "via", plan.ip)


def links(state: State) -> list[str]:
    """This cluster's links on the host; a machine without `ip` never had any."""
    if not find("ip"):
        return []
    names = [line.split()[1].rstrip(":").partition("@")[0] for line in run("ip", "-o", "link").splitlines()]
    return [name for name in names if name.startswith(bridge(state))]


def remove_links(state: State) -> None:
    """Delete every link of the cluster; the routes over them go too."""
    for name in links(state):
        run("ip", "link", "del", name, check=False)


def _free_net() -> str:
    used = run("ip", "-4", "route") + run("ip", "-4", "-o", "addr")
    for number in range(200, 255):
        if f" 10.{number}." not in f" {used}".replace("\n", " "):
            return f"10.{number}"
    raise ClusterError("no free network from 10.200.0.0/16 to 10.254.0.0/16; take another cluster down")


@contextmanager
def _network_lock() -> Iterator[None]:
    # The network namespace itself is what two clusters compete for.
    descriptor = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
