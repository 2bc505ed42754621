"""What a streaming client sees on the wire."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from support.engine_process import (
    EngineProcess,
    RawResponse,
    chat,
    finish_reasons,
    frames_of,
    raw_request,
    text_of,
    tokens,
)

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"


async def stream(engine: EngineProcess, body: dict[str, Any], path: str = CHAT) -> bytes:
    """All bytes of a streamed answer."""
    async with raw_request(engine, path, body) as response:
        await response.read_head()
        assert response.status == 200
        return await response.body()


async def whole(engine: EngineProcess, body: dict[str, Any], path: str = CHAT) -> dict[str, Any]:
    """The same request without streaming."""
    body = {key: value for key, value in body.items() if key != "stream_options"} | {"stream": False}
    async with raw_request(engine, path, body) as response:
        await response.read_head()
        answer = json.loads(await response.body())
        assert response.status == 200, answer
        assert isinstance(answer, dict)
        return answer


async def next_data(response: RawResponse) -> bytes:
    """The next chunk that is no comment."""
    async for chunk in response.chunks():
        if not chunk.startswith(b":"):
            return chunk
    raise AssertionError("the stream ended")


async def test_each_token_is_flushed_before_the_next_one_exists(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat([*tokens("one"), *tokens("two"), {"tokens": []}])) as response:
        await response.read_head()

        # The script hangs after its last step, so nothing that waits for the end can deliver these.
        got = [text_of(frames_of(await next_data(response))) for _ in range(2)]

    assert got == ["one", "two"]


async def test_each_step_is_one_chunk(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat(tokens("a", "b", "c", delay_ms=50, finish="stop"))) as response:
        await response.read_head()
        got = [text_of(frames_of(chunk)) async for chunk in response.chunks() if not chunk.startswith(b":")]

    assert got == ["a", "b", "c"]


async def test_headers_come_before_the_first_token(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat([{"tokens": []}])) as response:
        await response.read_head()

    got = {name: response.headers.get(name) for name in ("content-type", "cache-control", "x-accel-buffering")}
    want = {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
    assert got == want
    assert response.headers["x-headwater-group"] == "test-group"
    assert "content-encoding" not in response.headers


async def test_silence_is_filled_with_comments_and_no_token_is_lost(engine: EngineProcess) -> None:
    script = tokens("late", "later", delay_ms=900, finish="stop")

    data = await stream(engine, chat(script))

    before_first, _, after_first = data.partition(b'"content":"late"')
    assert before_first.count(b": keep-alive\n\n") >= 2
    assert after_first.count(b": keep-alive\n\n") >= 2
    assert text_of(frames_of(data)) == "latelater"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_the_finish_comes_once_and_last_and_without_text(engine: EngineProcess, path: str) -> None:
    body = chat(tokens("x", "y", finish="length"), prompt="p")

    frames = frames_of(await stream(engine, body, path))

    assert frames[-1] == "[DONE]"
    choices = [frame["choices"][0] for frame in frames[:-1]]
    assert all("finish_reason" in choice for choice in choices)
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["length"]
    assert choices[-1]["finish_reason"] == "length"
    assert choices[-1].get("text", "") == ""
    assert choices[-1].get("delta", {}) == {}


async def test_the_role_is_told_once_and_first(engine: EngineProcess) -> None:
    frames = frames_of(await stream(engine, chat(tokens("x", "y", finish="stop"))))

    deltas = [frame["choices"][0]["delta"] for frame in frames[:-1]]
    assert [index for index, delta in enumerate(deltas) if "role" in delta] == [0]
    assert len({frame["id"] for frame in frames[:-1]}) == 1


@pytest.mark.parametrize(
    ("options", "want"),
    [
        (None, [False, False, False, False]),
        ({}, [False, False, False, False]),
        ({"include_usage": False}, [False, False, False, False]),
        ({"include_usage": True}, [None, None, None, None, True]),
        ({"include_usage": True, "continuous_usage_stats": True}, [True, True, True, True, True]),
    ],
)
async def test_usage_is_told_where_it_was_asked_for(
    engine: EngineProcess, options: dict[str, bool] | None, want: list[bool | None]
) -> None:
    body = chat(tokens("x", "y", finish="stop"), **({} if options is None else {"stream_options": options}))

    frames = frames_of(await stream(engine, body))[:-1]

    got = [None if frame.get("usage", 0) is None else bool(frame.get("usage")) for frame in frames]
    assert got == want
    if options and options.get("include_usage"):
        assert frames[-1]["choices"] == []
        assert frames[-1]["usage"] == (await whole(engine, body))["usage"]
        assert frames[-1]["usage"]["completion_tokens"] == 2


async def test_line_separators_leave_only_as_escapes(engine: EngineProcess) -> None:
    text = "a\u2028b\u2029c\u0085d\u000be\u001cf\r\ng"

    data = await stream(engine, chat(tokens(text, finish="stop")))

    assert len(data.decode().splitlines()) == data.count(b"\n")
    assert text_of(frames_of(data)) == text


async def test_characters_split_over_tokens_arrive_whole(engine: EngineProcess) -> None:
    text = "ďábel 日本語 🌶 👩‍👩‍👧 🇯🇵 שלום"
    pieces = [bytes((byte,)) for byte in text.encode()]

    frames = frames_of(await stream(engine, chat(tokens(*pieces, finish="stop"))))

    assert text_of(frames) == text
    assert "\ufffd" not in json.dumps(frames, ensure_ascii=False)


async def test_a_character_cut_by_the_end_is_one_replacement_character_in_both_modes(engine: EngineProcess) -> None:
    body = chat(tokens("ok", b"\xf0\x9f", finish="length"))

    got = text_of(frames_of(await stream(engine, body)))

    assert got == "ok\ufffd"
    assert (await whole(engine, body))["choices"][0]["message"]["content"] == got


@pytest.mark.parametrize(
    ("pieces", "fields", "want", "used"),
    [
        (["ABC", "DEF", "G", "HI", "J", "K"], {"stop": ["DEFGHIJ"]}, ("ABC", "stop"), 5),
        (["ABC", "DEF", "X"], {"stop": ["DEFGHIJ"]}, ("ABCDEFX", "length"), 3),
        (["The capital is", " Paris", ".", " It"], {"stop": "Pari"}, ("The capital is ", "stop"), 2),
        (["a", "\n", "b", "c", "d", "e", "\n", "f"], {"stop": ["\n"], "min_tokens": 5}, ("a\nbcde", "stop"), 7),
        (["x", "END", "y"], {"stop": ["END"], "include_stop_str_in_output": True}, ("xEND", "stop"), 2),
        (["ab", "cd"], {"stop": ["bc", "abcd", "abc"]}, ("", "stop"), 2),
    ],
    ids=["over-tokens", "near-miss", "inside-a-token", "min-tokens", "included", "longest-of-those-that-end-first"],
)
async def test_stop_strings_end_streamed_and_whole_answers_alike(
    engine: EngineProcess, pieces: list[str], fields: dict[str, Any], want: tuple[str, str], used: int
) -> None:
    body = chat(tokens(*pieces, finish="length"), **fields)

    frames = frames_of(await stream(engine, body))
    answer = await whole(engine, body)

    assert (text_of(frames), *finish_reasons(frames)) == want
    choice = answer["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == want
    assert answer["usage"]["completion_tokens"] == used


async def test_a_stop_string_ends_the_request_in_the_backend(engine: EngineProcess) -> None:
    # The script hangs after the stop string: only an abort makes the engine idle again.
    frames = frames_of(await stream(engine, chat([*tokens("a", "STOP", "b"), {"tokens": []}], stop=["STOP"])))

    assert (text_of(frames), finish_reasons(frames)) == ("a", ["stop"])
    engine.wait_idle()


async def test_an_error_in_mid_stream_is_told_in_band_and_never_as_a_finish(engine: EngineProcess) -> None:
    script = [*tokens("a", "b", "c"), {"error": "the GPU fell over"}]

    frames = frames_of(await stream(engine, chat(script)))

    assert text_of(frames[:-2]) == "abc"
    want = {"message": "the GPU fell over", "type": "server_error", "param": None, "code": "scripted_error"}
    assert frames[-2:] == [{"error": want}, "[DONE]"]
    assert not any(frame["choices"][0]["finish_reason"] for frame in frames[:-2])


async def test_an_error_without_streaming_is_a_500_in_openai_shape(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat([{"error": "the GPU fell over"}], stream=False)) as response:
        await response.read_head()
        body = json.loads(await response.body())

    assert response.status == 500
    assert body["error"]["type"] == "server_error"


async def test_the_connection_serves_the_next_request_after_a_stream(engine: EngineProcess) -> None:
    async with raw_request(engine, CHAT, chat(tokens("a", finish="stop"))) as response:
        await response.read_head()
        await response.body()
        response.writer.write(b"GET /v1/models HTTP/1.1\r\nHost: engine\r\n\r\n")
        await response.read_head()

        assert json.loads(await response.body())["data"][0]["id"] == "default"


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-123", True), ("a" * 128, True), ("a" * 129, False), ("has space", False), ("é", False), ("", False)],
)
async def test_a_sane_request_id_is_echoed_and_another_replaced(engine: EngineProcess, given: str, kept: bool) -> None:
    body = chat(tokens("a", finish="stop"))
    async with raw_request(engine, CHAT, body, headers={"X-Request-Id": given}) as response:
        await response.read_head()
        data = await response.body()

    got = response.headers["x-request-id"]
    assert (got == given) is kept
    assert 0 < len(got) <= 128
    assert given == "" or given.encode() not in data


async def test_a_request_id_in_flight_is_refused_and_free_again_afterwards(engine: EngineProcess) -> None:
    headers = {"x-request-id": "twice"}
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}]), headers=headers) as first:
        await first.read_head()
        async with raw_request(engine, CHAT, chat(tokens("b", finish="stop")), headers=headers) as second:
            await second.read_head()
            error = json.loads(await second.body())["error"]

    assert (second.status, error["code"]) == (409, "duplicate_request")
    for _ in range(20):
        # At once after the first client hung up: its end may not have been dealt with yet.
        async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}]), headers=headers) as again:
            await again.read_head()
            assert again.status == 200
            await next_data(again)


async def test_generated_text_is_the_same_streamed_and_whole(engine: EngineProcess) -> None:
    body = chat(max_tokens=200, temperature=0, ignore_eos=True)

    got = text_of(frames_of(await stream(engine, body)))

    assert got == (await whole(engine, body))["choices"][0]["message"]["content"]
    assert len(got) > 200


async def test_script_steps_of_several_tokens_give_the_same_answer(engine: EngineProcess) -> None:
    pieces = ["a", "b", "S", "T", "c", "d"]
    answers = set()
    for size in (1, 2, 3, 6):
        steps: list[dict[str, Any]] = [
            {"tokens": pieces[start : start + size]} for start in range(0, len(pieces), size)
        ]
        steps[-1]["finish"] = "length"
        body = chat(steps, stop=["ST"], stream_options={"include_usage": True})
        frames = frames_of(await stream(engine, body))
        answers.add((text_of(frames), *finish_reasons(frames), frames[-2]["usage"]["completion_tokens"]))

    assert answers == {("ab", "stop", 4)}


async def test_long_streams_interleave(engine: EngineProcess) -> None:
    """A hung stream does not hold another one."""
    async with raw_request(engine, CHAT, chat([*tokens("a"), {"tokens": []}])) as hung:
        await hung.read_head()
        frames = frames_of(await stream(engine, chat(tokens(*itertools.repeat("b", 50), finish="stop"))))

    assert text_of(frames) == "b" * 50
