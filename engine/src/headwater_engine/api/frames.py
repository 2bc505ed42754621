"""Answer bodies and stream frames. Frames are formatted once a request; a delta only fills in its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import orjson

from headwater_contracts import sse
from headwater_engine.core.generation import Usage
from headwater_engine.ports import FinishReason


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What every frame of one answer repeats."""

    id: str
    created: int
    model: str


def json_text(text: str) -> bytes:
    """A JSON string that is one line for every reader.

    U+2028, U+2029 and U+0085 end a line for clients that split lines the Unicode way.
    """
    data = orjson.dumps(text)
    if not text.isascii():
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        data = data.replace(b"\xc2\x85", b"\\u0085")
    return data


def usage_json(usage: Usage) -> dict[str, int]:
    """OpenAI's usage object."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    }


class Frames(ABC):
    """Frames of one stream. Subclasses say where the text goes and what the objects are called."""

    chunk_object = ""
    answer_object = ""
    _before_text = b""
    _after_text = b""
    _final = b""

    def __init__(self, head: AnswerHead, *, include_usage: bool, continuous_usage: bool) -> None:
        self._head = head
        self._include_usage = include_usage
        self._continuous_usage = continuous_usage
        fields = {"id": head.id, "object": self.chunk_object, "created": head.created, "model": head.model}
        self._prefix = b"data: " + orjson.dumps(fields)[:-1]
        self._open = self._prefix + b',"choices":[{"index":0,' + self._before_text

    def first(self, usage: Usage) -> bytes:
        """What goes before the first text."""
        return b""

    def text(self, text: str, usage: Usage) -> bytes:
        """A piece of the answer."""
        return self._open + json_text(text) + self._after_text + self._tail(usage)

    def finish(self, reason: FinishReason, usage: Usage) -> bytes:
        """The one frame with a finish_reason, which carries no text; then usage, if asked for, and the end."""
        choice = b',"choices":[{"index":0,' + self._final + b'"finish_reason":"' + reason.encode() + b'"}]'
        out = self._prefix + choice + self._tail(usage)
        if self._include_usage:
            out += self._prefix + b',"choices":[],"usage":' + orjson.dumps(usage_json(usage)) + b"}\n\n"
        return out + sse.DONE

    def _tail(self, usage: Usage) -> bytes:
        if self._continuous_usage:
            return b',"usage":' + orjson.dumps(usage_json(usage)) + b"}\n\n"
        return b',"usage":null}\n\n' if self._include_usage else b"}\n\n"

    def answer(self, text: str, reason: FinishReason, usage: Usage) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        return {
            "id": self._head.id,
            "object": self.answer_object,
            "created": self._head.created,
            "model": self._head.model,
            "choices": [self._choice(text, reason)],
            "usage": usage_json(usage),
        }

    @abstractmethod
    def _choice(self, text: str, reason: FinishReason) -> dict[str, Any]:
        """The one choice of an answer that is not streamed."""


class ChatFrames(Frames):
    """``chat.completion`` and its chunks; the first one names the role."""

    chunk_object = "chat.completion.chunk"
    answer_object = "chat.completion"
    _before_text = b'"delta":{"content":'
    _after_text = b'},"logprobs":null,"finish_reason":null}]'
    _final = b'"delta":{},"logprobs":null,'

    def first(self, usage: Usage) -> bytes:
        """The role, with empty content."""
        role = (
            b',"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
        )
        return self._prefix + role + self._tail(usage)

    def _choice(self, text: str, reason: FinishReason) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}


class CompletionFrames(Frames):
    """``text_completion``, for chunks and whole answers alike."""

    chunk_object = "text_completion"
    answer_object = "text_completion"
    _before_text = b'"text":'
    _after_text = b',"logprobs":null,"finish_reason":null}]'
    _final = b'"text":"","logprobs":null,'

    def _choice(self, text: str, reason: FinishReason) -> dict[str, Any]:
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
