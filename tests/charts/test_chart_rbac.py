"""The operator has exactly the rights it uses, and people get theirs through the cluster's own roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from support import helm

Rule = tuple[str, str, str]

# Group, resource, verb: all that the operator calls. A verb too many is a hole, one too few a crash.
IN_POOL_NAMESPACES = {
    *{("headwater.dev", "inferencepools", verb) for verb in ("get", "list", "watch")},
    ("headwater.dev", "inferencepools/status", "patch"),
    *{("headwater.dev", "replicagroups", v) for v in ("get", "list", "watch", "create", "patch", "delete")},
    ("headwater.dev", "replicagroups/status", "patch"),
    *{("", "pods", verb) for verb in ("get", "list", "watch", "create", "patch")},
    *{("", "services", verb) for verb in ("get", "list", "watch", "create", "patch")},
    *{("apps", "controllerrevisions", verb) for verb in ("get", "list", "watch", "create", "patch", "delete")},
    *{("discovery.k8s.io", "endpointslices", verb) for verb in ("list", "watch")},
    *{("", "events", verb) for verb in ("create", "patch")},
}
ON_NODES = {("", "nodes", "list"), ("", "nodes", "watch")}
ON_THE_LEASE = {("coordination.k8s.io", "leases", verb) for verb in ("get", "create", "update")}


def rules(roles: Iterable[helm.Manifest]) -> Iterator[Rule]:
    for role in roles:
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield group, resource, verb


def bound_to_operator(manifests: list[helm.Manifest]) -> dict[tuple[str, str], helm.Manifest]:
    """Roles that a binding gives to the operator's service account, by kind and namespace."""
    account = helm.only(manifests, "ServiceAccount")["metadata"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    roles = {
        (role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]): role
        for role in manifests
        if role["kind"] in {"Role", "ClusterRole"}
    }
    found = {}
    for binding in [*helm.of_kind(manifests, "RoleBinding"), *helm.of_kind(manifests, "ClusterRoleBinding")]:
        assert binding["subjects"] == [subject]
        namespace = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        found[namespace, reference["name"]] = roles[reference["kind"], namespace, reference["name"]]
    return found


def test_operator_for_all_namespaces_has_exactly_these_rights() -> None:
    got = bound_to_operator(helm.render())
    cluster = [role for (namespace, _), role in got.items() if not namespace]
    assert sorted(rules(cluster)) == sorted(IN_POOL_NAMESPACES | ON_NODES)
    own = [role for (namespace, _), role in got.items() if namespace == helm.NAMESPACE]
    assert sorted(rules(own)) == sorted(ON_THE_LEASE)
    assert len(got) == len(cluster) + len(own)


def test_operator_for_two_namespaces_has_the_same_rights_there_and_none_elsewhere() -> None:
    manifests = helm.render({"watchNamespaces": ["team-a", "team-b"]})
    got = bound_to_operator(manifests)
    assert {namespace for namespace, _ in got} == {"team-a", "team-b", helm.NAMESPACE}
    for namespace in ("team-a", "team-b"):
        there = [role for (where, _), role in got.items() if where == namespace]
        assert sorted(rules(there)) == sorted(IN_POOL_NAMESPACES)


def test_operator_for_given_namespaces_needs_no_cluster_role() -> None:
    manifests = helm.render({"watchNamespaces": ["team-a"]})
    assert helm.of_kind(manifests, "ClusterRole") == []
    assert helm.of_kind(manifests, "ClusterRoleBinding") == []


def test_operator_for_given_namespaces_may_read_nodes_if_asked() -> None:
    manifests = helm.render({"watchNamespaces": ["team-a"], "rbac": {"readNodes": True}})
    assert set(rules(helm.of_kind(manifests, "ClusterRole"))) == ON_NODES


@pytest.mark.parametrize(
    "values", [{}, {"watchNamespaces": ["team-a"], "rbac": {"readNodes": True, "userRoles": True}}]
)
def test_no_role_has_a_wildcard_secrets_or_a_way_to_more_rights(values: helm.Values) -> None:
    manifests = helm.render(values)
    got = set(rules([*helm.of_kind(manifests, "Role"), *helm.of_kind(manifests, "ClusterRole")]))
    assert got
    for group, resource, verb in got:
        assert "*" not in group + resource + verb
        assert resource not in {"secrets", "serviceaccounts/token", "pods/exec", "pods/ephemeralcontainers"}
        assert verb not in {"escalate", "bind", "impersonate"}
        assert group != "rbac.authorization.k8s.io"


def test_lease_rights_are_for_the_one_lease_that_the_operator_takes() -> None:
    manifests = helm.render()
    env = helm.only(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
    (want,) = [entry["value"] for entry in env if entry["name"] == "HEADWATER_OPERATOR_LEASE_NAME"]
    assert helm.only(manifests, "Lease")["metadata"]["name"] == want, "made by the chart, so that it goes with it"
    role = helm.only(manifests, "Role")
    for rule in role["rules"]:
        assert rule["verbs"] == ["create"] or rule["resourceNames"] == [want]


def test_people_get_their_rights_through_view_edit_and_admin() -> None:
    roles = [role for role in helm.of_kind(helm.render(), "ClusterRole") if "view" in str(role["metadata"]["labels"])]
    assert {verb for _, _, verb in rules(roles)} == {"get", "list", "watch"}
    labels = [set(role["metadata"]["labels"]) for role in helm.of_kind(helm.render(), "ClusterRole")]
    for target in ("view", "edit", "admin"):
        assert sum(f"rbac.authorization.k8s.io/aggregate-to-{target}" in found for found in labels) == 1


def test_people_may_not_write_what_the_operator_writes() -> None:
    roles = [role for role in helm.of_kind(helm.render(), "ClusterRole") if "user-roles" in str(role)]
    writes = {(resource, verb) for _, resource, verb in rules(roles) if verb not in {"get", "list", "watch"}}
    assert {verb for resource, verb in writes if resource == "replicagroups"} == {"delete", "deletecollection"}
    assert not any("/status" in resource for resource, _ in writes)


def test_rights_can_be_left_to_the_cluster_admin() -> None:
    manifests = helm.render({"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "given"}})
    kinds = {manifest["kind"] for manifest in manifests}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"}
    assert helm.only(manifests, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "given"
