"""The built objects, whole and against golden files, and what a revision's hash depends on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater_contracts import engine_env
from headwater_contracts.admin import token_digest
from headwater_contracts.reasons import Reason, Role
from headwater_operator.api.group import ReplicaGroupSpec
from headwater_operator.api.parsing import InvalidSpec
from headwater_operator.api.placement import Resources
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.actions import CreateGroup, CreateRevision, SetRole
from headwater_operator.desired import (
    BuildSettings,
    PoolRef,
    build_group,
    build_group_role,
    build_pod,
    build_pod_role,
    build_revision,
    build_service,
    grace_period_seconds,
    resolve_template,
    revision_hash,
)
from support.operator_snapshots import REVISION, SETTINGS, draining, group, pod, pool_spec, vllm_spec
from support.pod_security import restricted_violations

POOL = PoolRef("serving", "pool", "uid-pool")
DIGEST = token_digest("secret")
GOLDEN = Path(__file__).parent / "golden"

HUB = {"repo": "meta-llama/Llama-3.3-70B-Instruct", "revision": "a" * 40, "tokenSecret": {"name": "hf", "key": "token"}}
SPECS: dict[str, InferencePoolSpec] = {
    "pod-sim-tp8": pool_spec(slo={"ttftP90": "600ms", "interTokenLatencyP99": "50ms"}),
    "pod-vllm-cpu-image": vllm_spec(
        model={"name": "smollm2", "source": {"imagePath": "/models/smollm2"}},
        engine={"tensorParallelSize": 1, "extraArgs": {"max-num-seqs": "8"}},
        placement={"acceleratorResource": ""},
        resources={"cpu": "1", "memory": "4Gi", "sharedMemory": "1Gi"},
    ),
    "pod-vllm-cuda-hub": vllm_spec(
        model={"name": "llama", "source": {"huggingFace": HUB}, "cache": {"persistentVolumeClaim": "downloads"}},
        placement={
            "acceleratorProduct": "NVIDIA-H100-80GB-HBM3",
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "priorityClassName": "serving",
        },
    ),
    "pod-vllm-cuda-volume": vllm_spec(
        model={"name": "llama", "source": {"persistentVolumeClaim": {"claimName": "weights", "path": "llama-70b"}}},
    ),
}


def built_pod(spec: InferencePoolSpec, role: Role = Role.STANDBY) -> dict[str, Any]:
    item = group("pool-abc123-x1y2z", role, template=resolve_template(spec, SETTINGS))
    return build_pod(item, 0, spec, POOL, BuildSettings(), DIGEST)


def environment(spec: InferencePoolSpec) -> dict[str, Any]:
    found = built_pod(spec)["spec"]["containers"][0]["env"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in found}


@pytest.mark.parametrize("name", SPECS)
def test_a_pod_is_built_as_its_golden_manifest_says(name: str) -> None:
    got = yaml.safe_dump(built_pod(SPECS[name]), sort_keys=False, width=110)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(got, encoding="utf-8")
    assert got == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_pod_keeps_the_restricted_standard_and_our_conventions(spec: InferencePoolSpec) -> None:
    whole = built_pod(spec)["spec"]
    assert restricted_violations(whole) == []
    assert (whole["restartPolicy"], whole["enableServiceLinks"], whole["automountServiceAccountToken"]) == (
        "Never",
        False,
        False,
    )
    container = whole["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "livenessProbe" not in container
    assert "cpu" not in container["resources"]["limits"]
    assert "memory" in container["resources"]["limits"]
    fields = Resources.model_fields
    assert "not limited" in str(fields["cpu"].description), "what is built is what the API says"
    assert "limited alike" in str(fields["memory"].description)
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in whole["volumes"]}


def test_every_variable_is_one_that_the_engine_knows_or_its_libraries_do() -> None:
    known = {value for name, value in vars(engine_env).items() if name.isupper() and value != engine_env.PREFIX}
    others = {"HOME", "HF_HOME", "HF_TOKEN", "HF_HUB_OFFLINE"}
    for spec in SPECS.values():
        found = environment(spec)
        assert found.keys() <= known | others
        assert all(isinstance(value, (str, dict)) for value in found.values())


def test_the_token_itself_is_in_no_pod_and_its_digest_is() -> None:
    whole = built_pod(SPECS["pod-sim-tp8"])
    assert environment(SPECS["pod-sim-tp8"])[engine_env.ADMIN_TOKEN_SHA256] == DIGEST
    assert "secret" not in json.dumps(whole)


def test_durations_and_flags_are_written_as_the_engine_reads_them() -> None:
    found = environment(SPECS["pod-sim-tp8"])
    want = {
        engine_env.SLO_TTFT_SECONDS: "0.6",
        engine_env.SLO_ITL_SECONDS: "0.05",
        engine_env.DRAIN_TIMEOUT_SECONDS: "300",
        engine_env.PREFIX_CACHING: "true",
        engine_env.EXTRA_ARGS: "{}",
        engine_env.SIM_TIME_SCALE: "1.0",
        engine_env.MODEL_PATH: "",
    }
    assert {name: found[name] for name in want} == want
    assert environment(SPECS["pod-vllm-cpu-image"])[engine_env.EXTRA_ARGS] == '{"max-num-seqs":"8"}'


def test_the_pod_has_the_whole_drain_and_a_margin_to_end_in() -> None:
    spec = pool_spec(drain={"timeout": "90s", "endpointSettle": "500ms"})
    assert grace_period_seconds(spec) == 91 + 15


def test_a_group_is_created_as_its_action_says_and_fits_the_api() -> None:
    template = resolve_template(pool_spec(), SETTINGS)
    action = CreateGroup("pool-abc123-x1y2z", Role.STANDBY, REVISION, template, Reason.WARM_POOL_REFILL, "")
    body = build_group(POOL, action)
    ReplicaGroupSpec.model_validate(body["spec"])
    assert body["metadata"]["ownerReferences"][0]["uid"] == "uid-pool"
    assert body["metadata"]["labels"] == {"headwater.dev/pool": "pool", "headwater.dev/revision": REVISION}


def test_a_role_change_applies_role_and_annotations_and_nothing_else() -> None:
    change = SetRole(
        "d",
        Role.ACTIVE,
        Reason.PROMOTED,
        "",
        {"headwater.dev/draining-since": None, "headwater.dev/role-reason": "Promoted"},
    )
    body = build_group_role("serving", draining("d"), change)
    assert body["spec"] == {"role": "active"}
    assert body["metadata"]["annotations"] == {"headwater.dev/role-reason": "Promoted"}
    assert body["metadata"]["uid"] == "uid-d"
    label = build_pod_role("serving", pod("d", Role.DRAINING), Role.ACTIVE)
    assert label["metadata"]["labels"] == {"headwater.dev/role": "active"}
    assert label["metadata"]["uid"] == "uid-d-0"
    assert "spec" not in label


def test_the_service_leads_to_active_leaders_alone() -> None:
    body = build_service(POOL)
    labels = built_pod(SPECS["pod-sim-tp8"], Role.ACTIVE)["metadata"]["labels"]
    assert body["spec"]["selector"].items() <= labels.items()
    assert not body["spec"]["selector"].items() <= built_pod(SPECS["pod-sim-tp8"])["metadata"]["labels"].items()
    assert (body["spec"]["ports"][0]["port"], body["metadata"]["name"]) == (80, "pool")


def test_a_revision_holds_the_resolved_template() -> None:
    template = resolve_template(pool_spec(), SETTINGS)
    body = build_revision(POOL, CreateRevision(REVISION, 3, template))
    assert (body["revision"], body["metadata"]["name"]) == (3, f"pool-{REVISION}")
    assert body["data"]["template"]["engine"]["image"] == "engine-sim:1"


def test_a_template_that_does_not_fit_the_api_builds_nothing() -> None:
    with pytest.raises(InvalidSpec, match=r"template\.engine"):
        build_pod(group("g", template={"engine": {"backend": "other"}}), 0, pool_spec(), POOL, BuildSettings(), DIGEST)


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        (pool_spec(), "engine-sim:1"),
        (vllm_spec(), "engine-cuda:1"),
        (vllm_spec(placement={"acceleratorResource": ""}), "engine-cpu:1"),
        (vllm_spec(engine={"image": "registry.example/engine-x:2"}), "registry.example/engine-x:2"),
    ],
)
def test_the_image_is_the_users_or_the_default_of_the_backend(spec: InferencePoolSpec, image: str) -> None:
    assert resolve_template(spec, SETTINGS)["engine"]["image"] == image


def test_hashes_of_stored_pools_never_change() -> None:
    """An operator upgrade that changes one of these replaces every group of every pool."""
    got = {"sim": revision_hash(pool_spec()), **{name: revision_hash(spec) for name, spec in SPECS.items()}}
    assert got == {
        "sim": "6d7edcab33",
        "pod-sim-tp8": "6d7edcab33",
        "pod-vllm-cpu-image": "73ca0c6621",
        "pod-vllm-cuda-hub": "e0e1006fca",
        "pod-vllm-cuda-volume": "e064aaf3d9",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"name": "m", "source": {"imagePath": "/models/other"}}},
        {"engine": {"backend": "sim", "maxModelLen": 4096}},
        {"engine": {"backend": "sim", "image": "registry.example/engine-x:2"}},
        {"engine": {"backend": "sim", "simulation": {"timeScale": "2.0"}}},
        {"placement": {"nodeSelector": {"zone": "a"}}},
        {"placement": {"acceleratorResource": ""}},
        {"resources": {"cpu": "8"}},
        {"warmPool": {"tier": "Sleeping"}},
    ],
)
def test_a_change_of_the_template_changes_the_hash(change: dict[str, Any]) -> None:
    assert revision_hash(pool_spec(**change)) != revision_hash(pool_spec())


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 9},
        {"warmPool": {"size": 4}},
        {"drain": {"timeout": "1s"}},
        {"slo": {"ttftP90": "1s"}},
        {"rollout": {"maxSurge": 3}},
        {"health": {"interval": "9s"}},
        {"suspend": True},
    ],
)
def test_a_change_of_anything_else_leaves_the_hash_alone(change: dict[str, Any]) -> None:
    assert revision_hash(pool_spec(**change)) == revision_hash(pool_spec())


def test_defaults_written_out_hash_like_defaults_left_out() -> None:
    spec = vllm_spec()
    assert revision_hash(InferencePoolSpec.model_validate(spec.to_object())) == revision_hash(spec)
