"""Makes text safe on its way from a server to the terminal, and from the command line to a server."""

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


def sendable(text: str) -> str:
    """``text`` as JSON can carry it.

    Python keeps bytes of arguments and input that the locale cannot decode as surrogates. They are read as UTF-8, and
    what is none becomes U+FFFD.
    """
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Surrogates of another origin: a server's JSON.
        return encodable(text)
    return data.decode("utf-8", "replace")
