"""The streaming client on a real socket: timing, splits, and every way to fail."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from headwater_client.core.chunks import Chunk
from headwater_client.core.failures import Failure, FailureKind, RequestError, describe
from headwater_client.stream import ChatRequest, base_url, first_model, open_client, stream_chat
from support.scripted_sse import DONE, Exchange, Script, chunk_event, scripted_server

REQUEST = ChatRequest("tiny", ({"role": "user", "content": "hi"},), max_tokens=5, temperature=0.0, seed=7)
WHOLE = (chunk_event(""), chunk_event("Pa"), chunk_event("ris"), chunk_event(finish="stop"), DONE)


def _ticks() -> Callable[[], float]:
    numbers = itertools.count(1)
    return lambda: float(next(numbers))


async def _collect(script: Script, *, silence_seconds: float = 60.0) -> list[Chunk]:
    async with scripted_server(script) as server, open_client(server.url, silence_seconds=silence_seconds) as client:
        return [chunk async for chunk in stream_chat(client, REQUEST, _ticks())]


async def _failure(script: Script, **options: float) -> Failure:
    with pytest.raises(RequestError) as caught:
        await _collect(script, **options)
    return caught.value.failure


async def test_the_request_carries_what_was_asked_for_and_asks_for_usage() -> None:
    async with scripted_server(lambda exchange: exchange.stream(*WHOLE)) as server:
        async with open_client(server.url + "/v1/", api_key="s3cret") as client:
            assert [chunk async for chunk in stream_chat(client, REQUEST, _ticks())]
        (got,) = server.exchanges
    assert (got.method, got.path) == ("POST", "/v1/chat/completions")
    assert got.headers["authorization"] == "Bearer s3cret"
    assert got.headers["accept-encoding"] == "identity", "compression would hold tokens back"
    assert got.json == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 5,
        "temperature": 0.0,
        "seed": 7,
    }


async def test_each_chunk_is_yielded_before_the_next_one_is_sent() -> None:
    """The server waits for each chunk to come out of the client: any buffering would deadlock."""
    taken = asyncio.Semaphore(0)

    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        for event in (chunk_event("one"), chunk_event("two"), chunk_event("three", finish="stop")):
            await exchange.send(event)
            await taken.acquire()
        await exchange.send(DONE)
        await exchange.end()

    got = []
    async with asyncio.timeout(60), scripted_server(script) as server, open_client(server.url) as client:
        async for chunk in stream_chat(client, REQUEST, _ticks()):
            got.append((chunk.at_seconds, chunk.text))
            taken.release()
    assert got == [(1.0, "one"), (2.0, "two"), (3.0, "three")]


async def test_chunks_that_arrive_together_share_one_time_of_receipt() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunk_event("a") + chunk_event("b"))
        await exchange.send(chunk_event("c", finish="stop") + DONE)
        await exchange.end()

    got = await _collect(script)
    assert got[0].at_seconds == got[1].at_seconds
    assert [chunk.text for chunk in got] == ["a", "b", "c"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
async def test_a_stream_split_anywhere_gives_the_same_text(size: int) -> None:
    text = ["日本", "👩‍👩‍👧", "é\r\n\u2028", "עברית"]
    body = b"".join([b": keep-alive\n\n", *map(chunk_event, text), chunk_event(finish="stop"), DONE])
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    got = await _collect(lambda exchange: exchange.stream(*pieces))
    assert [chunk.text for chunk in got if chunk.text] == text


async def test_a_connection_serves_the_next_request_after_a_whole_answer() -> None:
    async with scripted_server(lambda exchange: exchange.stream(*WHOLE)) as server, open_client(server.url) as client:
        for _ in range(3):
            assert [chunk async for chunk in stream_chat(client, REQUEST, _ticks())]
        ports = {exchange.writer.get_extra_info("peername") for exchange in server.exchanges}
    assert len(ports) == 1


async def test_closing_the_stream_closes_the_connection() -> None:
    gone = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunk_event("one"))
        await exchange.disconnected()
        gone.set()

    async with scripted_server(script) as server, open_client(server.url) as client:
        stream = stream_chat(client, REQUEST, _ticks())
        assert (await anext(stream)).text == "one"
        await stream.aclose()
        async with asyncio.timeout(60):
            await gone.wait()


async def test_the_first_listed_model_is_the_default() -> None:
    async with scripted_server(lambda exchange: exchange.stream(*WHOLE)) as server, open_client(server.url) as client:
        server.models = ("first", "second")
        assert await first_model(client) == "first"
        server.models = ()
        with pytest.raises(RequestError, match="lists no model"):
            await first_model(client)


async def test_a_refused_connection_is_a_connect_failure() -> None:
    async with scripted_server(lambda exchange: exchange.end()) as server:
        url = server.url
    async with open_client(url) as client:
        with pytest.raises(RequestError) as caught:
            await anext(stream_chat(client, REQUEST, _ticks()))
    got = caught.value.failure
    assert (got.kind, got.message) == (FailureKind.CONNECT, "Connection refused")
    assert url in describe(got, url)


async def _hang_up(exchange: Exchange) -> None:
    exchange.hang_up()


async def _hang_up_mid_stream(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.send(chunk_event("one"))
    exchange.hang_up()


async def _silent(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.disconnected()


async def _json_instead_of_a_stream(exchange: Exchange) -> None:
    await exchange.respond_json({"choices": []})


async def _not_gzip(exchange: Exchange) -> None:
    await exchange.begin(content_encoding="gzip")
    await exchange.send(b"data: plain")


ERROR_EVENT = b'data: {"error": {"message": "rank 3 died", "type": "server_error", "code": "engine_dead"}}\n\n'

FAILURES: dict[str, tuple[Callable[[Exchange], Awaitable[None]], FailureKind, str]] = {
    "closed before the status line": (_hang_up, FailureKind.CONNECT, "disconnected"),
    "closed mid-stream": (_hang_up_mid_stream, FailureKind.TRUNCATED, "before [DONE]"),
    "body ends without DONE": (lambda e: e.stream(*WHOLE[:-1]), FailureKind.TRUNCATED, "without [DONE]"),
    "DONE without a finish reason": (lambda e: e.stream(WHOLE[1], DONE), FailureKind.TRUNCATED, "finish reason"),
    "error event": (lambda e: e.stream(WHOLE[1], ERROR_EVENT, DONE), FailureKind.IN_BAND, "rank 3 died"),
    "silence": (_silent, FailureKind.TIMEOUT, "nothing for too long"),
    "garbage event": (lambda e: e.stream(b"data: <html>\n\n", DONE), FailureKind.PROTOCOL, "<html>"),
    "too deep an event": (lambda e: e.stream(b"data: " + b"[" * 100_000 + b"\n\n"), FailureKind.PROTOCOL, "[[["),
    "an encoding that it is not": (_not_gzip, FailureKind.PROTOCOL, "decoded"),
    "not a stream": (_json_instead_of_a_stream, FailureKind.PROTOCOL, "application/json"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_each_way_to_fail_has_its_kind(name: str) -> None:
    script, kind, text = FAILURES[name]
    got = await _failure(script, silence_seconds=0.3 if kind is FailureKind.TIMEOUT else 60.0)
    assert got.kind is kind
    assert text in got.message


async def test_an_error_whose_body_is_cut_off_keeps_its_status() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin("500 Internal Server Error", "text/plain")
        await exchange.send(b"half of")
        exchange.hang_up()

    got = await _failure(script)

    assert (got.kind, got.status, got.message) == (FailureKind.HTTP, 500, "half of")


@pytest.mark.parametrize(
    ("status", "extra", "retry_after_seconds", "advice"),
    [
        ("503 Service Unavailable", {"retry_after": "3", "x_headwater_reason": "draining"}, 3.0, "Try again in 3 s"),
        ("503 Service Unavailable", {"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None, "503"),
        ("404 Not Found", {}, None, "/v1/models"),
        ("401 Unauthorized", {}, None, "HEADWATER_API_KEY"),
    ],
)
async def test_an_http_error_keeps_status_message_and_retry_after(
    status: str, extra: dict[str, str], retry_after_seconds: float | None, advice: str
) -> None:
    body = {"error": {"message": "the engine says no", "code": "nope"}}
    got = await _failure(lambda exchange: exchange.respond_json(body, status, **extra))
    assert (got.kind, got.status, got.message, got.code) == (
        FailureKind.HTTP, int(status[:3]), "the engine says no", "nope",
    )  # fmt: skip
    assert got.retry_after_seconds == retry_after_seconds
    assert got.reason == extra.get("x_headwater_reason")
    assert advice in describe(got, "http://x")


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "", "http://x:y"])
def test_a_bad_url_is_refused_before_any_connection(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        base_url(url)


@pytest.mark.parametrize("url", ["http://x:1", "http://x:1/", "http://x:1/v1", "http://x:1/v1/"])
def test_a_url_is_taken_with_and_without_v1(url: str) -> None:
    assert base_url(url) == "http://x:1"
