"""Kubernetes objects as observations: what is missing is unknown, and never zero."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_contracts.reasons import Role
from headwater_operator.adapters.cache import Cache
from headwater_operator.adapters.trim import trim_endpoint_slice, trim_node, trim_pod, trim_service
from headwater_operator.reconcile.gather import NodeMemo
from headwater_operator.reconcile.observe import covers, observe_group, observe_node, observe_pod, ready_pods
from headwater_operator.reconcile.ownership import Ownership, ownership


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    labels = {"headwater.dev/rank": "0", "headwater.dev/role": "standby"}
    return {
        "metadata": {
            "name": "g-0",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "managedFields": ["much"],
        }
        | metadata,
        "spec": {"nodeName": "node-1", "containers": ["much"]},
        "status": status or {},
    }


def container(**state: Any) -> dict[str, Any]:
    other = {"name": "sidecar", "state": {"terminated": {"exitCode": 7}}}
    return {"containerStatuses": [other, {"name": "engine", "state": state}]}


def test_a_pod_without_status_is_pending_not_ready_and_otherwise_unknown() -> None:
    got = observe_pod(pod())
    assert (got.phase, got.ready, got.scheduled, got.ip, got.exit_code, got.started_at) == (
        "Pending",
        False,
        None,
        None,
        None,
        None,
    )


def test_the_schedulers_own_words_are_kept_for_an_unschedulable_pod_only() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert observe_pod(pod({"conditions": [condition]})).unschedulable_message == "0/3 nodes"
    gated = condition | {"reason": "SchedulingGated"}
    assert observe_pod(pod({"conditions": [gated]})).unschedulable_message is None
    assert observe_pod(pod({"conditions": [gated]})).scheduled is False


def test_the_engine_container_counts_and_no_sidecar() -> None:
    got = observe_pod(pod(container(running={"startedAt": "2026-01-01T00:00:05Z"})))
    assert got.exit_code is None
    assert got.started_at is not None


def test_the_end_of_an_engine_is_told_with_code_reason_and_last_words() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "last words", "startedAt": "2026-01-01T00:00:05Z"}
    got = observe_pod(pod(container(terminated=ended) | {"phase": "Failed"}))
    assert (got.phase, got.exit_code, got.exit_reason, got.exit_message) == ("Failed", 137, "OOMKilled", "last words")
    assert got.started_at is not None


def test_why_a_container_waits_is_kept() -> None:
    got = observe_pod(pod(container(waiting={"reason": "ErrImagePull", "message": "no such image"})))
    assert (got.waiting_reason, got.waiting_message) == ("ErrImagePull", "no such image")


def test_an_eviction_is_told_by_the_pods_own_reason() -> None:
    got = observe_pod(pod({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}))
    assert (got.pod_reason, got.pod_message, got.exit_message) == ("Evicted", "low on memory", None)


def test_trimming_loses_nothing_that_is_observed() -> None:
    whole = pod(container(running={"startedAt": "2026-01-01T00:00:05Z"}) | {"phase": "Running", "podIP": "10.0.0.1"})
    assert observe_pod(trim_pod(whole)) == observe_pod(whole)
    assert "managedFields" not in trim_pod(whole)["metadata"]
    assert "containers" not in trim_pod(whole)["spec"]


def test_pods_of_a_group_come_in_order_of_rank() -> None:
    group = {
        "metadata": {"name": "g", "uid": "gu", "generation": 3},
        "spec": {"role": "active", "revision": "r", "template": {"engine": {}}},
    }
    second = pod() | {"metadata": pod()["metadata"] | {"name": "g-1", "labels": {"headwater.dev/rank": "1"}}}
    got = observe_group(group, [second, pod()], None)
    assert [each.rank for each in got.pods] == [0, 1]
    assert (got.role, got.generation, got.engine) == (Role.ACTIVE, 3, None)


@pytest.mark.parametrize(("status", "want"), [("True", True), ("False", False), ("Unknown", False), (None, None)])
def test_a_nodes_readiness_is_unknown_if_it_never_reported_any(status: str | None, want: bool | None) -> None:
    conditions = [] if status is None else [{"type": "Ready", "status": status, "lastHeartbeatTime": "now"}]
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1"}
    node = {"metadata": metadata, "spec": {}, "status": {"conditions": conditions, "images": ["much"]}}
    assert observe_node(trim_node(node)).ready is want


def test_a_nodes_heartbeat_alone_changes_nothing_that_is_kept() -> None:
    def node(beat: str) -> dict[str, Any]:
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": beat}
        return trim_node(
            {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}, "status": {"conditions": [ready]}}
        )

    assert node("one") == node("two")


def test_nodes_are_observed_again_when_one_changed_came_or_went() -> None:
    def node(name: str, ready: str, version: int) -> dict[str, Any]:
        metadata = {"name": name, "uid": name, "resourceVersion": str(version)}
        return {"kind": "Node", "metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": ready}]}}

    cache, memo = Cache(lambda _key: None), NodeMemo()
    assert memo.observed(cache) == ()
    cache.observe(node("a", "True", 1))
    first = memo.observed(cache)
    assert [each.ready for each in first] == [True]
    assert memo.observed(cache) is first
    cache.observe(node("a", "False", 2))
    assert [each.ready for each in memo.observed(cache)] == [False]
    cache.observe(node("b", "True", 3))
    assert len(memo.observed(cache)) == 2
    cache.forget("Node", "a")
    assert [each.name for each in memo.observed(cache)] == ["b"]


def test_only_endpoints_that_get_traffic_are_ready() -> None:
    endpoints = [
        {"targetRef": {"kind": "Pod", "name": "yes"}, "conditions": {"ready": True}},
        {"targetRef": {"kind": "Pod", "name": "no"}, "conditions": {"ready": False}},
        {"targetRef": {"kind": "Pod", "name": "unknown"}, "conditions": {}},
        {"conditions": {"ready": True}},
    ]
    item = {"metadata": {"name": "s", "uid": "u", "resourceVersion": "1"}, "endpoints": endpoints}
    assert ready_pods([trim_endpoint_slice(item)]) == {"yes", "unknown"}
    assert ready_pods([trim_endpoint_slice(item | {"endpoints": None})]) == frozenset()


@pytest.mark.parametrize(
    ("actual", "want"),
    [
        ({"a": {"b": 1, "more": 2}, "l": [{"p": 1, "x": 3}]}, True),
        ({"a": {"b": 2}, "l": [{"p": 1}]}, False),
        ({"a": {}, "l": [{"p": 1}]}, False),
        ({"a": {"b": 1}, "l": [{"p": 1}, {"p": 2}]}, False),
        ({"a": {"b": 1}, "l": []}, False),
    ],
)
def test_an_object_covers_what_is_desired_if_all_of_it_is_there_alike(actual: dict[str, Any], want: bool) -> None:
    assert covers(actual, {"a": {"b": 1}, "l": [{"p": 1}]}) is want


def owned(**reference: Any) -> dict[str, Any]:
    references = [{"controller": True, "kind": "InferencePool", "name": "p", "uid": "u1"} | reference]
    return {"metadata": {"name": "p", "ownerReferences": references}}


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (None, Ownership.ABSENT),
        (owned(), Ownership.OURS),
        (owned(uid="earlier"), Ownership.LEFTOVER),
        (owned(uid="x", name="other"), Ownership.FOREIGN),
        (owned(uid="x", kind="Deployment"), Ownership.FOREIGN),
        (owned(controller=False), Ownership.FOREIGN),
        ({"metadata": {"name": "p"}}, Ownership.FOREIGN),
    ],
)
def test_ownership_goes_by_the_controller_reference(item: dict[str, Any] | None, want: Ownership) -> None:
    assert ownership(item, "p", "u1") is want


def test_of_a_service_without_our_label_only_what_shows_its_name_and_owner_is_kept() -> None:
    metadata = {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "1", "labels": {"app": "x"}}
    got = trim_service({"metadata": metadata, "spec": {"much": 1}})
    assert got["metadata"] == {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    assert "spec" not in got
