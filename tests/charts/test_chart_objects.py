"""What holds for all rendered objects, and the optional network policies."""

from __future__ import annotations

import pytest

from support import helm

EVERYTHING = {
    "watchNamespaces": ["team-a", "team-b"],
    "rbac": {"readNodes": True, "userRoles": True},
    "networkPolicy": {"enabled": True},
}
CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_every_object_carries_the_recommended_labels(values: helm.Values) -> None:
    for manifest in helm.render(values):
        labels = manifest["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["app.kubernetes.io/instance"] == helm.RELEASE
        assert labels["app.kubernetes.io/version"] == "0.1.0"
        assert labels["helm.sh/chart"] == "headwater-0.1.0"


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_uninstall_leaves_nothing_but_the_crds(values: helm.Values) -> None:
    """Helm deletes what it made unless it is told to keep it, or made it in a hook."""
    for manifest in helm.render(values):
        annotations = manifest["metadata"].get("annotations", {})
        kept = annotations.get("helm.sh/resource-policy") == "keep"
        assert kept == (manifest["kind"] == "CustomResourceDefinition")
        assert "helm.sh/hook" not in annotations


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_every_namespaced_object_says_where_it_lives(values: helm.Values) -> None:
    for manifest in helm.render(values):
        assert ("namespace" in manifest["metadata"]) == (manifest["kind"] not in CLUSTER_SCOPED)


def test_two_releases_for_namespaces_of_their_own_share_no_object() -> None:
    def names(release: str, watched: str) -> set[tuple[str, str, str]]:
        values = {**EVERYTHING, "watchNamespaces": [watched], "crds": {"install": False}}
        return {
            (found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"])
            for found in helm.render(values, release=release)
        }

    assert names("one", "team-a") & names("two", "team-b") == set()


def test_a_long_release_name_still_gives_valid_names() -> None:
    for manifest in helm.render(EVERYTHING, release="a" * 53):
        limit = 63 if manifest["kind"] in {"Service", "Deployment"} else 253
        assert len(manifest["metadata"]["name"]) <= limit


def test_only_the_operator_and_scrapers_reach_an_admin_port() -> None:
    scraper = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    manifests = helm.render({"networkPolicy": {"enabled": True, "namespaces": ["serving"], "scrapeFrom": [scraper]}})
    (policy,) = [p for p in helm.of_kind(manifests, "NetworkPolicy") if p["metadata"]["namespace"] == "serving"]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    by_port = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["spec"]["ingress"]}
    assert by_port.keys() == {8000, 8001}
    assert by_port[8000] is None
    operator, other = by_port[8001]
    assert other == scraper
    assert operator["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": helm.NAMESPACE}
    labels = helm.only(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert operator["podSelector"]["matchLabels"].items() <= labels.items()


def test_without_scrapers_nothing_reaches_the_operator() -> None:
    manifests = helm.render({"networkPolicy": {"enabled": True, "namespaces": ["serving"]}})
    (policy,) = [p for p in helm.of_kind(manifests, "NetworkPolicy") if p["metadata"]["namespace"] == helm.NAMESPACE]
    assert policy["spec"]["ingress"] == []
    assert policy["spec"]["policyTypes"] == ["Ingress"]


def test_network_policies_without_namespaces_are_refused_with_the_remedy() -> None:
    with pytest.raises(helm.HelmError, match=r"set networkPolicy\.namespaces \(or watchNamespaces\)"):
        helm.render({"networkPolicy": {"enabled": True}})
