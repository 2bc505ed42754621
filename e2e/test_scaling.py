"""``kubectl scale`` is followed, and a stream on a group that goes is finished first."""

from __future__ import annotations

from typing import Any

from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import describe, groups, names, service_url, sim_pool, wait_counts, wait_ready
from e2e.kit.streams import Stream, wait_all
from e2e.kit.wait import wait_until
from headwater_contracts.reasons import Role

STREAMS = 9
LONG: dict[str, Any] = {
    "model": "sim",
    "max_tokens": 400,
    "ignore_eos": True,
    "messages": [{"role": "user", "content": "go on"}],
}


def slow_pool(name: str) -> dict[str, Any]:
    """A pool whose streams last long enough to be met by a scale-down."""
    engine = {
        "backend": "sim",
        "tensorParallelSize": 1,
        "simulation": {"profile": "h100-llama70b-tp8", "timeScale": "1.0"},
    }
    return sim_pool(name, engine=engine)


def test_scale_up_and_down_is_followed_and_streams_on_the_victims_finish(kubectl: Kubectl) -> None:
    kubectl.apply(slow_pool("x"))
    wait_ready(kubectl, "x")
    kubectl.run("scale", "ipool/x", "--replicas=3")
    wait_counts(kubectl, "x", active=3, standby=0)
    before = names(groups(kubectl, "x"))

    url = service_url(kubectl, "x")
    streams = [Stream(url, LONG) for _ in range(STREAMS)]
    wait_until(lambda: all(s.record.first.is_set() for s in streams), timeout=60, what="a first token of each stream")
    assert len({s.record.group for s in streams}) > 1, "the streams are spread over the groups"
    kubectl.run("scale", "ipool/x", "--replicas=1")
    wait_until(
        lambda: len(groups(kubectl, "x", Role.DRAINING)) == 2,
        timeout=60,
        what="two draining groups",
        describe=lambda: describe(kubectl, "x"),
    )
    assert any(not s.record.done.is_set() for s in streams), "the scale-down met running streams"
    records = wait_all(streams, timeout=120)
    wait_counts(kubectl, "x", active=1, standby=0)

    assert [record.error for record in records] == [None] * STREAMS
    assert {record.finish for record in records} == {"length"}
    assert names(groups(kubectl, "x")) < before
