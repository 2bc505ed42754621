"""A small reversible vocabulary: 256 bytes, special tokens, then whole words with their leading space.

Any text encodes, by longest match, and decodes to itself, since every byte is a token. Multi-byte characters
are several tokens, so that a generated text has characters that are split over tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BEGIN, END, ROLE, TURN = 256, 257, 258, 259
_FIRST_WORD = 260

_TEXT = """
the a an and or but so of to in on at by for with from into over under about after before between through is
are was were be been has have had can could will would may might must should do does did make makes made water
river stream head mountain valley lake sea rain snow cloud wind stone bridge road house field forest light day
night morning evening year time hour world people person child friend city country language word name story
answer question idea reason example number part place way thing work life hand eye voice music large small
long short old new good better best great high low fast slow bright dark warm cold clear deep begins flows
falls rises turns carries reaches leaves finds keeps gives takes brings meets grows moves runs first last next
other same more most many few some all each every both only also often never always still then now here there
where when while because until however therefore perhaps almost together again slowly
"""
WORDS = tuple(_TEXT.split())
MULTIBYTE = ("é", "ü", "ß", "日本", "東京", "水", "川", "🌊", "👩‍👩‍👧", "🇯🇵", "שלום")

_PIECES = (
    *(bytes((value,)) for value in range(256)),
    b"",
    b"",
    b"",
    b"",
    *(f" {word}".encode() for word in WORDS),
)
VOCAB_SIZE = len(_PIECES)
# Without the leading space.
_ID_OF = {piece[1:]: token for token, piece in enumerate(_PIECES) if token >= _FIRST_WORD}
_LONGEST = max(map(len, _ID_OF))
WORD_IDS = range(_FIRST_WORD, VOCAB_SIZE)


def encode(text: str) -> tuple[int, ...]:
    """Token ids of a text; lone surrogates become U+FFFD."""
    data = text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace").encode()
    # Every word starts with a space, and other bytes are their own ids.
    first, *rest = data.split(b" ")
    ids = list(first)
    for word in rest:
        token, length = _longest_match(word)
        ids.append(token)
        ids += word[length:]
    return tuple(ids)


def _longest_match(word: bytes) -> tuple[int, int]:
    """Token of a space and what follows it, and how many bytes of ``word`` that takes."""
    for length in range(min(_LONGEST, len(word)), 0, -1):
        token = _ID_OF.get(word[:length])
        if token is not None:
            return token, length
    return 0x20, 0


def piece(token: int) -> bytes:
    """Bytes of one token; special tokens have none."""
    return _PIECES[token]


def decode(ids: Sequence[int]) -> bytes:
    """Bytes of all tokens."""
    return b"".join(_PIECES[token] for token in ids)


def chat_prompt(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Role and content of each message between marks, then the assistant's turn. Raises ValueError."""
    ids: list[int] = [BEGIN]
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or not isinstance(content, str):
            raise ValueError("the chat template takes messages with a role and a text")  # noqa: TRY004 - the port's word
        ids += (ROLE, *encode(role), TURN, *encode(content), END)
    ids += (ROLE, *encode("assistant"), TURN)
    return tuple(ids)
