"""Durations: what is one, how long it is, and within which bounds."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from headwater_operator.api.duration import Between, Duration, parse_duration


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("600ms", 0.6),
        ("5s", 5.0),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("1h30m", 5400.0),
        ("1m500ms", 60.5),
        ("0s", 0.0),
        ("99999h", 359_996_400.0),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_a_duration_has_its_seconds(text: str, want: float) -> None:
    assert parse_duration(text) == want


@pytest.mark.parametrize(
    "text",
    [
        "",
        "600",
        "5",
        "0.5s",
        "-5s",
        "5 s",
        "5S",
        "5m ",
        "\n5m",
        "5m\n",
        "s",
        "5d",
        "100000h",
        "1s1s1s1s1s",
        "٥s",
        "1e3s",
    ],
)
def test_what_is_no_duration_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number with its unit"):
        parse_duration(text)


@given(st.lists(st.tuples(st.integers(0, 99_999), st.sampled_from(["h", "m", "s", "ms"])), min_size=1, max_size=4))
def test_the_parts_add_up(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    want = sum(number * {"h": 3600_000, "m": 60_000, "s": 1000, "ms": 1}[unit] for number, unit in parts) / 1000

    assert parse_duration(text) == want


BOUNDED = TypeAdapter[str](Annotated[Duration, Between("1s", "1h")])


@pytest.mark.parametrize("text", ["1s", "1000ms", "60m", "1h"])
def test_bounds_belong_to_the_range(text: str) -> None:
    assert BOUNDED.validate_python(text) == text


@pytest.mark.parametrize("text", ["999ms", "1h1ms", "0s"])
def test_what_lies_outside_the_bounds_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="must be a duration from 1s to 1h"):
        BOUNDED.validate_python(text)


def test_the_schema_has_the_pattern_the_remedy_and_the_bounds() -> None:
    schema = BOUNDED.json_schema()

    messages = [rule["message"] for rule in schema["x-kubernetes-validations"]]
    assert schema["pattern"] == r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
    assert messages == [
        "must be a number with its unit (h, m, s or ms), such as 600ms, 5m or 1h30m",
        "must be a duration from 1s to 1h",
    ]
