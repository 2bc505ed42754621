"""A node waits for a link of its own, whatever the host's are called."""

import subprocess
import sys

from e2e.cluster.commands import search_path
from e2e.cluster.state import REPO

HOST_WITH_ETH0 = "mount -t sysfs sysfs /sys && ip link add eth0 type veth peer name eth9"
ASK = "from e2e.cluster.node_init import has_link; print(has_link('eth0'))"


def asked(*node: str) -> str:
    """What a process says about eth0, run by `node` on a pretended host whose /sys shows an eth0."""
    script = f'{HOST_WITH_ETH0} && "$@" || exit'  # the shell stays, and keeps the host's namespace alive
    host = ["unshare", "--net", "--mount", "sh", "-c", script, "sh"]
    environment = {"PATH": search_path(), "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [*host, *node, sys.executable, "-c", ASK], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_link_of_the_host_is_none_of_the_node() -> None:
    want = "False"
    got = asked("unshare", "--net")
    assert got == want


def test_a_link_in_its_own_namespace_is_seen() -> None:
    want = "True"
    got = asked()
    assert got == want
