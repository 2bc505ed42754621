"""What ``kubectl get`` and ``kubectl explain`` show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from e2e.kit.kubectl import Kubectl

from support.refusals import manifest

CRDS = Path(__file__).resolve().parents[3] / "crds"
NOW = "2030-01-01T00:00:00Z"


def condition(type_: str, status: str = "True", reason: str = "GroupsServing") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": NOW}


POOL_STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "replicas": 2,
    "readyReplicas": 2,
    "standbyReplicas": 1,
    "selector": "headwater.dev/pool=p",
    "desired": {"active": 2, "standby": 1, "reason": "FixedReplicas"},
    "currentRevision": "6f9c01",
    "updateRevision": "6f9c01",
    "signals": {
        "kvCacheUtilizationPercent": 71,
        "ttftP90": "412ms",
        "interTokenLatencyP99": "31ms",
        "running": 214,
        "waiting": 3,
        "groupsReporting": 2,
        "groupsExpected": 2,
    },
    "summary": {"active": "2/2", "warm": "1/1", "kv": "71%", "ttft": "412ms"},
    "decisions": [{"at": NOW, "action": "ScaleUp", "from": 1, "to": 2, "reason": "FixedReplicas", "message": "m"}],
    "conditions": [condition("Ready"), condition("Stalled", "False", "NoProblem")],
}
GROUP_STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "phase": "Serving",
    "conditions": [condition("Healthy")],
    "nodes": ["gpu-node-7"],
    "coldStartSeconds": 184,
    "running": 71,
    "waiting": 1,
    "kvCacheUtilizationPercent": 68,
    "failure": {"reason": "EngineExited", "message": "exit code 1", "at": NOW},
}


def apply_status(kubectl: Kubectl, kind: str, name: str, status: dict[str, Any], manager: str = "headwater") -> None:
    """Server-side apply of a status, as the operator does it."""
    body = {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "status": status}
    kubectl.run(
        *("apply", "--server-side", "--subresource=status", f"--field-manager={manager}", "-f", "-"),
        stdin=json.dumps(body),
    )


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


def test_a_pool_shows_its_counts_signals_and_readiness(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {"replicas": 2}))
    apply_status(kubectl, "InferencePool", "p", POOL_STATUS)

    head, row = rows(kubectl.run("get", "ipool"))

    assert head == ["NAME", "ACTIVE", "WARM", "KV", "TTFT-P90", "READY", "AGE"]
    assert row[:-1] == ["p", "2/2", "1/1", "71%", "412ms", "True"]


def test_the_wide_view_adds_model_revision_and_reason(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {}))
    apply_status(kubectl, "InferencePool", "p", POOL_STATUS)

    head, row = rows(kubectl.run("get", "ipool", "-o", "wide"))

    got = dict(zip(head, row, strict=True))
    assert (got["MODEL"], got["REVISION"], got["REASON"]) == ("m", "6f9c01", "GroupsServing")


def test_a_group_shows_its_pool_role_phase_node_and_load(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("ReplicaGroup", "g", {}))
    apply_status(kubectl, "ReplicaGroup", "g", GROUP_STATUS)

    head, row = rows(kubectl.run("get", "rgroup"))

    assert head == ["NAME", "POOL", "ROLE", "PHASE", "NODE", "RUNNING", "KV", "AGE"]
    assert row[:-1] == ["g", "g", "active", "Serving", "gpu-node-7", "71", "68"]


def test_the_category_lists_both_kinds(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {}), manifest("ReplicaGroup", "g", {}))

    got = kubectl.run("get", "headwater", "-o", "name").split()

    assert got == ["inferencepool.headwater.dev/p", "replicagroup.headwater.dev/g"]


def test_a_whole_status_is_stored_as_it_is(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {}), manifest("ReplicaGroup", "g", {}))

    for kind, name, want in (("InferencePool", "p", POOL_STATUS), ("ReplicaGroup", "g", GROUP_STATUS)):
        apply_status(kubectl, kind, name, want)
        stored = kubectl.get(kind, name)
        assert stored is not None
        assert stored["status"] == want


def test_conditions_of_two_managers_stand_side_by_side(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {}))

    apply_status(kubectl, "InferencePool", "p", {"conditions": [condition("Ready")]})
    apply_status(kubectl, "InferencePool", "p", {"conditions": [condition("Audited")]}, manager="auditor")

    stored = kubectl.get("ipool", "p")
    assert stored is not None
    assert {c["type"] for c in stored["status"]["conditions"]} == {"Ready", "Audited"}


def test_waiting_for_a_condition_works(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("InferencePool", "p", {}))
    apply_status(kubectl, "InferencePool", "p", POOL_STATUS)

    assert "condition met" in kubectl.run("wait", "--for=condition=Ready", "ipool/p", "--timeout=30s")


@pytest.mark.parametrize(
    ("field", "want"),
    [
        ("ipool", ["InferencePool serves one model", "spec", "-required-", "status"]),
        ("ipool.spec", ["model", "warmPool", "Drains all groups and holds none."]),
        ("ipool.spec.slo", ["Targets of the service", "ttftP90", "<string>", "such as 600ms", "in percent"]),
        ("ipool.spec.warmPool", ["enum: Hot, Sleeping", "Standby groups to keep"]),
        ("ipool.spec.engine.extraArgs", ["map[string]string", "allow list"]),
        ("ipool.spec.rollout.maxSurge", ["FIELD: maxSurge <integer>", "beyond the desired number"]),
        ("ipool.status.signals", ["What the engines last reported", "groupsReporting"]),
        ("rgroup.spec", ["role", "enum: active, standby, draining, quarantined", "Cannot be changed"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_explain_explains(field: str, want: list[str], cluster: Kubectl) -> None:
    got = " ".join(cluster.run("explain", field, "--api-version=headwater.dev/v1alpha1").split())

    assert [text for text in want if text not in got] == []


def test_applying_the_definitions_again_changes_nothing(cluster: Kubectl) -> None:
    got = cluster.run(
        "apply", "--server-side", "--dry-run=server", "--field-manager=x", "--force-conflicts", "-f", str(CRDS)
    )
    diff = cluster.attempt("diff", "-f", str(CRDS))

    assert got.count("serverside-applied") == 2
    assert diff.returncode == 0, diff.stdout


@pytest.mark.parametrize("kind", ["inferencepools", "replicagroups"])
def test_the_server_finds_the_schema_structural_and_takes_every_name(kind: str, cluster: Kubectl) -> None:
    crd = cluster.get("crd", f"{kind}.headwater.dev")

    assert crd is not None
    got = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert got.pop("NonStructuralSchema", "False") == "False"
    assert got["NamesAccepted"] == "True"
    assert got["Established"] == "True"
