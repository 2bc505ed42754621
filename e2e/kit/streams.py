"""Streams opened in the background, each recorded as its client saw it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from headwater_contracts import sse


@dataclass
class Record:
    """One request as its client saw it. ``error`` is None for a stream that ended with ``[DONE]``."""

    text: str = ""
    chunks: int = 0
    finish: str | None = None
    error: str | None = None
    status: int | None = None
    group: str | None = None
    done: threading.Event = field(default_factory=threading.Event)
    first: threading.Event = field(default_factory=threading.Event)


class Stream(threading.Thread):
    """One streaming completion; ``kill`` drops its connection as a lost client would."""

    def __init__(self, url: str, body: dict[str, Any], *, path: str = "/v1/chat/completions") -> None:
        super().__init__(daemon=True)
        self.record = Record()
        self._url, self._body = f"{url}{path}", {**body, "stream": True}
        self._killed = threading.Event()
        self.start()

    def kill(self) -> None:
        """Closes the connection as soon as the next bytes arrive."""
        self._killed.set()

    def run(self) -> None:
        record = self.record
        try:
            self._read(record)
        except httpx.HTTPError as error:
            record.error = f"{type(error).__name__}: {error}"
        finally:
            record.done.set()

    def _read(self, record: Record) -> None:
        decoder, ended = sse.Decoder(), False
        timeout = httpx.Timeout(120, connect=5)
        with httpx.Client(timeout=timeout) as client, client.stream("POST", self._url, json=self._body) as response:
            record.status, record.group = response.status_code, response.headers.get("x-headwater-group")
            if response.status_code != 200:
                record.error = f"HTTP {response.status_code}: {response.read().decode()[:300]}"
                return
            for raw in response.iter_raw():
                for event in decoder.feed(raw):
                    ended = self._take(record, event.data) or ended
                if self._killed.is_set():
                    record.error = "killed"
                    return
        if not ended and record.error is None:
            record.error = "the stream ended without [DONE]"

    @staticmethod
    def _take(record: Record, data: str) -> bool:
        if data == sse.DONE_DATA:
            return True
        chunk = json.loads(data)
        if "error" in chunk:
            record.error = f"in band: {chunk['error']}"
            return False
        for choice in chunk.get("choices", ()):
            text = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
            record.text += text
            record.finish = choice.get("finish_reason") or record.finish
            if text:
                record.chunks += 1
                record.first.set()
        return False


def wait_all(streams: Sequence[Stream], timeout: float) -> list[Record]:
    """The records of all streams once they ended; raises AssertionError if one does not in time."""
    for stream in streams:
        assert stream.record.done.wait(timeout), "a stream did not end in time"
    return [stream.record for stream in streams]
