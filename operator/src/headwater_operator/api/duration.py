"""Durations as the API writes them: ``600ms``, ``5m``, ``1h30m``. Never a bare number, never a fraction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from headwater_operator.api.base import VALIDATIONS, Cel

# At most five digits a part: more would pass the pattern and overflow in the API server's duration().
PATTERN = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
_PART = re.compile(r"([0-9]+)(h|ms|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}

Duration = Annotated[str, StringConstraints(pattern=PATTERN, max_length=32)]
"""A duration in text. ``parse_duration`` gives its seconds."""


def parse_duration(text: str) -> float:
    """Seconds of ``text``. ValueError when it is not a duration."""
    if re.fullmatch(PATTERN, text) is None:
        raise ValueError(f"{text!r} is not a duration: write a number and a unit (h, m, s, ms), such as 600ms or 5m")
    return sum(int(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000


@dataclass(frozen=True, slots=True)
class Between:
    """Annotation: a duration within these bounds, both included."""

    low: str
    high: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        rule = f"duration(self) >= duration('{self.low}') && duration(self) <= duration('{self.high}')"
        return {**handler(schema), VALIDATIONS: [Cel(rule, self._message()).as_schema()]}

    def _check(self, text: str) -> str:
        if not parse_duration(self.low) <= parse_duration(text) <= parse_duration(self.high):
            raise ValueError(self._message())
        return text

    def _message(self) -> str:
        return f"must be a duration from {self.low} to {self.high}"
