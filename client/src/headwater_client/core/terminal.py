"""Makes text from a server safe to write to a terminal."""

from __future__ import annotations

import re

# A model can be talked into emitting escape sequences, and those can retitle the window, move the cursor or
# fill the clipboard. C0 but newline and tab, DEL and C1 (0x9B alone is CSI) are dropped, so what follows an
# ESC shows as plain text. Lone surrogates, legal in JSON, cannot be encoded at all.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def printable(text: str) -> str:
    """``text`` without control characters other than newline and tab."""
    return encodable(_CONTROL.sub("", text))


def encodable(text: str) -> str:
    """``text`` with each lone surrogate replaced by U+FFFD."""
    return _SURROGATE.sub("�", text)
