"""A pool is Ready when its groups really serve, and not before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import service_url, sim_pool, wait_ready
from e2e.kit.wait import wait_until

TRIES = 50
AT_ONCE = 5


def first_request(kubectl: Kubectl, name: str) -> str:
    """Makes a pool, asks the instant ``kubectl wait`` returns, and removes the pool; what the client met."""
    kubectl.apply(sim_pool(name))
    # Asked for beforehand, so that nothing lies between Ready and the request.
    wait_until(lambda: kubectl.get("service", name), timeout=120, what=f"Service {name}")
    url = f"{service_url(kubectl, name)}/v1/chat/completions"
    body = {"model": "sim", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    try:
        with httpx.Client(timeout=30) as client:
            wait_ready(kubectl, name, timeout=240)
            return str(client.post(url, json=body).status_code)
    except httpx.HTTPError as error:
        return repr(error)
    finally:
        kubectl.run("delete", "ipool", name, "--wait=false")


@pytest.mark.timeout(1500)
def test_the_first_request_after_ready_succeeds_fifty_times_of_fifty(kubectl: Kubectl) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        got = list(pool.map(lambda i: first_request(kubectl, f"try-{i}"), range(TRIES)))
    assert got == ["200"] * TRIES
