"""Whatever a caller sends gets a clear 4xx before the 200, the same streamed and whole, and the engine lives on."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from headwater_engine.api.parse import MAX_BODY_BYTES, parse_body
from headwater_engine.api.protocol import ChatBody, CompletionBody
from headwater_engine.errors import CallerError
from support.engine_process import EngineProcess, chat, finish_reasons, frames_of, raw_request, tokens

Case = tuple[str, dict[str, Any], int, str, str | None]
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
USER = {"role": "user", "content": "Hello"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}

BAD_BOTH: list[Case] = [
    ("unknown model", {"model": "other"}, 404, "model", "model_not_found"),
    ("model missing", {"model": None}, 400, "model", "invalid_value"),
    ("temperature too high", {"temperature": 2.1}, 400, "temperature", "invalid_value"),
    ("temperature negative", {"temperature": -1}, 400, "temperature", "invalid_value"),
    ("temperature a text", {"temperature": "1"}, 400, "temperature", "invalid_value"),
    ("temperature a boolean", {"temperature": True}, 400, "temperature", "invalid_value"),
    ("top_p too high", {"top_p": 2}, 400, "top_p", "invalid_value"),
    ("top_p zero", {"top_p": 0}, 400, "top_p", "invalid_value"),
    ("top_k too low", {"top_k": -2}, 400, "top_k", "invalid_value"),
    ("max_tokens zero", {"max_tokens": 0}, 400, "max_tokens", "invalid_value"),
    ("max_tokens negative", {"max_tokens": -1}, 400, "max_tokens", "invalid_value"),
    ("max_tokens a fraction", {"max_tokens": 1.5}, 400, "max_tokens", "invalid_value"),
    ("max_tokens a boolean", {"max_tokens": True}, 400, "max_tokens", "invalid_value"),
    ("max_tokens beyond the context", {"max_tokens": 5000}, 400, "max_tokens", "context_length_exceeded"),
    ("max_tokens huge", {"max_tokens": 10**30}, 400, "max_tokens", "invalid_value"),
    ("min over max", {"min_tokens": 9, "max_tokens": 8}, 400, "min_tokens", None),
    ("presence_penalty", {"presence_penalty": 3}, 400, "presence_penalty", "invalid_value"),
    ("frequency_penalty", {"frequency_penalty": -3}, 400, "frequency_penalty", "invalid_value"),
    ("seed too big", {"seed": 2**63}, 400, "seed", "invalid_value"),
    ("stop empty", {"stop": [""]}, 400, "stop[0]", "invalid_value"),
    ("stop a number", {"stop": 5}, 400, "stop", "invalid_value"),
    ("stops too many", {"stop": ["x"] * 17}, 400, "stop", "invalid_value"),
    ("stop too long", {"stop": "x" * 1025}, 400, "stop[0]", "invalid_value"),
    ("logit_bias key", {"logit_bias": {"AI": -100}}, 400, "logit_bias", "invalid_value"),
    ("logit_bias key negative", {"logit_bias": {"-1": 5}}, 400, "logit_bias", "invalid_value"),
    ("logit_bias value", {"logit_bias": {"1": "x"}}, 400, "logit_bias", "invalid_value"),
    ("logit_bias value too big", {"logit_bias": {"1": 1e9}}, 400, "logit_bias", "invalid_value"),
    ("logit_bias outside", {"logit_bias": {"191222": -100}}, 400, "logit_bias", None),
    ("stop_token_ids outside", {"stop_token_ids": [10**6]}, 400, "stop_token_ids", None),
    ("n", {"n": 2}, 400, "n", "unsupported_parameter"),
    ("n a text", {"n": "1"}, 400, "n", "unsupported_parameter"),
    ("logprobs", {"logprobs": True}, 400, "logprobs", "unsupported_parameter"),
    ("best_of", {"best_of": 3}, 400, "best_of", "unsupported_parameter"),
    ("echo", {"echo": True}, 400, "echo", "unsupported_parameter"),
    ("beam search", {"use_beam_search": True}, 400, "use_beam_search", "unsupported_parameter"),
    ("script not a list", {"headwater_script": 5}, 400, "headwater_script", "invalid_value"),
    ("stream a text", {"stream": "yes"}, 400, "stream", "invalid_value"),
]  # fmt: skip
BAD_CHAT: list[Case] = [
    ("messages missing", {"messages": None}, 400, "messages", "invalid_value"),
    ("messages empty", {"messages": []}, 400, "messages", "invalid_value"),
    ("role unknown", {"messages": [{"role": "boss", "content": "x"}]}, 400, "messages[0].role", "invalid_value"),
    ("content missing", {"messages": [USER, {"role": "user"}]}, 400, "messages[1].content", "invalid_value"),
    ("content a number", {"messages": [{"role": "user", "content": 5}]}, 400, "messages[0].content", "invalid_value"),
    ("image", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, 400,
     "messages[].content[].image_url", "unsupported_parameter"),
    ("tools", {"tools": [TOOL]}, 400, "tools", "unsupported_parameter"),
    ("tool_choice", {"tool_choice": "required"}, 400, "tool_choice", "unsupported_parameter"),
    ("json mode", {"response_format": {"type": "json_object"}}, 400, "response_format", "unsupported_parameter"),
    ("schema", {"response_format": {"type": "json_schema", "schema": {}}}, 400, "response_format",
     "unsupported_parameter"),
    ("too long", {"messages": [{"role": "user", "content": "x" * 5000}]}, 400, "messages", "context_length_exceeded"),
    ("completion tokens", {"max_completion_tokens": 0}, 400, "max_completion_tokens", "invalid_value"),
]  # fmt: skip
BAD_COMPLETIONS: list[Case] = [
    ("prompt missing", {"prompt": None}, 400, "prompt", "invalid_value"),
    ("prompt of negative ids", {"prompt": [-1]}, 400, "prompt[0]", "invalid_value"),
    ("prompt ids outside", {"prompt": [10**7]}, 400, "prompt", None),
    ("prompt empty", {"prompt": []}, 400, "prompt", None),
    ("several prompts", {"prompt": ["a", "b"]}, 400, "prompt (a list of several prompts)", "unsupported_parameter"),
    ("too long", {"prompt": "x" * 5000}, 400, "prompt", "context_length_exceeded"),
    ("suffix", {"suffix": "end"}, 400, "suffix", "unsupported_parameter"),
]  # fmt: skip
CASES = [
    *((CHAT, *case) for case in BAD_BOTH + BAD_CHAT),
    *((COMPLETIONS, *case) for case in BAD_BOTH + BAD_COMPLETIONS),
]


async def post(engine: EngineProcess, path: str, body: Any, **options: Any) -> tuple[int, dict[str, Any]]:
    """Status and error object."""
    async with raw_request(engine, path, body, **options) as response:
        await response.read_head()
        answer = await response.body()
        assert response.headers["content-type"].startswith("application/json"), answer
        error = json.loads(answer)["error"]
        assert isinstance(error, dict)
        return response.status, error


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("path", "_name", "fields", "status", "param", "code"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES]
)
async def test_is_refused_by_name_before_the_answer_begins(
    engine: EngineProcess,
    path: str,
    _name: str,
    fields: dict[str, Any],
    status: int,
    param: str,
    code: str | None,
    stream: bool,
) -> None:
    body = {"model": "default", "messages": [USER], "prompt": "Hello", "stream": stream} | fields

    got_status, error = await post(engine, path, body)

    assert (got_status, error["param"], error["code"]) == (status, param, code)
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}
    if param in ("max_tokens", "messages", "prompt"):
        assert not re.search(r"-\d", error["message"])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b"null", 400, "invalid_json"),
        (b'"text"', 400, "invalid_json"),
        (b'{"model": "default", "temperature": NaN}', 400, "invalid_json"),
        (b'{"model": "\xff"}', 400, "invalid_json"),
        (b'{"model": "\\ud800"}', 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b'{"x":' + b"[" * 100 + b"]" * 100 + b"}", 400, "invalid_json"),
    ],
    ids=["empty", "cut", "list", "null", "text", "nan", "not-utf8", "surrogate", "bomb", "nested"],
)
async def test_a_body_that_is_no_good_json_is_refused(
    engine: EngineProcess, body: bytes, status: int, code: str
) -> None:
    got, error = await post(engine, CHAT, body)

    assert (got, error["code"]) == (status, code)


FULL = b",".join
ASKED = b'"messages":[{"role":"user","content":""}],'


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (COMPLETIONS, b'"prompt":[' + FULL([b"-1"] * 2_500_000) + b"]", "prompt[0]"),
        (CHAT, b'"messages":[' + FULL([b"{}"] * 2_500_000) + b"]", "messages[0].role"),
        (CHAT, b'"messages":[{"role":"user","content":[' + FULL([b"{}"] * 2_500_000) + b"]}]", "messages[0].content"),
        (CHAT, ASKED + b'"stop":[' + FULL([b"0"] * 4_000_000) + b"]", "stop[0]"),
        (CHAT, ASKED + b'"stop_token_ids":[' + FULL([b"-1"] * 2_500_000) + b"]", "stop_token_ids[0]"),
        (CHAT, ASKED + b'"headwater_script":[' + FULL([b"0"] * 4_000_000) + b"]", "headwater_script[0]"),
        (CHAT, ASKED + b'"logit_bias":{' + FULL(b'"%d":""' % n for n in range(600_000)) + b"}", "logit_bias"),
    ],
    ids=["ids", "messages", "parts", "stops", "stop-ids", "script", "bias"],
)
def test_millions_of_wrong_items_cost_no_more_than_one(path: str, fields: bytes, param: str) -> None:
    kind = ChatBody if path == CHAT else CompletionBody
    body = b'{"model":"default",' + fields + b"}"
    assert len(body) < MAX_BODY_BYTES

    with pytest.raises(CallerError) as got:
        parse_body(kind, body)

    assert (got.value.param or "").startswith(param)
    # A ValidationError holds one entry for each complaint.
    complaints = got.value.__cause__
    assert isinstance(complaints, ValidationError)
    assert complaints.error_count() < 10


async def test_a_body_beyond_the_limit_is_refused_and_the_connection_goes_on(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, b"x" * (9 * 1024 * 1024)) as response:
        await response.read_head()
        error = json.loads(await response.body())["error"]
        response.writer.write(b"GET /healthz HTTP/1.1\r\nHost: e\r\n\r\n")
        await response.read_head()
        health = await response.body()

    assert error["code"] == "body_too_large"
    assert json.loads(health) == {"status": "ok"}


async def test_an_announced_body_beyond_the_limit_is_refused_before_it_comes(engine: EngineProcess) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", engine.http_port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: e\r\nContent-Length: {2**40}\r\n\r\n".encode())

    status = await reader.readline()

    writer.transport.abort()
    assert b" 413 " in status


async def test_errors_echo_only_a_little_of_the_input(engine: EngineProcess) -> None:
    _status, error = await post(engine, CHAT, chat(model="m" * 1000))

    assert len(error["message"]) < 700


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/engines", 404),
        ("POST", "/v1/embeddings", 404),
        ("GET", "/admin/state", 404),
        ("GET", CHAT, 405),
        ("PUT", "/v1/models", 405),
        ("OPTIONS", CHAT, 405),
        ("DELETE", "/healthz", 405),
    ],
)
async def test_unknown_routes_and_methods_get_an_error_in_openai_shape(
    engine: EngineProcess, method: str, path: str, status: int
) -> None:
    got, error = await post(engine, path, b"", method=method)

    assert got == status
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(("path", "want"), [(CHAT, "POST"), ("/healthz", "GET, HEAD")])
async def test_a_wrong_method_is_told_the_right_ones(engine: EngineProcess, path: str, want: str) -> None:
    async with raw_request(engine, path, b"", method="DELETE") as response:
        await response.read_head()

    assert (response.status, response.headers["allow"]) == (405, want)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/models"])
async def test_head_is_get_without_a_body(engine: EngineProcess, path: str) -> None:
    async with raw_request(engine, path, b"", method="HEAD") as response:
        await response.read_head()
        assert response.status == 200
        assert int(response.headers["content-length"]) > 0
        response.writer.write(b"GET /healthz HTTP/1.1\r\nHost: e\r\n\r\n")
        await response.read_head()
        assert json.loads(await response.body()) == {"status": "ok"}


async def test_fields_that_ask_for_nothing_are_accepted(engine: EngineProcess) -> None:
    harmless: dict[str, Any] = {
        "n": 1, "best_of": None, "logprobs": False, "tools": [], "tool_choice": "none", "echo": False, "user": "u",
        "response_format": {"type": "text"}, "store": False, "metadata": {"a": "b"}, "service_tier": "auto",
        "some_field_of_tomorrow": 1, "max_tokens": None, "stop": None, "seed": None, "logit_bias": {},
    }  # fmt: skip

    async with raw_request(engine, CHAT, chat(tokens("a", finish="stop"), **harmless)) as response:
        await response.read_head()
        assert response.status == 200, await response.body()
        assert finish_reasons(frames_of(await response.body())) == ["stop"]


async def test_content_parts_of_text_are_joined(engine: EngineProcess) -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    answers = []
    for content in (parts, "Hello"):
        body = chat(stream=False, max_tokens=8, temperature=0, messages=[{"role": "user", "content": content}])
        async with raw_request(engine, CHAT, body) as response:
            await response.read_head()
            answers.append(json.loads(await response.body())["choices"])

    assert answers[0] == answers[1]


async def test_without_max_tokens_a_chat_may_fill_the_context(engine: EngineProcess) -> None:
    long = [{"role": "user", "content": "x" * 3900}]
    body = chat(stream=False, ignore_eos=True, temperature=0, messages=long)
    async with raw_request(engine, CHAT, body) as response:
        await response.read_head()
        answer = json.loads(await response.body())

    assert answer["usage"]["total_tokens"] == 4096
    assert answer["choices"][0]["finish_reason"] == "length"


async def test_a_good_stream_survives_bad_requests_beside_it(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat(max_tokens=300, ignore_eos=True)) as good:
        await good.read_head()
        for path, _name, fields, status, _param, _code in CASES[::7]:
            got, _error = await post(engine, path, {"model": "default", "messages": [USER], "prompt": "p"} | fields)
            assert got == status
        frames = frames_of(await good.body())

    assert finish_reasons(frames) == ["length"]
