"""What the kind provider asks of kind, docker and kubectl, seen from stand-ins for the three."""

import os
from pathlib import Path

import pytest
from e2e.cluster import kind
from e2e.cluster.state import State

from support.local_cluster import cluster

STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$(basename "$0") $1" in
    "docker info") echo engine ;;
    "docker ps") cat "$CALLS.running" 2>/dev/null || true ;;
    "kind create") echo "$CALLS_WORKERS" | tr ' ' '\\n' > "$CALLS.running" ;;
    "docker kill") : > "$CALLS.running" ;;
esac
"""


class Machine:
    """A machine with a Docker engine, in appearance."""

    def __init__(self, directory: Path) -> None:
        self.state = State(directory / "cluster")
        self._calls = directory / "calls"
        programs = directory / "bin"
        programs.mkdir()
        for name in ("docker", "kind", "kubectl"):
            (programs / name).write_text(STAND_IN)
            (programs / name).chmod(0o755)
        workers = " ".join(kind.container(self.state, node) for node in ("node1", "node2"))
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "CALLS": str(self._calls),
            "CALLS_WORKERS": workers,
        }
        self.environment.pop(kind.PROVIDER, None)

    def run(self, *arguments: object) -> list[str]:
        """Run one command of the cluster and return the calls that it made."""
        self._calls.write_text("")
        got = cluster(arguments[0], "--state", self.state.dir, *arguments[1:], environment=self.environment)
        assert got.returncode == 0, got.stderr
        return self._calls.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_up_creates_workers_with_gpus_and_a_second_up_creates_nothing(machine: Machine) -> None:
    name, created = kind.name(machine.state), machine.run("up", "--nodes", 2, "--gpus-per-node", 8)
    assert any(call.startswith(f"kind create cluster --name {name} ") for call in created)
    for worker in (f"{name}-worker", f"{name}-worker2"):
        patches = [call for call in created if f"patch node {worker} --subresource=status" in call]
        assert len(patches) == 1
        assert '"value": "8"' in patches[0]
    assert not [call for call in machine.run("up") if call.startswith("kind")]


def test_a_stopped_worker_is_started_again(machine: Machine) -> None:
    machine.run("up", "--nodes", 2)
    worker = kind.container(machine.state, "node2")
    assert f"docker kill {worker}" in machine.run("stop-node", "node2")
    assert f"docker start {worker}" in machine.run("start-node", "node2")


def test_images_are_loaded_as_archives(machine: Machine) -> None:
    machine.run("up", "--nodes", 1)
    archive = machine.state.dir.parent / "image.tar"
    archive.touch()
    assert f"kind load image-archive {archive} --name {kind.name(machine.state)}" in machine.run("load", archive)


def test_down_deletes_the_kind_cluster_and_the_files(machine: Machine) -> None:
    machine.run("up", "--nodes", 1)
    calls = machine.run("down")
    assert any(call.startswith(f"kind delete cluster --name {kind.name(machine.state)}") for call in calls)
    assert not machine.state.dir.exists()


def test_a_control_plane_alone_needs_no_docker(machine: Machine) -> None:
    assert not [call for call in machine.run("up", "--nodes", 0) if call.startswith("kind")]
    machine.run("down")
