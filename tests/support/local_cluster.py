"""Running the local cluster's command line in tests, and looking for what a cluster leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from e2e.cluster import build
from e2e.cluster.state import REPO, State

COMMAND = (sys.executable, "-m", "e2e.cluster")


def cluster(*arguments: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, cwd=REPO, env=environment or dict(os.environ), capture_output=True, text=True, timeout=280, check=False
    )


def begin(*arguments: object) -> subprocess.Popen[str]:
    """Start a command and go on."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@contextmanager
def running_cluster(directory: Path, *flags: object) -> Iterator[State]:
    """A cluster for the length of a test."""
    state = State(directory)
    try:
        up = cluster("up", "--state", state.dir, *flags)
        assert up.returncode == 0, up.stderr
        yield state
    finally:
        cluster("down", "--state", state.dir)


def kubectl(state: State, *arguments: str, stdin: str | None = None) -> str:
    """Output of kubectl, as cluster admin."""
    command = [str(build.bin_dir() / "kubectl"), f"--kubeconfig={state.kubeconfig}", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def get(state: State, *arguments: str) -> Any:
    """Decoded output of `kubectl get -o json`."""
    return json.loads(kubectl(state, "get", "-ojson", *arguments))


def apply(state: State, *objects: dict[str, Any]) -> None:
    """Apply objects."""
    kubectl(state, "apply", "-f-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def traces(state: State, net: str = "") -> list[str]:
    """Processes, mounts, links, routes, cgroups and files of a cluster, found without the cluster's own code."""
    found = [f"process {pid}" for pid in _processes(state)]
    found += [
        f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(state.dir) in line
    ]
    found += [f"link {line}" for line in _output("ip", "-o", "link") if f"hw{state.id}" in line]
    found += [f"route {line}" for line in _output("ip", "route") if net and line.startswith(f"{net}.")]
    found += [f"cgroup {path}" for path in Path("/sys/fs/cgroup").glob(f"**/headwater-{state.id}")]
    return found + ([f"files {sorted(state.dir.iterdir())}"] if state.dir.exists() else [])


def _processes(state: State) -> list[str]:
    marks = (str(state.dir).encode(), f"headwater-{state.id}".encode())
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.name == str(os.getpid()) or b"Z" in (process / "stat").read_bytes().rpartition(b")")[2][:3]:
                continue
            text = b"".join((process / part).read_bytes() for part in ("cmdline", "environ", "cgroup"))
            if any(mark in text for mark in marks):
                found.append(f"{process.name} {text[:80]!r}")
    return found


def _output(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
