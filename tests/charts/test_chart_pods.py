"""The operator's Deployment: security, image, probes, settings, token file."""

from __future__ import annotations

from typing import Any

import pytest

from support import helm
from support.pod_security import restricted_violations

PLACEMENT = {
    "operator": {
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"x": []}},
        "priorityClassName": "platform",
        "podLabels": {"team": "platform", "app.kubernetes.io/name": "other"},
        "podAnnotations": {"note": "x"},
    }
}


def deployment(values: helm.Values | None = None, **options: Any) -> dict[str, Any]:
    return helm.only(helm.render(values, **options), "Deployment")


def pod(values: helm.Values | None = None, **options: Any) -> dict[str, Any]:
    spec: dict[str, Any] = deployment(values, **options)["spec"]["template"]["spec"]
    return spec


def container(values: helm.Values | None = None, **options: Any) -> dict[str, Any]:
    (only,) = pod(values, **options)["containers"]
    found: dict[str, Any] = only
    return found


@pytest.mark.parametrize("values", [{}, PLACEMENT, {"adminToken": {"existingSecret": "mine"}}])
def test_every_pod_template_meets_the_restricted_standard(values: helm.Values) -> None:
    specs = [
        manifest["spec"]["template"]["spec"]
        for manifest in helm.render(values)
        if "template" in manifest.get("spec", {})
    ]
    assert specs
    assert [found for spec in specs for found in restricted_violations(spec)] == []


def test_operator_cannot_write_to_its_image() -> None:
    got = container()
    assert got["securityContext"]["readOnlyRootFilesystem"] is True
    assert {mount["mountPath"] for mount in got["volumeMounts"] if not mount.get("readOnly")} == {"/tmp"}


def test_operator_runs_as_the_user_of_the_image_and_may_read_the_token() -> None:
    got = pod()["securityContext"]
    assert (got["runAsUser"], got["runAsGroup"], got["fsGroup"]) == (10001, 10001, 10001)


def test_one_operator_at_a_time() -> None:
    got = deployment()["spec"]
    assert got["replicas"] == 1
    assert got["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("image", "want"),
    [
        ({}, "ghcr.io/headwater/operator:0.1.0"),
        ({"tag": "dev"}, "ghcr.io/headwater/operator:dev"),
        ({"registry": "localhost", "repository": "headwater-operator"}, "localhost/headwater-operator:0.1.0"),
        ({"tag": "dev", "digest": f"sha256:{'a' * 64}"}, f"ghcr.io/headwater/operator@sha256:{'a' * 64}"),
    ],
)
def test_image_is_the_appversion_unless_a_tag_or_digest_is_given(image: dict[str, str], want: str) -> None:
    assert container({"image": image})["image"] == want


def test_a_busy_node_does_not_restart_the_operator() -> None:
    """A probe that times out after one second restarts pods when all cores are busy."""
    got = container()
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert got[kind]["timeoutSeconds"] >= 10
    live = got["livenessProbe"]
    assert live["periodSeconds"] * live["failureThreshold"] >= 60
    start = got["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 120


def test_probes_and_metrics_use_the_ports_that_are_open() -> None:
    got = container()
    ports = {port["name"]: port["containerPort"] for port in got["ports"]}
    assert ports == {"metrics": 8080, "probe": 8081}
    assert got["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probe"}
    assert got["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    service = helm.only(helm.render(), "Service")["spec"]
    assert service["ports"] == [{"name": "metrics", "port": 8080, "targetPort": "metrics"}]
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()


def test_placement_reaches_the_pod() -> None:
    got, want = pod(PLACEMENT), PLACEMENT["operator"]
    for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert got[field] == want[field]


def test_given_labels_never_break_the_selector() -> None:
    got = deployment(PLACEMENT)["spec"]
    labels = got["template"]["metadata"]["labels"]
    assert got["selector"]["matchLabels"].items() <= labels.items()
    assert labels["team"] == "platform"


def test_values_for_a_local_cluster_name_the_images_that_are_built_here() -> None:
    got = container(files=[helm.LOCAL_VALUES])
    assert got["image"] == "localhost/headwater-operator:dev"
    env = {entry["name"]: entry.get("value") for entry in got["env"]}
    assert env["HEADWATER_OPERATOR_DEFAULT_IMAGE_SIM"] == "localhost/headwater-engine-sim:dev"
    assert env["HEADWATER_OPERATOR_DEFAULT_IMAGE_VLLM_CPU"] == "localhost/headwater-engine-cpu:dev"
    assert env["HEADWATER_OPERATOR_ALLOW_SIM"] == "true"


def test_token_is_a_file_and_never_an_environment_variable() -> None:
    spec = pod()
    (source,) = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    assert source["secretName"] == helm.only(helm.render(), "Secret")["metadata"]["name"]
    assert source["defaultMode"] & 0o007 == 0
    env = {entry["name"]: entry for entry in spec["containers"][0]["env"]}
    assert env["HEADWATER_OPERATOR_ADMIN_TOKEN_FILE"]["value"] == "/etc/headwater/admin-token/token"
    assert not any("secretKeyRef" in str(entry) for entry in env.values())


def test_a_secret_of_ones_own_replaces_the_generated_one() -> None:
    got = helm.render({"adminToken": {"existingSecret": "mine", "key": "master"}})
    assert helm.of_kind(got, "Secret") == []
    volumes = helm.only(got, "Deployment")["spec"]["template"]["spec"]["volumes"]
    (source,) = [volume["secret"] for volume in volumes if "secret" in volume]
    assert source["secretName"] == "mine"
    assert source["items"] == [{"key": "master", "path": "token"}]
