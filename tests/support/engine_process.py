"""Runs the real engine process with the simulated backend, and talks to it over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

PATIENCE_SECONDS = 60.0
"""Deadline of every wait: far beyond what a busy machine needs."""
MODEL = "default"


@dataclass
class EngineProcess:
    """One running engine."""

    process: subprocess.Popen[bytes]
    log: Path
    http_port: int
    admin_port: int
    client: httpx.Client
    """Kept for all calls: a new one each time costs more than the call."""

    @property
    def url(self) -> str:
        """Base URL of the HTTP port."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def admin_url(self) -> str:
        """Base URL of the admin port."""
        return f"http://127.0.0.1:{self.admin_port}"

    def logs(self) -> list[dict[str, Any]]:
        """The log so far, line by line; what is no JSON object is a failure."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def state(self) -> dict[str, Any]:
        """The admin state."""
        body = self.client.get(f"{self.admin_url}/admin/state").json()
        assert isinstance(body, dict)
        return body

    def admin(self, path: str, **body: Any) -> httpx.Response:
        """A POST to the admin port."""
        return self.client.post(f"{self.admin_url}{path}", json=body)

    def get(self, path: str) -> httpx.Response:
        """A GET to the HTTP port."""
        return self.client.get(f"{self.url}{path}")

    def metrics(self) -> str:
        """The metrics page."""
        return self.client.get(f"{self.admin_url}/metrics").text

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the engine."""
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Waits for the end."""
        return self.process.wait(PATIENCE_SECONDS)

    def wait(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Waits until the admin state meets a condition, and returns it."""
        found: dict[str, Any] = {}

        def met() -> bool:
            found.update(self.state())
            return condition(found)

        wait_until(met, lambda: f"state: {_brief(found)}")
        return found

    def wait_idle(self) -> None:
        """Waits until nothing runs, waits or holds KV."""
        self.wait(lambda state: (state["running"], state["waiting"], state["kv_used_blocks"]) == (0, 0, 0))


def wait_until(condition: Callable[[], bool], describe: Callable[[], str] = lambda: "") -> None:
    """Waits for a condition with a generous deadline."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"condition not met in {PATIENCE_SECONDS:g} s. {describe()}")
        pause.wait(0.02)


async def wait_for(condition: Callable[[], bool], describe: Callable[[], str] = lambda: "") -> None:
    """``wait_until`` without holding the loop."""
    await asyncio.to_thread(wait_until, condition, describe)


@contextmanager
def engine_process(
    directory: Path, env: Mapping[str, str] | None = None, *, ready: bool = True, **more: str
) -> Iterator[EngineProcess]:
    """A running engine on free ports; Names in ``env`` and ``more`` lack the prefix HEADWATER_. Ends it at exit."""
    log = directory / f"engine-{time.monotonic_ns()}.log"
    values = {
        "BACKEND": "sim", "SIM_PROFILE": "test-fast", "SIM_SCRIPTS": "1", "HTTP_PORT": "0", "ADMIN_PORT": "0",
        "ENDPOINT_SETTLE_SECONDS": "0", "GROUP": "test-group",
    } | dict(env or {}) | more  # fmt: skip
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("HEADWATER_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater_engine"],
            env=inherited | {f"HEADWATER_{key}": value for key, value in values.items()},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        ports = _ports(process, log)
        with httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False, verify=False) as client:
            engine = EngineProcess(process, log, *ports, client)
            if ready:
                engine.wait(lambda state: state["phase"] == "ready")
            yield engine
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_SECONDS)


def _ports(process: subprocess.Popen[bytes], log: Path) -> tuple[int, int]:
    found: list[tuple[int, int]] = []

    def listening() -> bool:
        for line in log.read_text().splitlines():
            event = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
            if event.get("event") == "listening":
                found.append((event["http_port"], event["admin_port"]))
        return bool(found) or process.poll() is not None

    wait_until(listening, log.read_text)
    assert found, f"the engine exited with {process.returncode}:\n{log.read_text()}"
    return found[0]


def _brief(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in ("ttft", "itl")}


class RawResponse:
    """One HTTP/1.1 exchange on a bare socket: what comes, when, and nothing hidden."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}

    async def read_head(self) -> None:
        """Status and headers."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.status = int(head[0].split()[1])
        self.headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}

    async def chunks(self) -> AsyncIterator[bytes]:
        """Chunks of the body as the server framed them; ends at the last one. Raises on a cut."""
        while True:
            async with asyncio.timeout(PATIENCE_SECONDS):
                size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
                data = await self.reader.readexactly(size + 2)
            if size == 0:
                return
            yield data[:-2]

    async def body(self) -> bytes:
        """The whole body, by content-length or chunked."""
        if "content-length" in self.headers:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self.reader.readexactly(int(self.headers["content-length"]))
        return b"".join([chunk async for chunk in self.chunks()])


@asynccontextmanager
async def raw_request(
    engine: EngineProcess, path: str, body: Any, *, headers: dict[str, str] | None = None, method: str = "POST"
) -> AsyncIterator[RawResponse]:
    """Sends a request on a connection of its own; leaving closes the connection, whatever came so far."""
    reader, writer = await asyncio.open_connection("127.0.0.1", engine.http_port, limit=2**24)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: engine", f"Content-Length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data)
        await writer.drain()
        yield RawResponse(reader, writer)
    finally:
        writer.transport.abort()


def chat(script: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    """A chat body, streaming, with a script if given."""
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    if script is not None:
        body["headwater_script"] = script
    return body | fields


def tokens(*pieces: Any, delay_ms: float = 0, finish: str | None = None) -> list[dict[str, Any]]:
    """A script of one token a step; ``bytes`` pieces become base64. The last step has ``finish``."""
    import base64

    steps: list[dict[str, Any]] = [
        {
            "tokens": [{"b64": base64.b64encode(piece).decode()} if isinstance(piece, bytes) else piece],
            "delay_ms": delay_ms,
        }
        for piece in pieces
    ]
    if finish is not None:
        steps[-1]["finish"] = finish
    return steps


def frames_of(data: bytes) -> list[Any]:
    """Parsed data frames of a stream; the end mark stays a text."""
    found: list[Any] = []
    for block in data.split(b"\n\n"):
        for line in block.split(b"\n"):
            if line.startswith(b"data: "):
                found.append("[DONE]" if line == b"data: [DONE]" else json.loads(line[6:]))
            else:
                assert line == b"" or line.startswith(b":"), f"neither data nor comment: {line!r}"
    return found


def text_of(frames: list[Any]) -> str:
    """Joined content of the chunks of one stream."""
    choices = [choice for frame in frames if frame != "[DONE]" for choice in frame.get("choices", [])]
    return "".join(
        choice["text"] if "text" in choice else choice["delta"].get("content", "") or "" for choice in choices
    )


def finish_reasons(frames: list[Any]) -> list[str]:
    """All finish reasons of a stream that are not null."""
    choices = [choice for frame in frames if frame != "[DONE]" for choice in frame.get("choices", [])]
    return [choice["finish_reason"] for choice in choices if choice["finish_reason"] is not None]
