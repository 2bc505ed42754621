"""What every API model shares: camelCase names, no unknown fields, frozen, CEL rules beside the fields they guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class Cel:
    """One CEL rule of the API server. The message says what to do; ``at`` is the field that it blames."""

    rule: str
    message: str
    at: str | None = None
    reason: str | None = None

    def as_schema(self) -> dict[str, str]:
        """The rule as ``x-kubernetes-validations`` wants it."""
        extra = {"fieldPath": self.at, "reason": self.reason}
        return {"rule": self.rule, "message": self.message, **{k: v for k, v in extra.items() if v is not None}}


class ApiModel(BaseModel):
    """Base of all API models."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Cel, ...]] = ()
    """CEL rules over several fields of the object."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        if cls.rules:
            handler.resolve_ref_schema(schema)[VALIDATIONS] = [rule.as_schema() for rule in cls.rules]
        return schema

    def to_object(self) -> dict[str, Any]:
        """Plain JSON values under their API names; what is not set is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


@dataclass(frozen=True, slots=True)
class Rules:
    """Annotation that puts CEL rules on one value: ``Annotated[str, Rules(Cel(...))]``."""

    rules: tuple[Cel, ...]

    def __init__(self, *rules: Cel) -> None:
        object.__setattr__(self, "rules", rules)

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return with_rules(handler(core_schema), *self.rules)


def with_rules(schema: JsonSchemaValue, *rules: Cel) -> JsonSchemaValue:
    """``schema`` with further CEL rules after those it has."""
    return {**schema, VALIDATIONS: [*schema.get(VALIDATIONS, ()), *(rule.as_schema() for rule in rules)]}


@dataclass(frozen=True, slots=True)
class SchemaExtra:
    """Annotation that adds Kubernetes' own keywords (``x-kubernetes-…``, ``format``) to one value."""

    keywords: tuple[tuple[str, Any], ...]

    def __init__(self, **keywords: Any) -> None:
        pairs = tuple((name.replace("_", "-") if name.startswith("x_") else name, v) for name, v in keywords.items())
        object.__setattr__(self, "keywords", pairs)

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core_schema), **dict(self.keywords)}
