"""The text pipeline against its specification: any text, any tokens, any steps, any stop strings."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_engine.core.stops import StopMatcher, StopSet
from headwater_engine.core.text import TextRules, TextStream
from headwater_engine.core.utf8 import Utf8Guard, well_formed
from headwater_engine.ports import Step

# Few letters, so that stop strings occur, overlap and contain each other; and characters of 2 to 4 bytes.
ALPHABET = "abcé日🌶"
STOPS = st.lists(st.text("abcé日", min_size=1, max_size=5), max_size=4)


def specification(pieces: Sequence[str], rules: TextRules) -> tuple[str, str, int]:
    """(text, finish, tokens) by brute force: try every end, the earliest first, the longest stop first."""
    text, owner = "", []
    for number, piece in enumerate(pieces, 1):
        text += piece
        owner += [number] * len(piece)
    for end in range(1, len(text) + 1):
        ending = [stop for stop in rules.stops if text[:end].endswith(stop)]
        if ending and owner[end - 1] >= rules.min_tokens:
            stop = max(ending, key=len)
            return text[: end if rules.include_stop else end - len(stop)], "stop", owner[end - 1]
    return text, "length", len(pieces)


def run(steps: Sequence[Step], rules: TextRules) -> tuple[str, str | None, int]:
    """(text, finish, tokens) of the pipeline."""
    stream, text = TextStream(rules), ""
    for step in steps:
        delta = stream.feed(step)
        text += delta.text
        if delta.finish is not None:
            return text, delta.finish, stream.tokens
    return text, None, stream.tokens


def grouped(tokens: Sequence[bytes], sizes: Sequence[int]) -> list[Step]:
    """The same tokens in steps of given sizes, the last with a finish."""
    steps, start = [], 0
    for size in [*sizes, len(tokens)]:
        part = tuple(tokens[start : start + size])
        if part:
            steps.append(Step((0,) * len(part), "", None, raw=part))
        start += len(part)
    last = steps[-1]
    return [*steps[:-1], Step(last.token_ids, "", "length", raw=last.raw)]


@st.composite
def tokens_of_text(draw: st.DrawFn) -> list[bytes]:
    """Any text cut into tokens anywhere, inside characters too."""
    data = draw(st.text(ALPHABET, min_size=1, max_size=40)).encode()
    cuts = sorted(draw(st.sets(st.integers(1, max(len(data) - 1, 1)), max_size=20)) | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(cuts) if start < end]


RULES = st.builds(TextRules, st.builds(tuple, STOPS), include_stop=st.booleans(), min_tokens=st.integers(0, 6))


@settings(max_examples=600, deadline=None)
@given(tokens_of_text(), RULES, st.lists(st.integers(1, 5), max_size=8))
def test_answer_is_the_specification_at_any_token_and_step_size(
    tokens: list[bytes], rules: TextRules, sizes: list[int]
) -> None:
    guard = Utf8Guard()
    pieces = [guard.feed(token) for token in tokens]
    assert guard.flush() == ""

    got = run(grouped(tokens, sizes), rules)

    assert got == specification(pieces, rules)


@settings(max_examples=300, deadline=None)
@given(st.text(ALPHABET, min_size=1, max_size=40), RULES)
def test_steps_with_text_of_one_token_follow_the_same_specification(text: str, rules: TextRules) -> None:
    steps = [Step((0,), char, "length" if index == len(text) - 1 else None) for index, char in enumerate(text)]

    assert run(steps, rules) == specification(list(text), rules)


@settings(max_examples=300, deadline=None)
@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=4))
def test_only_a_proper_prefix_of_a_stop_is_ever_held_back(text: str, stops: list[str]) -> None:
    matcher = StopMatcher(StopSet(stops))

    for char in text:
        _released, stop = matcher.feed(char)
        if stop is not None:
            return
        held = matcher.held
        assert held == "" or any(each.startswith(held) and each != held for each in stops)


@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=3), st.text("abc", max_size=20))
def test_matches_below_min_tokens_are_text_and_not_held(stops: list[str], text: str) -> None:
    matcher = StopMatcher(StopSet(stops))

    released = "".join(matcher.feed(char, armed=False)[0] for char in text)

    assert released + matcher.held == text
    assert matcher.held == "" or any(each.startswith(matcher.held) and each != matcher.held for each in stops)


@pytest.mark.parametrize(
    ("pieces", "stops", "want"),
    [
        (["ab", "cd"], ("abcd", "bc"), ("a", "stop")),
        (["ab", "c"], ("abc", "bc", "c"), ("", "stop")),
        (["aa", "ab"], ("aab",), ("a", "stop")),
        (["abcab", "cd"], ("abcd",), ("abc", "stop")),
        (["日", "本語"], ("本",), ("日", "stop")),
    ],
)
def test_which_match_wins(pieces: list[str], stops: tuple[str, ...], want: tuple[str, str]) -> None:
    steps = [Step((0,), piece, None) for piece in pieces]

    assert run(steps, TextRules(stops))[:2] == want


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60), st.lists(st.integers(1, 4), max_size=20))
def test_any_bytes_in_any_pieces_decode_as_they_do_at_once(data: bytes, sizes: list[int]) -> None:
    guard, text, start = Utf8Guard(), "", 0
    for size in [*sizes, len(data)]:
        text += guard.feed(data[start : start + size])
        start += size

    assert text + guard.flush() == data.decode(errors="replace")


@pytest.mark.parametrize("text", ["日本語", "👩‍👩‍👧", "🇯🇵", "שלום", "ďábel 🌶"])
def test_no_replacement_character_for_what_is_merely_unfinished(text: str) -> None:
    guard = Utf8Guard()

    pieces = [guard.feed(bytes((byte,))) for byte in text.encode()]

    assert "".join(pieces) == text
    assert guard.flush() == ""


@pytest.mark.parametrize("token", [b"\xef\xbf\xbd", b"\x80"])
def test_real_replacement_characters_flow_at_once(token: bytes) -> None:
    guard = Utf8Guard()

    assert [guard.feed(token) for _ in range(100)] == ["\ufffd"] * 100


def test_lone_surrogates_become_replacement_characters() -> None:
    assert well_formed("a\ud800b") == "a\ufffdb"
    assert well_formed("日🌶") == "日🌶"


def test_matching_takes_linear_time() -> None:
    """The worst case for a matcher that starts over at each character."""

    def lines_run(length: int) -> int:
        matcher, count = StopMatcher(StopSet(["a" * 1000 + "b"])), 0

        def trace(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
            nonlocal count
            count += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for _ in range(length):
                matcher.feed("a")
        finally:
            sys.settrace(before)
        return count

    # Both beyond the stop string's length, where each character falls back.
    assert lines_run(20_000) - lines_run(10_000) <= 1.01 * (lines_run(12_000) - lines_run(2000))
