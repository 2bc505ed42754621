"""One cluster for the tests on sim engines, made by the quick demo itself, and one for vLLM, made by the full demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import Site

ROOT = Path(__file__).resolve().parent.parent
DEMO_DEADLINE_SECONDS = 3000  # cold: the images are built on the way

# These tests kill processes inside pods by their pids and reach Services from the host, which the bundled cluster
# lets them; so they use it even where kind could be had.
os.environ["HEADWATER_CLUSTER_PROVIDER"] = "bundled"
os.environ["HEADWATER_IMAGE_BUILDER"] = "buildah"


@dataclass(frozen=True)
class Demo:
    """A finished run of ``make demo``: what it printed, how long it took, and where its cluster is."""

    output: str
    seconds: float
    site: Site


def run_demo(backend: str, state: Path, nodes: int) -> Demo:
    """Runs the demo as ``make demo`` does, in a cluster of its own."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "e2e.demo", "--backend", backend, "--state", str(state), "--nodes", str(nodes)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEMO_DEADLINE_SECONDS,
        check=False,
    )
    seconds = time.monotonic() - begin
    print(done.stdout, f"\ndemo {backend}: {seconds:.0f} s")
    assert done.returncode == 0, done.stdout
    return Demo(done.stdout, seconds, Site(state, Kubectl(state / "kubeconfig")))


def cluster_down(state: Path) -> None:
    """Stops a cluster; the test run fails if that does not work."""
    subprocess.run([sys.executable, "-m", "e2e.cluster", "down", "--state", str(state)], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def sim_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """``BACKEND=sim make demo`` on three nodes; its cluster serves every test on sim engines."""
    state = tmp_path_factory.mktemp("sim-cluster")
    try:
        yield run_demo("sim", state, nodes=3)
    finally:
        cluster_down(state)


@pytest.fixture(scope="session")
def site(sim_demo: Demo) -> Site:
    """The cluster of the sim demo, with Headwater installed."""
    return sim_demo.site


@pytest.fixture
def kubectl(site: Site, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """kubectl in a namespace of the test's own, under restricted pod security."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50] + f"-{os.urandom(2).hex()}"
    admin = site.kubectl
    admin.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        }
    )
    try:
        yield admin.in_namespace(name)
    finally:
        admin.run("delete", "namespace", name, "--wait=false", "--ignore-not-found")
