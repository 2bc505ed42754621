"""The bodies of OpenAI's two generation endpoints, as far as this engine serves them.

Unknown fields are ignored, as OpenAI and vLLM do; fields that they know and this engine does not are refused by
name (``UNSUPPORTED``), since ignoring them would change the answer silently.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

MAX_STOPS = 16
MAX_STOP_LENGTH = 1024
MAX_LOGIT_BIAS = 1024
MAX_STOP_TOKEN_IDS = 64
MAX_MESSAGES = 4096

_Stop = Annotated[str, StringConstraints(min_length=1, max_length=MAX_STOP_LENGTH)]
# The first wrong item ends the check of a list: a body has room for millions, and a complaint about each of them would
# hold the event loop for long.
_FAIL_FAST = Field(fail_fast=True)
_TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], _FAIL_FAST]

# Field → values that ask for nothing. None always does.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "prompt_logprobs": (),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": (),
    "web_search_options": (),
    "use_beam_search": (False,),
    "length_penalty": (1, 1.0),
    "bad_words": ([],),
    "allowed_token_ids": (),
    "truncate_prompt_tokens": (),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "documents": ([],),
    "mm_processor_kwargs": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "structured_outputs": (),
    "structural_tag": (),
    "priority": (0,),
    "prompt_embeds": (),
    "return_tokens_as_token_ids": (False,),
    "return_token_ids": (False,),
    "logits_processors": ([],),
    "vllm_xargs": ({},),
    "kv_transfer_params": (),
}


class _Strict(BaseModel):
    # Strict: "5" is no number and 1 is no boolean, whatever Python thinks.
    model_config = ConfigDict(strict=True, extra="ignore")


class StreamOptions(_Strict):
    """``stream_options``."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class GenerationBody(_Strict):
    """What both endpoints share. An explicit null means the default."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1, le=1_000_000)
    min_p: float | None = Field(default=None, ge=0, le=1)
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    stop: Annotated[list[_Stop], Field(max_length=MAX_STOPS), _FAIL_FAST] | None = None
    stop_token_ids: Annotated[_TokenIds, Field(max_length=MAX_STOP_TOKEN_IDS)] | None = None
    include_stop_str_in_output: bool | None = None
    min_tokens: int | None = Field(default=None, ge=0)
    ignore_eos: bool | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    repetition_penalty: float | None = Field(default=None, gt=0, le=2)
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    cache_salt: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None
    headwater_script: Annotated[list[dict[str, Any]], Field(max_length=100_000), _FAIL_FAST] | None = None

    @field_validator("stop", mode="before")
    @classmethod
    def _one_stop(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("logit_bias", mode="before")
    @classmethod
    def _few(cls, value: Any) -> Any:
        # Before the entries are looked at: a dictionary has no fail-fast.
        if isinstance(value, dict) and len(value) > MAX_LOGIT_BIAS:
            raise ValueError(f"at most {MAX_LOGIT_BIAS} token ids may be biased")
        return value

    @field_validator("logit_bias")
    @classmethod
    def _token_keys(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value and not all(key.isascii() and key.isdigit() and len(key) <= 10 for key in value):
            raise ValueError("keys must be token ids")
        return value

    @model_validator(mode="before")
    @classmethod
    def _refuse_unsupported(cls, body: Any) -> Any:
        if isinstance(body, dict):
            for name, value in body.items():
                if name in UNSUPPORTED and value is not None and not _asks_nothing(value, UNSUPPORTED[name]):
                    raise NotSupportedError(name)
        return body

    @property
    def asked_tokens(self) -> int | None:
        """Most output tokens the caller wants, None without a wish."""
        return self.max_tokens


class TextPart(_Strict):
    """A content part; only text is served."""

    type: Literal["text"]
    text: str


class Message(_Strict):
    """One chat message."""

    model_config = ConfigDict(strict=True, extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[TextPart], _FAIL_FAST]

    @model_validator(mode="before")
    @classmethod
    def _refuse_unsupported(cls, message: Any) -> Any:
        if isinstance(message, dict):
            for name in ("tool_calls", "function_call", "audio", "refusal"):
                if message.get(name):
                    raise NotSupportedError(f"messages[].{name}")
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                kind = part.get("type") if isinstance(part, dict) else None
                if kind in ("image_url", "input_audio", "video_url", "file", "image", "audio"):
                    raise NotSupportedError(f"messages[].content[].{kind}")
        return message

    def for_template(self) -> dict[str, Any]:
        """The message as a chat template reads it."""
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {**(self.model_extra or {}), "role": self.role, "content": content}


class ChatBody(GenerationBody):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES), _FAIL_FAST]
    max_completion_tokens: int | None = Field(default=None, ge=1)

    @property
    def asked_tokens(self) -> int | None:
        """``max_completion_tokens`` goes before the older ``max_tokens``."""
        return self.max_completion_tokens or self.max_tokens


class CompletionBody(GenerationBody):
    """``POST /v1/completions``. One prompt: a text or its token ids."""

    prompt: str | _TokenIds

    @field_validator("prompt", mode="before")
    @classmethod
    def _single(cls, value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], str | list):
            if len(value) > 1:
                raise NotSupportedError("prompt (a list of several prompts)")
            return value[0]
        return value

    @property
    def asked_tokens(self) -> int | None:
        """OpenAI's default of 16 where nothing is asked."""
        return self.max_tokens or 16


class NotSupportedError(Exception):
    """A known field that this engine does not serve. Not a ValueError: pydantic passes it through."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is not supported yet")
        self.field = field


def _asks_nothing(value: Any, harmless: tuple[Any, ...]) -> bool:
    # By type too, since 1 == True and 0 == False.
    return any(type(value) is type(each) and value == each for each in harmless)
