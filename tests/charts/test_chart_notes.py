"""What helm prints after an install leads to a first answer."""

from __future__ import annotations

import textwrap

import yaml

from headwater_operator.api.parsing import parse_pool
from support import helm
from support.lookup_api import api_with


def notes(values: helm.Values | None = None) -> str:
    arguments = ("install", helm.RELEASE, str(helm.CHART), "--namespace", helm.NAMESPACE)
    with api_with() as api:
        text = helm.run(*arguments, "--dry-run=server", "--disable-openapi-validation", values=values or {}, api=api)
    return str(text.partition("\nNOTES:\n")[2])


def test_notes_name_the_operator_that_was_installed() -> None:
    got = notes()
    assert "kubectl -n hw-system rollout status deployment/hw-headwater-operator" in got
    assert "pools of all namespaces" in got


def test_notes_lead_to_a_namespace_that_is_watched() -> None:
    got = notes({"watchNamespaces": ["team-a"]})
    assert "kubectl -n team-a get ipool,rgroup" in got
    assert "pod-security.kubernetes.io/enforce=restricted" in got
    assert "-n default" not in got


def test_notes_warn_that_crds_are_missing_if_they_are_left_to_others() -> None:
    assert "WARNING: this cluster does not have them yet" in notes({"crds": {"install": False}})
    assert "WARNING" not in notes()


def test_notes_say_that_pools_outlive_the_release() -> None:
    assert "keeps the CRDs, and so the pools and their pods" in notes()


def test_notes_speak_of_the_generated_token_only_if_there_is_one() -> None:
    assert "hw-headwater-admin-token" in notes()
    assert "admin token" not in notes({"adminToken": {"existingSecret": "mine"}})


def test_pool_in_the_notes_is_one_that_the_operator_accepts() -> None:
    heredoc = notes().partition("<<EOF\n")[2].partition("     EOF\n")[0]
    pool = yaml.safe_load(textwrap.dedent(heredoc))
    assert (pool["apiVersion"], pool["kind"]) == ("headwater.dev/v1alpha1", "InferencePool")
    assert parse_pool(pool).replicas == 1
