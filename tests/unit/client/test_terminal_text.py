"""Text from a server cannot drive the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_client.core.terminal import encodable, printable, sendable


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x1b]0;title\x07", "]0;title"),
        ("\x9b2J", "2J"),
        ("a\r\nb\tc\x7f\x08", "a\nb\tc"),
        ("日本語 👩‍👩‍👧 עברית", "日本語 👩‍👩‍👧 עברית"),
        ("\ud83d", "�"),
    ],
)
def test_control_characters_are_dropped_and_text_is_kept(text: str, want: str) -> None:
    assert printable(text) == want


@given(st.text())
def test_what_is_printed_holds_no_control_character_and_can_be_encoded(text: str) -> None:
    got = printable(text)
    assert not [char for char in got if (ord(char) < 32 or 127 <= ord(char) < 160) and char not in "\n\t"]
    assert got.encode().decode() == got


def test_raw_text_keeps_control_characters() -> None:
    assert encodable("\x1b[1m\ud800") == "\x1b[1m�"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("héé 👩‍👩‍👧", "héé 👩‍👩‍👧"),
        ("\udcc3\udca9", "é"),
        ("\udcff", "\ufffd"),
        ("\ud83dé\udcff", "\ufffdé\ufffd"),
    ],
)
def test_what_is_sent_is_what_the_bytes_of_the_command_line_say(text: str, want: str) -> None:
    assert sendable(text) == want


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_sent(text: str) -> None:
    sendable(text).encode()
