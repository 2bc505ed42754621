"""``headwater chat`` as a process, against a server whose every byte the test decides."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import sys
from asyncio.subprocess import PIPE

import pytest

from support import headwater_command as headwater
from support.scripted_sse import DONE, Exchange, Script, chunk_event, scripted_server

ANSWER = (
    chunk_event(""),
    chunk_event("Par"),
    chunk_event("is."),
    chunk_event(finish="stop"),
    chunk_event(usage=(9, 5)),
    DONE,
)


async def _answer(exchange: Exchange) -> None:
    await exchange.stream(*ANSWER)


async def test_tokens_are_shown_as_they_arrive() -> None:
    """Each token is sent only after the one before it was seen on standard output."""
    shown = asyncio.Semaphore(0)

    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        for text in ("one ", "二 ", "three"):
            await exchange.send(chunk_event(text))
            await shown.acquire()
        await exchange.send(chunk_event(finish="stop") + DONE)
        await exchange.end()

    async with asyncio.timeout(60), scripted_server(script) as server:
        process = await headwater.start("chat", "--url", server.url, "hi")
        assert process.stdout is not None
        for want in ("one ", "二 ", "three"):
            assert (await process.stdout.readexactly(len(want.encode()))).decode() == want
            shown.release()
        got = await headwater.finish(process)
    assert got.code == 0, got.err


async def test_the_answer_goes_to_stdout_and_the_figures_to_stderr() -> None:
    async with scripted_server(_answer) as server:
        got = await headwater.run("chat", "--url", server.url, "What", "is", "it?")
        quiet = await headwater.run("chat", "--no-stats", "hi", HEADWATER_URL=server.url)
    assert (got.code, got.out) == (0, "Paris.\n")
    assert "TTFT" in got.err
    assert "5 tokens" in got.err
    assert server.exchanges[1].json["messages"] == [{"role": "user", "content": "What is it?"}]
    assert server.exchanges[1].json["model"] == "tiny"
    assert (quiet.code, quiet.out, quiet.err) == (0, "Paris.\n", "")


async def test_options_reach_the_request_and_the_prompt_may_come_from_stdin() -> None:
    options = ("--model", "m", "--system", "Be brief.", "--max-tokens", "9", "--temperature", "0.5", "--seed", "3")
    async with scripted_server(_answer) as server:
        got = await headwater.run("chat", *options, "--url", server.url, stdin=b"from a pipe", HEADWATER_API_KEY="k")
        (exchange,) = server.exchanges
    assert got.code == 0, got.err
    assert exchange.headers["authorization"] == "Bearer k"
    body = exchange.json
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "from a pipe"},
    ]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m", 9, 0.5, 3)


async def test_control_characters_of_the_model_do_not_reach_the_terminal() -> None:
    events = (chunk_event("\x1b]0;x\x07\x1b[2J"), chunk_event("a\tb\n\x9b1mc"), chunk_event(finish="stop"), DONE)
    async with scripted_server(lambda exchange: exchange.stream(*events)) as server:
        got = await headwater.run("chat", "--url", server.url, "hi")
        raw = await headwater.run("chat", "--raw", "--url", server.url, "hi")
    assert got.out == "]0;x[2Ja\tb\n1mc\n"
    assert raw.out == "\x1b]0;x\x07\x1b[2Ja\tb\n\x9b1mc"


async def test_control_characters_of_an_error_do_not_reach_the_terminal() -> None:
    error = {"error": {"message": "no\x1b[2J"}}
    async with scripted_server(lambda exchange: exchange.respond_json(error, "400 Bad Request")) as server:
        got = await headwater.run("chat", "--url", server.url, "hi")
    assert got.code == 1
    assert "no[2J" in got.err
    assert "\x1b" not in got.err


async def test_ctrl_c_closes_the_stream_and_exits_130() -> None:
    gone = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunk_event("one"))
        await exchange.disconnected()
        gone.set()

    async with scripted_server(script) as server:
        process = await headwater.start("chat", "--url", server.url, "hi")
        assert process.stdout is not None
        assert await process.stdout.readexactly(3) == b"one"
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            await gone.wait()
        got = await headwater.finish(process)
    assert (got.code, got.out, got.err) == (130, "\n", "")


async def _truncated(exchange: Exchange) -> None:
    await exchange.stream(*ANSWER[:3])


async def _in_band(exchange: Exchange) -> None:
    await exchange.stream(ANSWER[1], b'data: {"error": {"message": "out of memory", "code": "engine_dead"}}\n\n', DONE)


async def _unknown_model(exchange: Exchange) -> None:
    await exchange.respond_json({"error": {"message": "no model 'x'"}}, "404 Not Found")


async def _draining(exchange: Exchange) -> None:
    body = {"error": {"message": "draining"}}
    await exchange.respond_json(body, "503 Service Unavailable", retry_after="5", x_headwater_reason="draining")


@pytest.mark.parametrize(
    ("script", "out", "err"),
    [
        (_truncated, "Paris.\n", ("incomplete", "[DONE]")),
        (_in_band, "Par\n", ("out of memory", "engine_dead")),
        (_unknown_model, "", ("404", "no model 'x'", "--model")),
        (_draining, "", ("503", "draining", "Try again in 5 s")),
    ],
)
async def test_a_failed_answer_says_why_and_exits_1(script: Script, out: str, err: tuple[str, ...]) -> None:
    async with scripted_server(script) as server:
        got = await headwater.run("chat", "--url", server.url, "hi")
    assert (got.code, got.out) == (1, out)
    for want in err:
        assert want in got.err
    assert "Traceback" not in got.err


async def test_a_refused_connection_says_what_to_do() -> None:
    async with scripted_server(_answer) as server:
        url = server.url
    got = await headwater.run("chat", "--url", url, "hi")
    assert (got.code, got.out) == (1, "")
    assert f"cannot reach {url}: Connection refused" in got.err
    assert "--url" in got.err


@pytest.mark.parametrize(
    "args",
    [
        ("chat", "--url", "nonsense", "hi"),
        ("chat", "--url", "http://127.0.0.1:65536", "hi"),
        ("chat", ""),
        ("chat", "--max-tokens", "0", "hi"),
        ("chat", "--temperature", "inf", "hi"),
        ("chat", "--temperature", "nan", "hi"),
        ("chat", "--silence-timeout", "inf", "hi"),
        ("chat", "--api-key", "schlüssel", "hi"),
        ("chat", "--api-key", "two\nlines", "hi"),
        ("bench", "--rate", "inf"),
        ("bench", "--timeout", "inf"),
        ("chat", "--x"),
    ],
    ids=" ".join,
)
async def test_wrong_usage_exits_2(args: tuple[str, ...]) -> None:
    got = await headwater.run(*args)
    assert (got.code, got.out) == (2, "")
    assert "Traceback" not in got.err
    assert "schlüssel" not in got.err


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("piped", [True, False], ids=["stdin", "argument"])
async def test_a_prompt_of_any_bytes_reaches_the_server_whatever_the_locale(locale: str, piped: bool) -> None:
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    prompt = "Grüße ".encode() + b"\xff!"
    async with scripted_server(_answer) as server:
        args = ("chat", "--model", "m", "--url", server.url, *(() if piped else (os.fsdecode(prompt),)))
        got = await headwater.run(*args, stdin=prompt if piped else None, **env)
        (exchange,) = server.exchanges
    assert (got.code, got.out) == (0, "Paris.\n")
    assert exchange.json["messages"] == [{"role": "user", "content": "Grüße \ufffd!"}]


async def test_a_full_disk_is_said_and_exits_1() -> None:
    async with scripted_server(_answer) as server:
        full = os.open("/dev/full", os.O_WRONLY)
        process = await headwater.start("chat", "--model", "m", "--url", server.url, "hi", stdout=full)
        os.close(full)
        got = await headwater.finish(process)
    assert (got.code, got.err) == (1, "headwater: cannot go on: No space left on device\n")


@pytest.mark.parametrize(
    ("closed", "code", "out"), [("2>&-", 0, "Paris.\n"), (">&-", 0, ""), ("<&-", 0, "Paris.\n")], ids=str
)
async def test_a_standard_stream_may_be_closed(closed: str, code: int, out: str) -> None:
    async with scripted_server(_answer) as server:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", f'exec "$@" {closed}', "sh",
            sys.executable, "-m", "headwater_client", "chat", "--model", "m", "--url", server.url, "hi",
            stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        got = await headwater.finish(process)
    assert (got.code, got.out) == (code, out)
    assert "Traceback" not in got.err


async def test_proxy_variables_that_are_no_proxy_are_said() -> None:
    got = await headwater.run("chat", "--model", "m", "hi", http_proxy="nonsense://x", no_proxy="")
    assert got.code == 1
    assert "proxy" in got.err
    assert "Traceback" not in got.err


async def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin()
        with contextlib.suppress(ConnectionError):
            while True:
                await exchange.send(chunk_event("spam "))

    read, write = os.pipe()
    async with scripted_server(script) as server:
        process = await headwater.start("chat", "--url", server.url, "hi", stdout=write)
        os.close(write)
        assert await asyncio.to_thread(os.read, read, 5) == b"spam "
        os.close(read)
        got = await headwater.finish(process)
    assert got.code != 0
    assert got.err == ""


async def test_version_is_printed() -> None:
    got = await headwater.run("version")
    assert (got.code, got.err) == (0, "")
    assert got.out.startswith("headwater ")


class _Terminal:
    """The test's end of a pseudo-terminal."""

    def __init__(self) -> None:
        self.fd, self.child = pty.openpty()
        self.seen = ""

    async def expect(self, want: str) -> None:
        """Reads until ``want`` was shown, and forgets all up to it."""
        async with asyncio.timeout(60):
            while want not in self.seen:
                self.seen += (await asyncio.to_thread(os.read, self.fd, 4096)).decode()
        self.seen = self.seen.split(want, 1)[1]

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self.fd, keys.encode())


