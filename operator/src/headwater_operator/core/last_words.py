"""What an ended container had to say, in one whole line.

The kubelet gives the end of the log where the engine left no message of its own: whole lines of JSON or text, the
first of them cut if it did not fit. Worked example, for an engine that exits with code 1::

    …d8","level":"info","event":"model loaded"}                     cut: no use
    {"level":"error","event":"engine failed","detail":"rank 3 hangs"}   chosen: engine failed: rank 3 hangs
    {"level":"info","event":"stopped"}                                  said after the error

A process that a signal from outside ended was in the middle of something else: its log says nothing about the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from signal import Signals
from typing import Any

_CUT_BYTES = range(2040, 2057)
"""The kubelet keeps 2048 bytes of a log's end, the first line cut, and may mend a character that was cut too."""
_FROM_OUTSIDE = frozenset(128 + number for number in (Signals.SIGKILL, Signals.SIGTERM, Signals.SIGINT, Signals.SIGHUP))
_BAD_LEVELS = frozenset({"error", "critical", "fatal", "exception"})
_EVENT_KEYS = ("event", "message", "msg")
_DETAIL_KEYS = ("detail", "error", "exception", "reason")


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    tells: bool
    """An error, or text that no logger made, such as the last line of a traceback."""


def last_words(message: str | None, exit_code: int | None) -> str:
    """The line of a termination message that says most about the end; empty if there is none."""
    if not message or exit_code in _FROM_OUTSIDE:
        return ""
    lines = list(_lines(message))
    telling = next((line.text for line in reversed(lines) if line.tells), None)
    return telling or (lines[-1].text if lines else "")


def _lines(message: str) -> Iterator[_Line]:
    whole = message.splitlines()
    if len(message.encode()) in _CUT_BYTES:
        del whole[0]
    for text in (line.strip() for line in whole):
        if text.startswith("{"):
            yield from _log_entry(text)
        elif text:
            yield _Line(text, tells=True)


def _log_entry(text: str) -> Iterator[_Line]:
    """One entry, or none if it is cut or says nothing."""
    try:
        entry = json.loads(text)
    except ValueError:
        return
    event, detail = _last_line(entry, _EVENT_KEYS), _last_line(entry, _DETAIL_KEYS)
    if event:
        said = f"{event}: {detail}" if detail else event
        yield _Line(said, tells=str(entry.get("level", "")).lower() in _BAD_LEVELS)


def _last_line(entry: dict[str, Any], keys: Iterable[str]) -> str:
    """Of the first of these fields that is set: the last line of a traceback is what went wrong."""
    text = next((str(entry[key]) for key in keys if entry.get(key)), "").strip()
    return text.rpartition("\n")[2].strip()
