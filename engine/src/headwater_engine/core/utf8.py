"""Detokenizer guard: bytes of tokens in, whole characters out.

A character whose bytes are spread over tokens waits until it is whole; bytes that can't be one become U+FFFD
at once, one for each maximal ill-formed part (Unicode 16, section 3.9, as the standard library's decoder has
it), so real replacement characters flow. What is unfinished at the end is one U+FFFD.
"""

from __future__ import annotations

import codecs


class Utf8Guard:
    """One request's decoder; constant work a byte."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> str:
        """The characters that ``data`` completes."""
        return self._decoder.decode(data)

    def flush(self) -> str:
        """U+FFFD if a character is left unfinished, else nothing."""
        return self._decoder.decode(b"", final=True)


def well_formed(text: str) -> str:
    """``text`` with lone surrogates, which no encoder takes, as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
    return text
