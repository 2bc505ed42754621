"""What a machine must have, checked before anything is started, with the command that brings it."""

import os
import sys
from pathlib import Path

from e2e.cluster.commands import find
from e2e.cluster.errors import ClusterError
from e2e.cluster.state import State, cache_dir

# Program → Debian package. A node would come up Ready without some of these, and then start no pod.
CONTROL_PLANE = {"openssl": "openssl", "setpriv": "util-linux"}
NODE = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
    "nft": "nftables",
    "runc": "runc",
    "containerd": "containerd",
    "ctr": "containerd",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "/usr/lib/cni/host-local": "containernetworking-plugins",
}
BUILD = {"go": "golang-go"}
# Nodes bind their own directories over these two.
HIDDEN_IN_NODES = (Path("/var"), Path("/run"))


def check(state: State, nodes: int) -> None:
    """Raise ClusterError naming everything that is missing for a cluster of so many nodes."""
    require_programs({**CONTROL_PLANE, **(NODE if nodes else {})})
    if nodes:
        _require_root()
        _require_visible(state)


def require_programs(programs: dict[str, str]) -> None:
    """Raise ClusterError naming the missing ones of `programs` and the command that installs them."""
    missing = [program for program in programs if not find(program)]
    if missing:
        packages = " ".join(sorted({programs[m] for m in missing}))
        raise ClusterError(
            f"missing on this machine: {', '.join(missing)}\n"
            f"  install with: apt-get install --no-install-recommends {packages}"
        )


def _require_root() -> None:
    if os.geteuid():
        raise ClusterError("nodes need root (namespaces, mounts, cgroups); run as root, or use --nodes 0")


def _require_visible(state: State) -> None:
    needed = {"the state directory": state.dir, "the cache": cache_dir(), "Python": Path(sys.executable).resolve()}
    for what, path in needed.items():
        real = path.resolve()
        if any(real.is_relative_to(hidden.resolve()) for hidden in HIDDEN_IN_NODES):
            raise ClusterError(
                f"{what} is at {real}, but nodes have a /var and /run of their own and would not see it; "
                "choose another place (--state DIR, HEADWATER_CACHE)"
            )
