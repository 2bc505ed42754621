"""A small HTTP server on a real socket whose every byte a test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

DEADLINE_SECONDS = 60.0


def chunk_event(text: str | None = None, *, finish: str | None = None, usage: tuple[int, int] | None = None) -> bytes:
    """One ``chat.completion.chunk`` event."""
    body: dict[str, Any] = {"id": "x", "object": "chat.completion.chunk", "choices": []}
    if text is not None or finish is not None:
        delta = {} if text is None else {"content": text}
        body["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def json(self) -> Any:
        """The request's body."""
        return json.loads(self.body)

    async def begin(self, status: str = "200 OK", content_type: str = "text/event-stream", **extra: str) -> None:
        """Sends the status line and headers of a chunked response."""
        lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in extra.items()]
        await self.send_raw("\r\n".join([*lines, "", ""]).encode())

    async def send(self, payload: bytes) -> None:
        """Sends one piece of the body, alone in its segment."""
        await self.send_raw(b"%x\r\n%s\r\n" % (len(payload), payload))

    async def send_raw(self, payload: bytes) -> None:
        """Sends bytes as they are."""
        self.writer.write(payload)
        await self.writer.drain()

    async def end(self) -> None:
        """Ends the chunked body; the connection stays open."""
        await self.send_raw(b"0\r\n\r\n")

    async def stream(self, *events: bytes) -> None:
        """A whole answer: headers, each event by itself, the end of the body."""
        await self.begin()
        for event in events:
            await self.send(event)
        await self.end()

    async def respond_json(self, body: Any, status: str = "200 OK", **extra: str) -> None:
        """A whole JSON answer."""
        await self.begin(status, "application/json", **extra)
        await self.send(json.dumps(body).encode())
        await self.end()

    async def disconnected(self) -> None:
        """Waits until the client has closed its side."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                while await self.reader.read(4096):
                    pass
            except ConnectionError:
                return

    def hang_up(self) -> None:
        """Closes the connection at once."""
        self.writer.close()


Script = Callable[[Exchange], Awaitable[None]]


@dataclass
class ScriptedServer:
    """Answers ``/v1/models`` by itself, and everything else by ``script``."""

    script: Script
    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)
    models: tuple[str, ...] = ("tiny",)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles the requests of one connection."""
        try:
            while (exchange := await _read_request(reader, writer)) is not None:
                self.exchanges.append(exchange)
                if exchange.path == "/v1/models":
                    await exchange.respond_json({"object": "list", "data": [{"id": name} for name in self.models]})
                else:
                    await self.script(exchange)
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted_server(script: Script) -> AsyncIterator[ScriptedServer]:
    """Serves on a free loopback port."""
    server = ScriptedServer(script)
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        await server.serve(reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in connections:
            task.cancel()
        for result in await asyncio.gather(*connections, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    request_line, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = request_line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(method, path, headers, body, reader, writer)
