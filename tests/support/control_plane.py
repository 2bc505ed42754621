"""A real API server (with etcd, controller manager and scheduler, without nodes) for component tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.cluster import provider
from e2e.cluster.state import State


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of a cluster admin; the control plane ends with the test session, or with its process."""
    state = State(tmp_path_factory.mktemp("control-plane"))
    provider.up(state, provider.Wish(nodes=0), tied_to_caller=True)
    yield state.kubeconfig
    provider.down(state)
