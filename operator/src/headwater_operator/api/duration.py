"""Durations as the API writes them: ``600ms``, ``5m``, ``1h30m``. Never a bare number, never a fraction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from headwater_operator.api.base import Cel, Rules, with_rules

# At most five digits a part: more would pass the pattern and overflow in the API server's duration().
PATTERN = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
_PART = re.compile(r"([0-9]+)(h|ms|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}

_REMEDY = "must be a number with its unit (h, m, s or ms), such as 600ms, 5m or 1h30m"

# The pattern is for tools that read the schema; the rule says the same in words.
Duration = Annotated[
    str, StringConstraints(pattern=PATTERN, max_length=32), Rules(Cel(f"self.matches('{PATTERN}')", _REMEDY))
]
"""A duration in text. ``parse_duration`` gives its seconds."""


def parse_duration(text: str) -> float:
    """Seconds of ``text``. ValueError when it is not a duration."""
    if re.fullmatch(PATTERN, text) is None:
        raise ValueError(f"{_REMEDY}, not {text!r}")
    return sum(int(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000


@dataclass(frozen=True, slots=True)
class Between:
    """Annotation: a duration within these bounds, both included."""

    low: str
    high: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # All rules run, whatever the others found: what is no duration is the other rule's business.
        within = f"duration(self) >= duration('{self.low}') && duration(self) <= duration('{self.high}')"
        return with_rules(handler(schema), Cel(f"!self.matches('{PATTERN}') || ({within})", self._message()))

    def _check(self, text: str) -> str:
        if not parse_duration(self.low) <= parse_duration(text) <= parse_duration(self.high):
            raise ValueError(self._message())
        return text

    def _message(self) -> str:
        return f"must be a duration from {self.low} to {self.high}"
