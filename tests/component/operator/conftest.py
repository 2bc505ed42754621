"""The operator against a real API server, with a fake kubelet and fake engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from support.api_proxy import ApiProxy, proxy_to
from support.control_plane import control_plane
from support.fake_kubelet import FakeKubelet, kubelet_on
from support.operator_cluster import Cluster, cluster_in, install_crds
from support.operator_runs import RunOperator, operator_inside

__all__ = ["control_plane"]


@pytest.fixture(autouse=True)
def _no_blocking_calls() -> Iterator[None]:
    with blockbuster_ctx("headwater_operator"):
        yield


@pytest.fixture(scope="session")
def api_server(control_plane: Path) -> Path:
    """Kubeconfig of an API server that serves our kinds."""
    asyncio.run(install_crds(control_plane))
    return control_plane


@pytest.fixture
async def cluster(api_server: Path) -> AsyncIterator[Cluster]:
    async with cluster_in(api_server) as found:
        yield found


@pytest.fixture
async def kubelet(cluster: Cluster) -> AsyncIterator[FakeKubelet]:
    async with kubelet_on(cluster) as found:
        yield found


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[ApiProxy]:
    async with proxy_to(cluster.configuration) as found:
        yield found


@pytest.fixture
def run_operator(cluster: Cluster) -> RunOperator:
    """Runs the operator in this process while entered."""
    return partial(operator_inside, cluster)
