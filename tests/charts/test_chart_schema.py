"""values.schema.json refuses what the chart doesn't know, by name, before anything reaches a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from support import helm

SCHEMA = json.loads((helm.CHART / "values.schema.json").read_text())

REFUSED = [
    pytest.param({"replicas": 3}, "additional properties 'replicas' not allowed", id="unknown-at-root"),
    pytest.param({"image": {"tga": "x"}}, "additional properties 'tga' not allowed", id="typo-in-a-section"),
    pytest.param({"watchNamespace": "a"}, "additional properties 'watchNamespace' not allowed", id="singular"),
    pytest.param({"watchNamespaces": "a"}, "/watchNamespaces", id="text-for-a-list"),
    pytest.param({"watchNamespaces": ["Team_A"]}, "/watchNamespaces/0", id="not-a-namespace"),
    pytest.param({"watchNamespaces": ["a", "a"]}, "/watchNamespaces", id="twice-the-same-namespace"),
    pytest.param({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy", id="unknown-pull-policy"),
    pytest.param({"image": {"digest": "abc"}}, "/image/digest", id="digest-without-algorithm"),
    pytest.param({"image": {"tag": "a b"}}, "/image/tag", id="tag-with-a-space"),
    pytest.param({"engine": {"allowSim": "yes"}}, "/engine/allowSim", id="text-for-a-boolean"),
    pytest.param({"engine": {"allowedImages": ["a,b"]}}, "/engine/allowedImages/0", id="comma-joins-list-items"),
    pytest.param({"engine": {"allowedImages": ["*"]}}, "/engine/allowedImages/0", id="pattern-for-any-image"),
    pytest.param(
        {"engine": {"allowedEngineArgs": ["--dtype"]}}, "/engine/allowedEngineArgs/0", id="argument-with-dashes"
    ),
    pytest.param({"engine": {"images": {"gpu": "x"}}}, "additional properties 'gpu'", id="unknown-engine-image"),
    pytest.param({"operator": {"probeIntervalSeconds": -1}}, "/operator/probeIntervalSeconds", id="negative"),
    pytest.param({"operator": {"probeIntervalSeconds": "2s"}}, "/operator/probeIntervalSeconds", id="with-unit"),
    pytest.param({"operator": {"logLevel": "TRACE"}}, "/operator/logLevel", id="unknown-log-level"),
    pytest.param({"operator": {"resources": {"limit": {}}}}, "additional properties 'limit'", id="limit-not-limits"),
    pytest.param({"operator": {"resources": {"limits": {"cpu": -1}}}}, "/limits/cpu", id="negative-cpu"),
    pytest.param({"operator": {"resources": {"limits": {"memory": "1 GB"}}}}, "/limits/memory", id="not-a-quantity"),
    pytest.param({"operator": {"tolerations": [{"efect": "x"}]}}, "additional properties 'efect'", id="toleration"),
    pytest.param({"rbac": {"readNodes": "auto"}}, "/rbac/readNodes", id="auto-is-null"),
    pytest.param({"crds": {"instal": True}}, "additional properties 'instal'", id="typo-in-crds"),
    pytest.param({"adminToken": {"value": "secret"}}, "additional properties 'value'", id="no-token-in-values"),
    pytest.param({"networkPolicy": {"scrapeFrom": [{}]}}, "/networkPolicy/scrapeFrom/0", id="peer-that-is-everyone"),
]


@pytest.mark.parametrize(("values", "want"), REFUSED)
def test_schema_refuses_and_names_the_place(values: dict[str, Any], want: str) -> None:
    with pytest.raises(helm.HelmError) as refused:
        helm.template(values)
    got = str(refused.value)
    assert want in got
    assert "don't meet the specifications of the schema" in got


def test_default_values_pass_the_linter_in_strict_mode() -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(helm.CHART))


def test_values_for_a_local_cluster_pass_the_linter_in_strict_mode() -> None:
    got = helm.run("lint", "--strict", str(helm.CHART), "--values", str(helm.LOCAL_VALUES))
    assert "0 chart(s) failed" in got


def test_chart_may_be_a_dependency() -> None:
    """Helm passes ``global``, and by convention ``enabled``, to a chart that is a dependency."""
    assert helm.render({"global": {"region": "x"}, "enabled": True})


def _objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if "properties" in schema:
        yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from _objects(below, f"{path}/{name}")
    if "items" in schema:
        yield from _objects(schema["items"], f"{path}/items")
    for name, below in schema.get("$defs", {}).items():
        yield from _objects(below, f"/$defs/{name}")


def test_no_section_of_the_schema_lets_unknown_names_through() -> None:
    got = [path for path, schema in _objects(SCHEMA) if schema.get("additionalProperties") is not False]
    assert got == []


def _leaves(values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(values, dict) and values:
        for name, below in values.items():
            yield from _leaves(below, (*path, name))
    else:
        yield path


def _known(path: tuple[str, ...]) -> bool:
    schema = SCHEMA
    for name in path:
        if schema.get("$ref", "").endswith("/computeResources"):
            return True
        schema = schema.get("properties", {}).get(name)
        if schema is None:
            return False
    return True


def test_schema_and_values_file_list_the_same_names() -> None:
    values = yaml.safe_load((helm.CHART / "values.yaml").read_text())
    assert [path for path in _leaves(values) if not _known(path)] == []
    assert set(SCHEMA["properties"]) - {"global", "enabled"} == set(values)