async def test_a_conversation_keeps_its_history_and_survives_an_interrupted_answer() -> None:
    gone = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        if exchange.json["messages"][-1]["content"] != "hang":
            await exchange.stream(*ANSWER)
            return
        await exchange.begin()
        await exchange.send(chunk_event("hanging"))
        await exchange.disconnected()
        gone.set()

    terminal = _Terminal()
    async with scripted_server(script) as server:
        process = await headwater.start(
            "chat", "--model", "m", "--url", server.url, stdin=terminal.child, stdout=terminal.child, TERM="dumb"
        )
        os.close(terminal.child)
        await terminal.expect("> ")
        terminal.type("first\n")
        await terminal.expect("Paris.")
        await terminal.expect("> ")
        terminal.type("hang\n")
        await terminal.expect("hanging")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            await gone.wait()
        await terminal.expect("> ")
        terminal.type("second\n")
        await terminal.expect("Paris.")
        await terminal.expect("> ")
        terminal.type("\x04")
        got = await headwater.finish(process)
        histories = [[message["content"] for message in exchange.json["messages"]] for exchange in server.exchanges]
    os.close(terminal.fd)
    assert got.code == 0, got.err
    assert histories == [["first"], ["first", "Paris.", "hang"], ["first", "Paris.", "second"]]
    assert got.err.count("TTFT") == 2
