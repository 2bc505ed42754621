"""The generator turns what a structural schema has words for, and refuses the rest."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from headwater_operator.api.base import ApiModel, Cel, Rules
from headwater_operator.crdgen.structural import UnsupportedSchemaError, from_json_schema, structural_schema


class Color(StrEnum):
    """Docs of the enum."""

    RED = "Red"


class Inner(ApiModel):
    """Docs of the inner model."""

    rules = (Cel("self.number > 0", "of the model"),)

    number: Annotated[int, Field(gt=0, lt=10)] = 1
    """A number."""
    names: tuple[str, ...] = ()
    """Names."""


class Outer(ApiModel):
    """Docs of the outer model."""

    inner: Annotated[Inner, Rules(Cel("true", "of the field"))] = Inner()
    """Docs of the field,
    over two lines."""
    color: Color = Color.RED
    """A color."""
    kind: Literal["only"] = "only"
    """A constant."""
    maybe: int | None = None
    """May be absent."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels."""
    needed: str
    """Is needed."""


class Node(ApiModel):
    """Contains itself."""

    child: Node | None = None
    """A child."""


SCHEMA = structural_schema(Outer)
PROPERTIES = SCHEMA["properties"]


def test_a_reference_becomes_its_target_under_the_description_of_the_field() -> None:
    assert PROPERTIES["inner"]["description"] == "Docs of the field, over two lines."
    assert set(PROPERTIES["inner"]["properties"]) == {"number", "names"}
    assert PROPERTIES["color"] == {"type": "string", "description": "A color.", "default": "Red", "enum": ["Red"]}


def test_rules_of_a_model_and_of_the_field_that_holds_it_are_both_kept() -> None:
    got = [rule["message"] for rule in PROPERTIES["inner"]["x-kubernetes-validations"]]

    assert got == ["of the model", "of the field"]


def test_an_optional_field_is_one_that_may_be_absent_never_null() -> None:
    assert PROPERTIES["maybe"] == {"type": "integer", "description": "May be absent."}


def test_a_constant_is_an_enum_of_one() -> None:
    assert PROPERTIES["kind"]["enum"] == ["only"]


def test_exclusive_bounds_take_the_older_form() -> None:
    got = PROPERTIES["inner"]["properties"]["number"]

    want = {"minimum": 0, "exclusiveMinimum": True, "maximum": 10, "exclusiveMaximum": True}
    assert {key: got[key] for key in want} == want


def test_defaults_are_spelled_out_those_of_factories_too() -> None:
    assert PROPERTIES["inner"]["default"] == {"number": 1, "names": []}
    assert PROPERTIES["labels"]["default"] == {}


def test_only_a_field_without_default_is_required() -> None:
    assert SCHEMA["required"] == ["needed"]


def test_titles_and_boolean_additional_properties_are_left_out() -> None:
    assert "title" not in SCHEMA
    assert "additionalProperties" not in SCHEMA


@pytest.mark.parametrize(
    ("schema", "want"),
    [
        ({"type": "string", "contentEncoding": "base64"}, "contentEncoding"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "prefixItems"),
        ({"type": "object", "patternProperties": {"a": {"type": "string"}}}, "patternProperties"),
        ({"type": "object", "additionalProperties": True}, "free members"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "a union of 2 types"),
        ({"anyOf": [{"type": "null"}]}, "a union of 0 types"),
        ({"type": "number"}, "a float"),
        ({"description": "anything"}, "no type"),
        ({"enum": [1, 2]}, "no type"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_refused_with_its_path(schema: dict[str, Any], want: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=rf"Spec\.field: .*{want}"):
        from_json_schema({"type": "object", "properties": {"field": schema}}, "Spec")


def test_recursion_is_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="Node contains itself"):
        structural_schema(Node)
