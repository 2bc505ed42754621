"""Valid pools are stored as written, with their defaults filled in by the API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.kit.kubectl import Kubectl

from headwater_operator.api.parsing import parse_group, parse_pool
from support.refusals import manifest, merged

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "every-field.yaml"
REVISION = "0123456789abcdef0123456789abcdef01234567"
VALID: dict[str, dict[str, Any]] = {
    "the least": {},
    "fixed replicas": {"replicas": 3},
    "no replicas": {"replicas": 0},
    "a simulated pool": {"engine": {"backend": "sim", "simulation": {"timeScale": "10"}}},
    "a simulated pool of defaults": {"engine": {"backend": "sim", "simulation": {}}},
    "on CPU": {"placement": {"acceleratorResource": ""}, "resources": {"cpu": 2, "memory": "4Gi"}},
    "weights on a volume": {
        "model": {"source": {"imagePath": None, "persistentVolumeClaim": {"claimName": "weights", "path": "a/b.c"}}}
    },
    "weights from the hub": {
        "model": {"source": {"imagePath": None, "huggingFace": {"repo": "gpt2", "revision": REVISION}}}
    },
    "a surge of none, one unavailable": {"rollout": {"maxSurge": 0, "maxUnavailable": 1}},
    "mixed units": {"drain": {"timeout": "1h30m"}, "slo": {"ttftP90": "1s500ms"}},
    "the shortest health limit": {"health": {"interval": "1s500ms", "failureThreshold": 2}},
    "a toleration of everything": {"placement": {"tolerations": [{"operator": "Exists"}]}},
    "allowed engine arguments": {"engine": {"extraArgs": {"max-num-seqs": "64", "dtype": "float32"}}},
    "one minimum for the range": {"autoscaling": {"minReplicas": 4, "maxReplicas": 4}},
}


@pytest.mark.parametrize("change", VALID.values(), ids=VALID.keys())
def test_a_valid_pool_is_stored_with_the_defaults_of_the_models(change: dict[str, Any], kubectl: Kubectl) -> None:
    wanted = manifest("InferencePool", "valid", change)
    kubectl.apply(wanted)

    stored = kubectl.get("ipool", "valid")
    assert stored is not None
    assert parse_pool(stored) == parse_pool(wanted)
    assert merged(stored["spec"], wanted["spec"]) == stored["spec"], "what was written must stay as it was"
    want_fields = set(parse_pool(wanted).to_object())
    assert set(stored["spec"]) == want_fields, "every default must be spelled out"


def test_the_example_with_every_field_is_stored_as_it_is(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", str(EXAMPLE))

    stored = kubectl.get("ipool", "llama-70b")
    assert stored is not None
    assert stored["spec"] == yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["spec"]


def test_the_example_is_accepted_with_replicas_instead_of_a_range(kubectl: Kubectl) -> None:
    pool = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    del pool["spec"]["autoscaling"]
    pool["spec"]["replicas"] = 3

    kubectl.apply(pool)

    stored = kubectl.get("ipool", "llama-70b")
    assert stored is not None
    assert stored["spec"] == pool["spec"]


def test_a_group_is_stored_with_the_defaults_of_the_models(kubectl: Kubectl) -> None:
    wanted = manifest("ReplicaGroup", "valid", {})
    kubectl.apply(wanted)

    stored = kubectl.get("rgroup", "valid")
    assert stored is not None
    assert stored["spec"] == parse_group(wanted).to_object()


def test_a_group_changes_its_role_and_nothing_else(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("ReplicaGroup", "valid", {}))

    kubectl.run("patch", "rgroup", "valid", "--type=merge", "-p", '{"spec": {"role": "draining"}}')
    done = kubectl.attempt(
        "patch", "rgroup", "valid", "--type=merge", "-p", '{"spec": {"template": {"tier": "Sleeping"}}}'
    )

    assert done.returncode != 0
    assert "spec.template" in done.stderr
    assert "the operator replaces a group, it never alters one" in done.stderr


def test_the_least_pool_of_40_characters_is_accepted(kubectl: Kubectl) -> None:
    name = "p" * 40
    kubectl.apply(manifest("InferencePool", name, {}))

    assert kubectl.get("ipool", name) is not None
