"""``kubectl scale`` and an HPA work on a pool by /scale; on an autoscaling pool they are told why not."""

from __future__ import annotations

import json
from typing import Any

from e2e.kit.kubectl import Kubectl

from support.refusals import manifest

SELECTOR = "headwater.dev/pool=p,headwater.dev/role=active,headwater.dev/rank=0"


def scale_of(kubectl: Kubectl, pool: str) -> dict[str, Any]:
    path = f"/apis/headwater.dev/v1alpha1/namespaces/{kubectl.namespace}/inferencepools/{pool}/scale"
    scale: dict[str, Any] = json.loads(kubectl.run("get", "--raw", path))
    return scale


def test_scale_sets_replicas_and_reads_count_and_selector_from_status(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {"replicas": 1}))
    status = {"status": {"replicas": 1, "selector": SELECTOR}}
    kubectl.run("patch", "ipool", "p", "--subresource=status", "--type=merge", "-p", json.dumps(status))

    kubectl.run("scale", "ipool/p", "--replicas=3")

    got = scale_of(kubectl, "p")
    assert got["spec"] == {"replicas": 3}
    assert got["status"] == {"replicas": 1, "selector": SELECTOR}


def test_scale_sets_a_number_where_there_was_none(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {}))

    kubectl.run("scale", "ipool/p", "--replicas=2")

    assert scale_of(kubectl, "p")["spec"] == {"replicas": 2}


def test_scale_of_an_autoscaling_pool_is_refused_with_the_remedy(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {"autoscaling": {"maxReplicas": 4}}))

    done = kubectl.attempt("scale", "ipool/p", "--replicas=3")

    assert done.returncode != 0
    assert "spec.replicas" in done.stderr
    assert (
        "replicas and autoscaling exclude each other: remove replicas and set autoscaling.minReplicas and maxReplicas, "
        "or remove autoscaling for a fixed number"
    ) in done.stderr
    stored = kubectl.get("ipool", "p")
    assert stored is not None
    assert "replicas" not in stored["spec"]


def test_scale_to_a_negative_number_is_refused(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {"replicas": 1}))

    done = kubectl.attempt(
        "patch", "ipool", "p", "--subresource=scale", "--type=merge", "-p", '{"spec": {"replicas": -1}}'
    )

    assert done.returncode != 0
    assert "spec.replicas" in done.stderr
