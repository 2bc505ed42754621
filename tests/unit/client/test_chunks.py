"""Parsing of stream events and error bodies."""

from __future__ import annotations

import json

import pytest

from headwater_client.core.chunks import Chunk, Usage, parse_chunk, parse_error_body
from headwater_client.core.failures import FailureKind, RequestError


def _choice(**choice: object) -> str:
    return json.dumps({"choices": [choice]})


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (_choice(delta={"content": "héé"}), Chunk(1.0, "héé")),
        (_choice(delta={"role": "assistant"}), Chunk(1.0)),
        (_choice(delta={"content": None}, finish_reason="stop"), Chunk(1.0, "", "stop")),
        (_choice(finish_reason="length"), Chunk(1.0, "", "length")),
        (
            json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
            Chunk(1.0, usage=Usage(3, 4)),
        ),
    ],
)
def test_a_chunk_parses(data: str, want: Chunk) -> None:
    assert parse_chunk(data, 1.0) == want


@pytest.mark.parametrize(
    "data",
    [
        "{", "[]", "{}", '{"choices": 3}', '{"choices": {"a": 1}}', '{"choices": [{"delta": 3}]}', '"x"',
        "[" * 100_000, '{"choices":' + "[" * 100_000, '{"choices": [], "usage": {"prompt_tokens": %s}}' % ("9" * 5000),
        *(_choice(delta={"content": wrong}) for wrong in (3, {"a": 1}, ["x"])),
        *(_choice(finish_reason=wrong) for wrong in (3, {"a": 1}, ["stop"])),
        *(
            '{"choices": [], "usage": ' + usage + "}"
            for usage in (
                "3", "[3]", "{}", '{"prompt_tokens": "x"}', '{"prompt_tokens": NaN}', '{"prompt_tokens": Infinity}',
                '{"prompt_tokens": -1}', '{"prompt_tokens": 1, "completion_tokens": -1}', '{"prompt_tokens": [1]}',
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_chunk_is_a_protocol_error(data: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_chunk(data, 1.0)
    assert caught.value.failure.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ({"message": "rank 3 died", "type": "server_error", "code": "engine_dead"}, "rank 3 died", "engine_dead"),
        ({"message": "m", "code": 500}, "m", "500"),
        ("bare text", "bare text", None),
    ],
)
def test_an_error_event_is_an_in_band_failure(error: object, message: str, code: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        parse_chunk(json.dumps({"error": error}), 1.0)
    got = caught.value.failure
    assert (got.kind, got.message, got.code) == (FailureKind.IN_BAND, message, code)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ('{"error": {"message": "no such model", "code": "model_not_found"}}', ("no such model", "model_not_found")),
        ('{"detail": "Not Found"}', ("Not Found", None)),
        ("[" * 60_000, ("[" * 500, None)),
        ("<html>bad gateway</html>", ("<html>bad gateway</html>", None)),
        ("", ("(empty body)", None)),
        ("x" * 9999, ("x" * 500, None)),
    ],
)
def test_an_error_body_gives_its_message(body: str, want: tuple[str, str | None]) -> None:
    assert parse_error_body(body) == want
