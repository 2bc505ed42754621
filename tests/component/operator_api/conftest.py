"""A real API server with both definitions installed, and kubectl to speak to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from e2e.cluster import build
from e2e.kit.kubectl import Kubectl

from support.control_plane import control_plane

__all__ = ["control_plane"]

CRDS = Path(__file__).resolve().parents[3] / "crds"


@pytest.fixture(scope="session")
def cluster(control_plane: Path) -> Kubectl:
    """kubectl as cluster admin, with both kinds established."""
    binary = shutil.which("kubectl", path=f"{build.bin_dir()}{os.pathsep}{os.environ['PATH']}")
    assert binary is not None, "no kubectl: python -m e2e.cluster build"
    kubectl = Kubectl(control_plane, binary)
    kubectl.run("apply", "-f", str(CRDS))
    kubectl.run("wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRDS))
    return kubectl


@pytest.fixture
def kubectl(cluster: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a namespace of the test's own."""
    namespace = f"api-{uuid4().hex[:8]}"
    cluster.run("create", "namespace", namespace)
    yield cluster.in_namespace(namespace)
    cluster.run("delete", "namespace", namespace, "--wait=false")
