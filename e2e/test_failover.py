"""A dead engine costs its pool one promotion: the Service goes on, and the warm pool fills up again."""

from __future__ import annotations

import threading
import time

import httpx

from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import Site, describe, groups, kill_pod_processes, names, service_url, wait_counts
from e2e.kit.wait import wait_until
from headwater_contracts.reasons import Role

PROMOTED_WITHIN_SECONDS = 19


class Prober(threading.Thread):
    """Sends one short request after the other, each on a new connection, and records when and how it ended."""

    def __init__(self, url: str, model: str) -> None:
        super().__init__(daemon=True)
        self._url, self._model, self._stop_asked = url, model, threading.Event()
        self.answers: list[tuple[float, str]] = []
        self.start()

    def run(self) -> None:
        body = {"model": self._model, "prompt": "hi", "max_tokens": 1}
        while not self._stop_asked.is_set():
            sent = time.monotonic()
            try:
                code = httpx.post(f"{self._url}/v1/completions", json=body, timeout=5).status_code
                self.answers.append((sent, str(code)))
            except httpx.HTTPError as error:
                self.answers.append((sent, repr(error)))

    def finish(self) -> list[tuple[float, str]]:
        self._stop_asked.set()
        self.join(10)
        return self.answers


def demo_pool(site: Site) -> tuple[Kubectl, str]:
    """kubectl in the demo's namespace, and the name of the pool that the demo left."""
    (pool,) = site.kubectl.list("ipool", "-A")
    return site.kubectl.in_namespace(pool["metadata"]["namespace"]), pool["metadata"]["name"]


def test_three_groups_of_eight_gpus_fill_the_nodes(site: Site) -> None:
    kubectl, _ = demo_pool(site)
    pods = kubectl.list("pods")
    gpus = [c["resources"]["limits"]["nvidia.com/gpu"] for pod in pods for c in pod["spec"]["containers"]]
    assert gpus == ["8", "8", "8"]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}


def test_killed_engine_is_replaced_from_the_warm_pool_and_no_request_is_lost_after_promotion(site: Site) -> None:
    kubectl, pool = demo_pool(site)
    wait_counts(kubectl, pool, active=2, standby=1)
    active = names(groups(kubectl, pool, Role.ACTIVE))
    victim = min(active)
    standby = names(groups(kubectl, pool, Role.STANDBY))
    successors = {f"{group}-0" for group in (active - {victim}) | standby}
    model = (kubectl.get("ipool", pool) or {})["spec"]["model"]["name"]
    prober = Prober(service_url(kubectl, pool), model)
    wait_until(lambda: len(prober.answers) > 5, timeout=20, what="answers before the kill")

    killed = time.monotonic()
    kill_pod_processes(f"{victim}-0")
    wait_until(
        lambda: standby <= names(groups(kubectl, pool, Role.ACTIVE)),
        timeout=PROMOTED_WITHIN_SECONDS * 3,
        what="promotion of the standby",
        describe=lambda: describe(kubectl, pool),
    )
    routed = wait_until(
        # By name: for a moment the dead pod may still be listed in the place of its successor.
        lambda: ready_endpoints(kubectl, pool) == successors and time.monotonic(),
        timeout=PROMOTED_WITHIN_SECONDS * 3,
        what=f"endpoints {sorted(successors)}",
        describe=lambda: describe(kubectl, pool),
    )
    wait_until(lambda: prober.answers[-1][0] > routed + 3, timeout=60, what="requests after the promotion")
    wait_counts(kubectl, pool, active=2, standby=1)
    answers = prober.finish()

    lost = [(sent - killed, code) for sent, code in answers if code != "200"]
    print(f"promoted and routed {routed - killed:.1f} s after the kill; lost before that: {lost}")
    assert routed - killed <= PROMOTED_WITHIN_SECONDS
    assert not [code for sent, code in answers if code != "200" and sent > routed]
    replaced = [event for event in kubectl.list("events") if event["reason"] == "Replaced"]
    assert any(victim in event["message"] and next(iter(standby)) in event["message"] for event in replaced)
    # It is gone, or kept for its logs where its successor found room without its GPUs.
    assert victim not in names(groups(kubectl, pool)) - names(groups(kubectl, pool, Role.QUARANTINED))


def ready_endpoints(kubectl: Kubectl, pool: str) -> set[str]:
    """Pods that the pool's EndpointSlices list as ready."""
    return {
        endpoint["targetRef"]["name"]
        for piece in kubectl.list("endpointslices", "-l", f"kubernetes.io/service-name={pool}")
        for endpoint in piece.get("endpoints") or ()
        if endpoint.get("conditions", {}).get("ready")
    }
