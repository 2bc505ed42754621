"""``docs/reference/api.md``: every field with its type, default, rules and description, from the schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headwater_contracts.labels import API_GROUP, API_VERSION
from headwater_operator.api.base import VALIDATIONS
from headwater_operator.api.honored import NOT_HONORED, PARTLY_HONORED
from headwater_operator.crdgen.definitions import KINDS, Kind, root_schema
from headwater_operator.crdgen.structural import INT_OR_STRING

Schema = Mapping[str, Any]

_HEAD = f"""<!-- Generated from operator/src/headwater_operator/api by `make crds`; change the models. -->

# API reference

Group `{API_GROUP}`, version `{API_VERSION}`. `kubectl explain` shows the same texts. A duration is a number with its
unit (`600ms`, `5m`, `1h30m`), a quantity is written as for a pod (`16`, `500m`, `200Gi`), and there are no fractions: a
decimal number stands in quotes. A field that the API does not have is refused by `kubectl` (and by every client that
asks for strict field validation).
"""
_NOT_YET = """## Accepted, not yet acted on

This version checks and stores these fields of an InferencePool, and does not act on them; of `autoscaling` it holds
`minReplicas`. A pool that sets one of them away from its default has the condition `SpecHonored=False`, whose message
names it.
"""
_PARTLY = """These act in part, and are named in the same way:
"""
_REFUSED = """## What is refused, and how

Each row is applied to a real API server by the tests, which compare the messages word for word.
"""


def reference_text(refusals: list[dict[str, Any]]) -> str:
    """The whole page; ``refusals`` is the table of bad specs."""
    parts = [_HEAD, *(part for kind in KINDS for part in _kind(kind)), _not_yet()]
    return "\n".join([*parts, *([_refused(refusals)] if refusals else [])])


def _kind(kind: Kind) -> Iterator[str]:
    schema = root_schema(kind)
    yield f"## {kind.kind} (`{kind.short_name}`)\n\n{schema['description']}\n"
    if VALIDATIONS in schema:
        yield _rule_list(schema)
    for part in ("spec", "status"):
        yield from _object(f"{kind.kind}: {part}", schema["properties"][part])


def _object(path: str, schema: Schema) -> Iterator[str]:
    """The section of an object, then those of the objects inside it."""
    yield f"### {path}\n\n{schema['description']}\n"
    if VALIDATIONS in schema:
        yield _rule_list(schema)
    required = schema.get("required", ())
    rows = (_row(name, field, name in required) for name, field in schema["properties"].items())
    yield _table(("field", "type", "default", "rules", "description"), rows)
    for name, field in schema["properties"].items():
        member, suffix = (field["items"], "[]") if "items" in field else (field, "")
        if "properties" in member:
            yield from _object(f"{path}.{name}{suffix}", {"description": field["description"], **member})


def _rule_list(schema: Schema) -> str:
    """CEL rules over several fields, each with the field that it blames."""
    return "\n".join(f"- {_blamed(rule)}{rule['message']}" for rule in schema[VALIDATIONS]) + "\n"


def _blamed(rule: Mapping[str, str]) -> str:
    return f"`{rule['fieldPath'].removeprefix('.')}`: " if "fieldPath" in rule else ""


def _row(name: str, field: Schema, required: bool) -> tuple[str, ...]:
    rules = [*(["required"] if required else []), *_rules(field)]
    return (f"`{name}`", _type(field), _default(field), "; ".join(rules), field["description"])


def _type(field: Schema) -> str:
    if field.get(INT_OR_STRING):
        return "quantity"
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map to {_type(field['additionalProperties'])}"
    return str(field["type"])


def _default(field: Schema) -> str:
    """The default of a plain value; an object's defaults stand in its own section."""
    if "default" not in field or "properties" in field:
        return ""
    return f"`{json.dumps(field['default'], ensure_ascii=False)}`"


def _rules(field: Schema) -> Iterator[str]:
    """What the server checks of one value, in words."""
    if "properties" in field:
        return
    if "enum" in field:
        yield "one of " + ", ".join(f"`{value}`" for value in field["enum"])
    if "minimum" in field and "maximum" in field:
        yield f"{field['minimum']} to {field['maximum']}"
    elif "minimum" in field:
        yield f"at least {field['minimum']}"
    for keyword, text in (("maxLength", "characters"), ("maxItems", "items"), ("maxProperties", "members")):
        if keyword in field:
            yield f"at most {field[keyword]} {text}"
    rules = field.get(VALIDATIONS, ())
    if "pattern" in field and not any(field["pattern"] in rule["rule"] for rule in rules):
        yield f"matches `{field['pattern']}`"
    yield from (rule["message"] for rule in rules)


def _not_yet() -> str:
    fields = [f"- `spec.{path}`" for path in NOT_HONORED]
    partly = [f"- `spec.{path}`: {how}." for path, how in PARTLY_HONORED.items()]
    return "\n".join([_NOT_YET, *fields, "\n" + _PARTLY, *partly]) + "\n"


def _refused(refusals: list[dict[str, Any]]) -> str:
    rows = ((row["what"], row["mechanism"], "<br>".join(f"`{text}`" for text in row["want"])) for row in refusals)
    return _REFUSED + "\n" + _table(("mistake", "mechanism", "message"), rows)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
