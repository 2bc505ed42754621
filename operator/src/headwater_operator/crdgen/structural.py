"""From a pydantic model to a structural schema, the dialect of OpenAPI 3.0 that the API server takes.

What the dialect has no word for is refused, never dropped: a rule that quietly vanished would let bad objects in.

| pydantic writes                      | the API server wants                                      |
|--------------------------------------|-----------------------------------------------------------|
| ``$ref`` into ``$defs``              | the target in its place; words beside the ``$ref`` win    |
| ``anyOf`` with null                  | the other member, and no null anywhere: optional = absent |
| ``const``                            | ``enum`` with one value                                   |
| ``exclusiveMinimum: 0``              | ``minimum: 0, exclusiveMinimum: true``                    |
| ``additionalProperties: false``      | nothing: the server prunes, or refuses with strict checks |
| ``title``                            | nothing                                                   |
| ``default`` of a model               | the same in plain JSON, spelled out, without nulls        |
| ``type`` beside int-or-string        | no type                                                   |
| ``required`` with a default          | not required                                              |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from headwater_operator.api.base import VALIDATIONS

Schema = dict[str, Any]

INT_OR_STRING = "x-kubernetes-int-or-string"
# In the order in which they are written.
_KEPT = (
    "type",
    "format",
    "description",
    "default",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "additionalProperties",
    "items",
)
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


class UnsupportedSchemaError(Exception):
    """A model says something that a structural schema cannot. The text has the path of the field."""


class _Generator(GenerateJsonSchema):
    def get_default_value(self, schema: Any) -> Any:
        """Defaults made by a factory count too; pydantic leaves them out."""
        if "default_factory" in schema and not schema.get("default_factory_takes_data"):
            return schema["default_factory"]()
        return super().get_default_value(schema)


def structural_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of ``model``. UnsupportedSchemaError when there is none."""
    return from_json_schema(model.model_json_schema(by_alias=True, schema_generator=_Generator), model.__name__)


def from_json_schema(root: Mapping[str, Any], path: str) -> Schema:
    """The structural schema of a JSON schema as pydantic writes it."""
    schema = dict(root)
    definitions = schema.pop("$defs", {})
    return _Converter(definitions).convert(schema, path, ())


class _Converter:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def convert(self, schema: Schema, path: str, inside: tuple[str, ...]) -> Schema:
        schema, inside = self._resolve(schema, path, inside)
        out = {key: value for key, value in _dialect(schema).items() if _is_kept(key, value, path)}
        _require_type(out, path)
        if "description" in out:
            out["description"] = " ".join(out["description"].split())
        if "default" in out:
            out["default"] = without_nulls(to_jsonable_python(out["default"], by_alias=True))
        self._convert_children(out, path, inside)
        return dict(sorted(out.items(), key=_place))

    def _resolve(self, schema: Schema, path: str, inside: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """``schema`` with every ``$ref`` and every optional's ``anyOf`` replaced by what it stands for."""
        while True:
            if "$ref" in schema:
                name = schema["$ref"].rsplit("/", 1)[1]
                if name in inside:
                    raise UnsupportedSchemaError(f"{path}: {name} contains itself, and a structural schema cannot")
                inside = (*inside, name)
                schema = _merged(self._definitions[name], schema, "$ref")
            elif "anyOf" in schema:
                schema = _merged(_only_member(schema["anyOf"], path), schema, "anyOf")
            else:
                return schema, inside

    def _convert_children(self, out: Schema, path: str, inside: tuple[str, ...]) -> None:
        if "properties" in out:
            out["properties"] = {
                key: self.convert(value, f"{path}.{key}", inside) for key, value in out["properties"].items()
            }
            required = [key for key in out.pop("required", ()) if "default" not in out["properties"][key]]
            if required:
                out["required"] = required
        for key, suffix in (("additionalProperties", "{}"), ("items", "[]")):
            if key in out:
                out[key] = self.convert(out[key], path + suffix, inside)


def _merged(target: Schema, schema: Schema, replaced: str) -> Schema:
    """``target`` with the words beside ``replaced`` on top; CEL rules of both are kept."""
    beside = {key: value for key, value in schema.items() if key != replaced}
    merged = {**target, **beside}
    rules = [*target.get(VALIDATIONS, ()), *beside.get(VALIDATIONS, ())]
    return {**merged, VALIDATIONS: rules} if rules else merged


def _only_member(members: list[Schema], path: str) -> Schema:
    """The one member of an ``anyOf`` that is not null."""
    others = [member for member in members if member.get("type") != "null"]
    if len(others) != 1:
        raise UnsupportedSchemaError(f"{path}: a union of {len(others)} types; use a field for each, and a CEL rule")
    return others[0]


def _dialect(schema: Schema) -> Schema:
    """``schema`` with JSON Schema 2020-12's words turned into OpenAPI 3.0's."""
    out = dict(schema)
    if "const" in out:
        out["enum"] = [out.pop("const")]
    for exclusive, inclusive in _EXCLUSIVE.items():
        if exclusive in out and not isinstance(out[exclusive], bool):
            out[inclusive], out[exclusive] = out[exclusive], True
    if "default" in out and out["default"] is None:
        del out["default"]
    if out.get(INT_OR_STRING):
        out.pop("type", None)
    return out


def _is_kept(key: str, value: Any, path: str) -> bool:
    """Whether a keyword belongs in the schema; UnsupportedSchemaError when nobody has decided that."""
    if key == "title" or (key == "additionalProperties" and value is False):
        return False
    if key == "additionalProperties" and not isinstance(value, dict):
        raise UnsupportedSchemaError(f"{path}: free members; say what type they have")
    if key in _KEPT or key.startswith("x-kubernetes-"):
        return True
    raise UnsupportedSchemaError(f"{path}: the keyword {key} with value {value!r} has no place in a structural schema")


def _place(item: tuple[str, Any]) -> int:
    """Where a keyword is written: Kubernetes' own right before the members that they are about."""
    return _KEPT.index(item[0]) if item[0] in _KEPT else _KEPT.index("required")


def _require_type(out: Schema, path: str) -> None:
    if out.get("type") == "number":
        raise UnsupportedSchemaError(f"{path}: a float; use an integer, or a string with a pattern")
    if "type" not in out and not out.get(INT_OR_STRING):
        raise UnsupportedSchemaError(f"{path}: no type")


def without_nulls(value: Any) -> Any:
    """``value`` without null members at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value
