"""The cgroups that nodes live in, on cgroup v1, v2 and hybrid machines."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from e2e.cluster.state import State
from e2e.cluster.waiting import wait_for

CGROUPS = Path("/sys/fs/cgroup")


def root(state: State) -> str:
    """The cluster's cgroup; each node has one below it."""
    return f"headwater-{state.id}"


def hierarchies() -> list[Path]:
    """The one of cgroup v2, or each controller's of v1 (with v2's beside them if hybrid)."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [group for group in CGROUPS.iterdir() if group.is_dir() and not group.is_symlink()]


def create(path: str) -> None:
    """Make a cgroup in every hierarchy: kubelet wants its own to exist in all of them."""
    for hierarchy in hierarchies():
        (hierarchy / path).mkdir(parents=True, exist_ok=True)
        _delegate(hierarchy, path)


def remove(path: str) -> None:
    """Remove a cgroup and all below it, once the last process in them is gone."""
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy / path, topdown=False):
            wait_for(f"removal of {directory}", partial(_removed, Path(directory)), 30)


def _delegate(hierarchy: Path, path: str) -> None:
    """Cgroup v2 gives a child only the controllers that each parent passes on."""
    parts = Path(path).parts
    for depth in range(len(parts)):
        group = hierarchy.joinpath(*parts[:depth])
        with suppress(OSError):
            available = (group / "cgroup.controllers").read_text().split()
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in available))


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return not directory.exists()
    return True
