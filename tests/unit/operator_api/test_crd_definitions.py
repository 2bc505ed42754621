"""What holds for every field of both definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headwater_operator.api.duration import PATTERN
from headwater_operator.api.parsing import parse_group, parse_pool
from headwater_operator.crdgen.definitions import GROUP, KINDS, POOL, Kind, build_crd, root_schema
from support.refusals import BASE_SPECS

Schema = dict[str, Any]


def fields(kind: Kind) -> Iterator[tuple[str, Schema]]:
    """Every schema below spec and status, with its path."""
    for part in ("spec", "status"):
        yield from walk(part, root_schema(kind)["properties"][part])


def walk(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(f"{path}.{name}", field)
    for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from walk(path + suffix, schema[key])


def defaulted(schema: Schema, value: Any) -> Any:
    """``value`` with the schema's defaults filled in, as the API server does it."""
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = {name: field["default"] for name, field in schema["properties"].items() if "default" in field} | value
    return {name: defaulted(schema["properties"][name], member) for name, member in filled.items()}


ALL_FIELDS = [(f"{kind.kind}.{path}", field) for kind in KINDS for path, field in fields(kind)]


def test_every_named_field_has_a_description() -> None:
    named = [(path, field) for path, field in ALL_FIELDS if not path.endswith(("[]", "{}"))]

    assert len(named) > 150
    assert [path for path, field in named if not field.get("description", "").endswith(".")] == []


def test_no_field_is_a_float_and_no_default_holds_one() -> None:
    assert [path for path, field in ALL_FIELDS if field.get("type") == "number"] == []
    assert [path for path, f in ALL_FIELDS if any(isinstance(value, float) for value in leaves(f.get("default")))] == []


def test_every_list_says_how_it_merges() -> None:
    lists = {path: field.get("x-kubernetes-list-type") for path, field in ALL_FIELDS if field.get("type") == "array"}

    assert lists.pop("InferencePool.status.conditions") == "map"
    assert lists.pop("ReplicaGroup.status.conditions") == "map"
    assert set(lists.values()) == {"atomic"}


def test_everything_has_a_bound() -> None:
    def is_bounded(field: Schema) -> bool:
        kind = field.get("type", "string")
        word = {"string": "maxLength", "array": "maxItems"}.get(kind)
        if "additionalProperties" in field:
            word = "maxProperties"
        return word is None or word in field or "enum" in field

    assert [path for path, field in ALL_FIELDS if not is_bounded(field)] == []


def test_every_duration_has_bounds_too() -> None:
    durations = [(path, field) for path, field in ALL_FIELDS if field.get("pattern") == PATTERN]

    assert len(durations) > 10
    for path, field in durations:
        assert any("duration from" in rule["message"] for rule in field["x-kubernetes-validations"]), path


def test_no_enum_value_is_one_that_yaml_reads_as_a_boolean() -> None:
    booleans = {"y", "n", "yes", "no", "on", "off", "true", "false"}
    got = [path for path, field in ALL_FIELDS if {str(value).lower() for value in field.get("enum", ())} & booleans]

    # A condition's status is written by controllers, in JSON, and its values are Kubernetes' own.
    assert got == ["InferencePool.status.conditions[].status", "ReplicaGroup.status.conditions[].status"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_defaults_of_the_schema_are_those_of_the_models(kind: Kind) -> None:
    spec = BASE_SPECS[kind.kind]
    parse = {"InferencePool": parse_pool, "ReplicaGroup": parse_group}[kind.kind]

    want = parse({"spec": spec}).to_object()
    got = defaulted(root_schema(kind)["properties"]["spec"], spec)

    assert got == want


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_defaults_of_an_object_are_spelled_out_to_its_last_field(kind: Kind) -> None:
    for path, field in fields(kind):
        if "default" in field and "properties" in field:
            assert field["default"] == defaulted(field, field["default"]), path


def test_a_pool_shows_the_columns_that_its_readers_look_for() -> None:
    columns = build_crd(POOL)["spec"]["versions"][0]["additionalPrinterColumns"]

    assert [c["name"] for c in columns if "priority" not in c] == ["ACTIVE", "WARM", "KV", "TTFT-P90", "READY", "AGE"]
    assert [c["name"] for c in columns if c.get("priority") == 1] == ["MODEL", "REVISION", "REASON"]


def test_a_group_shows_the_columns_that_its_readers_look_for() -> None:
    columns = build_crd(GROUP)["spec"]["versions"][0]["additionalPrinterColumns"]

    got = [c["name"] for c in columns if "priority" not in c]
    assert got == ["POOL", "ROLE", "PHASE", "NODE", "RUNNING", "KV", "AGE"]


def test_the_short_names_leave_those_of_the_gateway_api_alone() -> None:
    names = {kind.kind: build_crd(kind)["spec"]["names"] for kind in KINDS}

    assert names["InferencePool"]["shortNames"] == ["ipool"]
    assert names["ReplicaGroup"]["shortNames"] == ["rgroup"]
    assert all(name["categories"] == ["headwater"] for name in names.values())


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for member in value.values():
            yield from leaves(member)
    elif isinstance(value, list):
        for member in value:
            yield from leaves(member)
    else:
        yield value
