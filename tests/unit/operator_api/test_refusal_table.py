"""The table of bad specs covers every mechanism; the models refuse what the schema alone refuses."""

from __future__ import annotations

import pytest

from headwater_operator.api.parsing import InvalidSpec, parse_group, parse_pool
from support.refusals import UNCHECKED, Refusal, load, manifest, merged, messages

ROWS = load()
MECHANISMS = {
    "bound",
    "cross-field",
    "enum",
    "forbidden",
    "format",
    "name",
    "pattern",
    "required",
    "transition",
    "type",
    "union",
    "unknown field",
}
# Rules that only the API server has (CEL), or where the models take what the server would not store.
SERVER_ONLY = {"No CPU", "A switch in quotes"}
SCHEMA_MECHANISMS = {"bound", "enum", "pattern", "required", "type", "unknown field"}


def test_the_table_has_a_row_for_each_mechanism() -> None:
    assert {row.mechanism for row in ROWS} == MECHANISMS


def test_no_mistake_stands_twice() -> None:
    assert len({row.what for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.mechanism in SCHEMA_MECHANISMS and row.what not in SERVER_ONLY], ids=str
)
def test_the_models_refuse_it_too_and_name_the_same_field(row: Refusal) -> None:
    parse = {"InferencePool": parse_pool, "ReplicaGroup": parse_group}[row.kind]
    quoted = row.want[0].removeprefix('unknown field "').removesuffix('"')
    want = quoted.split(": ")[0]

    with pytest.raises(InvalidSpec) as got:
        parse(row.applied())

    assert f"{want}: " in str(got.value)


def test_the_least_specs_are_valid() -> None:
    assert parse_pool(manifest("InferencePool", "a", {})).model.name == "m"
    assert parse_group(manifest("ReplicaGroup", "a", {})).role == "active"


def test_a_change_is_merged_and_null_takes_away() -> None:
    got = merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": None, "e": {"f": 1}}, "d": [4]})

    assert got == {"a": {"c": 2, "e": {"f": 1}}, "d": [4]}


@pytest.mark.parametrize(
    ("stderr", "want"),
    [
        ('The InferencePool "x" is invalid: spec.a: Required value\n', ("spec.a: Required value",)),
        (
            f'The InferencePool "x" is invalid: \n* spec.a: one\n* spec.b: b\n* <nil>: Invalid: {UNCHECKED}; …\n',
            ("spec.a: one", "spec.b: b"),
        ),
        (
            'Error from server (BadRequest): InferencePool: strict decoding error: unknown field "spec.a"\n',
            ('unknown field "spec.a"',),
        ),
    ],
)
def test_kubectl_output_is_read_as_one_text_a_problem(stderr: str, want: tuple[str, ...]) -> None:
    assert messages(stderr) == want
