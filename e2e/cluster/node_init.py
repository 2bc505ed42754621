"""PID 1 of a node: sets the namespaces up, then keeps the three daemons alive as systemd would.

Run as `python3 -m e2e.cluster.node_init STATE NAME` inside fresh network, mount and PID namespaces.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from e2e.cluster.build import KUBELITE
from e2e.cluster.commands import run
from e2e.cluster.network import node_plan
from e2e.cluster.node_config import labels
from e2e.cluster.state import Settings, State
from e2e.cluster.waiting import wait_for

RESTART_SECONDS = 1


def main() -> None:
    """Never returns."""
    state, name = State(Path(sys.argv[1])), sys.argv[2]
    settings = state.require()
    bind_own_directories(state.node(name))
    configure_network(state, settings, name)
    supervise(state, name, daemons(state, settings, name))


def bind_own_directories(node: Path) -> None:
    """Put the node's /var and /run over the host's, so that every daemon keeps its default paths."""
    run("mount", "--make-rshared", "/")
    for directory in ("var/lib", "var/log", "var/tmp", "run"):
        (node / directory).mkdir(parents=True, exist_ok=True)
    if not (node / "var/run").is_symlink():
        (node / "var/run").symlink_to("/run")
    for directory in ("var", "run"):
        run("mount", "--bind", node / directory, f"/{directory}")


def configure_network(state: State, settings: Settings, name: str) -> None:
    """Addresses, and routes to the other nodes' pods."""
    net = settings.net
    wait_for("eth0", lambda: has_link("eth0"))
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", f"{node_plan(state, net, name).ip}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    # The host does not forward, so this leads nowhere; ClusterIPs need a route to be rewritten on.
    run("ip", "route", "add", "default", "via", f"{net}.0.1")
    for other in settings.nodes:
        if other != name:
            plan = node_plan(state, net, other)
            run("ip", "route", "add", plan.pods, "via", plan.ip)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def has_link(name: str) -> bool:
    """Whether this network namespace has the link. /sys shows the host's, which mostly has an eth0 of its own."""
    return name in (link for _, link in socket.if_nameindex())


def daemons(state: State, settings: Settings, name: str) -> dict[str, list[str]]:
    """Command line of each daemon."""
    node, kubelite = state.node(name), str(KUBELITE.path)
    kubelet = [
        kubelite, "kubelet", f"--config={node}/kubelet.yaml", f"--kubeconfig={node}/kubelet.kubeconfig",
        f"--hostname-override={name}", f"--node-ip={node_plan(state, settings.net, name).ip}",
        f"--node-labels={labels(settings)}",
    ]  # fmt: skip
    return {
        "containerd": ["containerd", "--config", f"{node}/containerd.toml"],
        "kubelet": kubelet,
        "kube-proxy": [kubelite, "kube-proxy", f"--config={node}/kube-proxy.yaml"],
    }


def supervise(state: State, name: str, commands: dict[str, list[str]]) -> None:
    """Start the daemons, reap all that ends (orphans of containerd's shims too), start daemons again."""
    pids: dict[int, str] = {}

    def launch(daemon: str) -> None:
        with (state.logs / f"{name}-{daemon}.log").open("ab") as log:
            process = subprocess.Popen(
                commands[daemon], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        pids[process.pid] = daemon

    launch("containerd")
    wait_for("containerd", Path("/run/containerd/containerd.sock").exists)
    launch("kubelet")
    launch("kube-proxy")
    while True:
        ended = pids.pop(os.wait()[0], None)
        if ended:
            print(f"{ended} ended; starting it again", flush=True)
            time.sleep(RESTART_SECONDS)
            launch(ended)


if __name__ == "__main__":
    main()
