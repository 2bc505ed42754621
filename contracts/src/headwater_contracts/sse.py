"""Server-sent events: framing for writers and an incremental decoder for readers (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

CONTENT_TYPE = "text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"
DONE_DATA = "[DONE]"
KEEP_ALIVE = b": keep-alive\n\n"
RESPONSE_HEADERS = (
    (b"content-type", CONTENT_TYPE.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


def data_frame(payload: bytes) -> bytes:
    """One unnamed event. ``payload`` must hold no bare newline: JSON written on one line has none."""
    return b"data: " + payload + b"\n\n"


@dataclass(frozen=True, slots=True)
class Event:
    """A dispatched event; ``id`` is the last one seen on the stream."""

    data: str
    event: str = "message"
    id: str | None = None


class Decoder:
    """Turns byte chunks, split anywhere, into events. CR, LF and CRLF all end a line."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._line = ""
        self._after_cr = False
        self._first = True
        self._data: list[str] = []
        self._event = ""
        self._id: str | None = None
        self.retry_milliseconds: int | None = None

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events that ``chunk`` completes."""
        text = self._decode.decode(chunk)
        if self._first and text:
            text, self._first = text.removeprefix("\ufeff"), False
        if self._after_cr and text:
            text, self._after_cr = text.removeprefix("\n"), False
        self._after_cr = self._after_cr or text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            event = self._take(self._line + line)
            self._line = ""
            if event is not None:
                yield event
        self._line += rest

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry_milliseconds = int(value)
        return None

    def _dispatch(self) -> Event | None:
        data, name = self._data, self._event or "message"
        self._data, self._event = [], ""
        return Event("\n".join(data), name, self._id) if data else None
