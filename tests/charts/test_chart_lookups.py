"""What the chart finds in the cluster decides: the kept token, CRDs of another owner, a second operator."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support import helm
from support.lookup_api import api_with

ALL_NAMESPACES_ROLE = "headwater-operator"


def owned_by(release: str, namespace: str) -> dict[str, Any]:
    return {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace},
    }


def token_secret(**data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": "hw-headwater-admin-token", "namespace": helm.NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def crd(owner: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "inferencepools.headwater.dev", **owner}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}


def cluster_role(owner: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": ALL_NAMESPACES_ROLE, **owner}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": []}


def rendered_token(api: str | None = None) -> str:
    data = helm.only(helm.render(api=api, fresh=True), "Secret")["data"]
    return base64.b64decode(data["token"]).decode()


def test_a_first_install_makes_a_long_random_token() -> None:
    one, two = rendered_token(), rendered_token()
    assert len(one) == len(two) == 64
    assert one != two


def test_an_upgrade_keeps_the_token_that_is_there() -> None:
    with api_with([token_secret(token="kept-from-before")]) as api:
        assert rendered_token(api) == "kept-from-before"


def test_a_secret_without_the_key_gets_a_new_token() -> None:
    with api_with([token_secret(other="x")]) as api:
        assert len(rendered_token(api)) == 64


def test_crds_of_another_release_are_refused_with_both_ways_out() -> None:
    with api_with([crd(owned_by("first", "platform"))]) as api, pytest.raises(helm.HelmError) as refused:
        helm.render(api=api)
    got = str(refused.value)
    assert "inferencepools.headwater.dev exists already and belongs to platform/first, not to hw-system/hw" in got
    assert "--set crds.install=false" in got
    assert "--set crds.takeOwnership=true --take-ownership" in got


def test_crds_applied_by_hand_are_refused_too() -> None:
    with api_with([crd({})]) as api, pytest.raises(helm.HelmError, match="belongs to no Helm release"):
        helm.render(api=api)


@pytest.mark.parametrize(
    ("values", "owner", "want"),
    [
        pytest.param({"crds": {"install": False}}, owned_by("first", "platform"), 0, id="left-to-their-owner"),
        pytest.param({"crds": {"takeOwnership": True}}, owned_by("first", "platform"), 2, id="taken-over"),
        pytest.param({}, owned_by("hw", helm.NAMESPACE), 2, id="kept-by-an-uninstall-of-this-release"),
    ],
)
def test_existing_crds_are_left_taken_over_or_upgraded(values: helm.Values, owner: dict[str, Any], want: int) -> None:
    with api_with([crd(owner)]) as api:
        got = helm.of_kind(helm.render(values, api=api), "CustomResourceDefinition")
    assert len(got) == want


def test_a_second_operator_for_all_namespaces_is_refused() -> None:
    with api_with([cluster_role(owned_by("first", "platform"))]) as api, pytest.raises(helm.HelmError) as refused:
        helm.render({"crds": {"install": False}}, api=api)
    got = str(refused.value)
    assert "belongs to platform/first: that release watches all namespaces" in got
    assert "watchNamespaces" in got


def test_an_upgrade_of_the_operator_for_all_namespaces_passes() -> None:
    with api_with([cluster_role(owned_by("hw", helm.NAMESPACE))]) as api:
        assert helm.of_kind(helm.render(api=api), "ClusterRole")


def test_an_operator_for_given_namespaces_may_stand_beside_one_for_all() -> None:
    with api_with([cluster_role(owned_by("first", "platform"))]) as api:
        assert helm.render({"watchNamespaces": ["team-a"], "crds": {"install": False}}, api=api)
