"""Which line of a termination message is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater_operator.core.last_words import last_words


def entry(**fields: Any) -> str:
    return json.dumps({"level": "info", "logger": "headwater", "timestamp": "2026-03-01T12:00:00Z"} | fields)


FAILED = entry(level="error", event="engine failed", detail="rank 3 hangs")
TRACEBACK = "Traceback (most recent call last):\n  File x, line 1\nRuntimeError: CUDA out of memory: {}"


def cut(*lines: str) -> str:
    """What the kubelet keeps of these lines of a log: its last 2048 bytes."""
    return "\n".join((entry(event="x" * 3000), *lines))[-2048:]


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ("no such model", "no such model"),
        (f"{entry(event='loading')}\n{TRACEBACK}\n", "RuntimeError: CUDA out of memory: {}"),
        (f"{entry(event='loading')}\n{FAILED}\n{entry(event='stopped')}\n", "engine failed: rank 3 hangs"),
        (entry(level="error", event="loading failed", exception=TRACEBACK), f"loading failed: {TRACEBACK[-36:]}"),
        (f"{entry(event='started')}\n{entry(message='bye')}", "bye"),
        (cut(entry(event="stopped")), "stopped"),
        (cut(), ""),
        (f"{entry(event='loading')}\n{entry(event='half')[:20]}", "loading"),
        (entry(), ""),
        ("\n \n", ""),
        ("x" * 4096, "x" * 4096),
        (None, ""),
    ],
    ids=[
        "own words",
        "traceback",
        "error before the last entry",
        "traceback in an entry",
        "last entry",
        "first line cut",
        "only line cut",
        "last line cut",
        "entry without an event",
        "blank",
        "own long words",
        "nothing",
    ],
)
def test_the_line_that_says_most_is_told_whole(message: str | None, want: str) -> None:
    assert last_words(message, 1) == want


@pytest.mark.parametrize(
    ("code", "want"), [(137, ""), (143, ""), (130, ""), (134, "boom"), (139, "boom"), (70, "boom")]
)
def test_a_process_that_was_ended_from_outside_has_no_last_words(code: int, want: str) -> None:
    assert last_words("boom", code) == want
