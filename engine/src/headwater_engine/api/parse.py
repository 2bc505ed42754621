"""From a request's bytes to what the backend is given. Everything a caller can get wrong ends here, before the 200."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from headwater_engine.api.protocol import ChatBody, CompletionBody, GenerationBody, NotSupportedError
from headwater_engine.core.text import TextRules
from headwater_engine.errors import CallerError, PromptTooLong
from headwater_engine.ports import Backend, GenerateRequest, Sampling, Vocabulary

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_NESTING = 64
_MAX_MESSAGE = 500
_Body = TypeVar("_Body", bound=GenerationBody)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What requests are checked against."""

    name: str
    scripts: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A checked request."""

    request: GenerateRequest
    rules: TextRules
    stream: bool
    include_usage: bool
    continuous_usage: bool


def parse_body(kind: type[_Body], data: bytes) -> _Body:
    """Raises CallerError that names the parameter."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CallerError(f"the body is not valid JSON: {_short(str(error))}", code="invalid_json") from error
    if not isinstance(body, dict):
        raise CallerError("the body must be a JSON object", code="invalid_json")
    _check_nesting(data, body)
    try:
        return kind.model_validate(body)
    except NotSupportedError as error:
        raise CallerError(str(error), param=error.field, code="unsupported_parameter") from error
    except ValidationError as error:
        raise _translated(error) from error


async def make_job(backend: Backend, model: ServedModel, body: GenerationBody, engine_id: str) -> Job:
    """Checks a body against the model and tokenizes its prompt. Raises CallerError."""
    if body.model != model.name:
        raise CallerError(
            f"the model {_short(body.model)!r} does not exist; this pool serves {model.name!r}",
            param="model", code="model_not_found", status=404,
        )  # fmt: skip
    if body.headwater_script is not None and not model.scripts:
        raise CallerError("scripts are not enabled here", param="headwater_script", code="unsupported_parameter")
    options = body.stream_options
    if options is not None and not body.stream:
        raise CallerError("stream_options needs stream: true", param="stream_options")
    prompt = await _prompt_ids(backend, body)
    request = GenerateRequest(
        id=engine_id,
        prompt_token_ids=prompt,
        sampling=_sampling(body, _max_tokens(body, len(prompt), backend.max_model_len), _vocab_size(backend)),
        cache_salt=body.cache_salt,
        script=body.headwater_script,
    )
    usage = bool(options and options.include_usage)
    return Job(
        request,
        TextRules(tuple(body.stop or ()), bool(body.include_stop_str_in_output), body.min_tokens or 0),
        stream=bool(body.stream),
        include_usage=usage,
        continuous_usage=usage and bool(options and options.continuous_usage_stats),
    )


async def _prompt_ids(backend: Backend, body: GenerationBody) -> tuple[int, ...]:
    if isinstance(body, ChatBody):
        try:
            return await backend.apply_chat_template([message.for_template() for message in body.messages])
        except ValueError as error:
            raise CallerError(f"the chat template refuses: {_short(str(error))}", param="messages") from error
    if not isinstance(body, CompletionBody):
        raise TypeError(f"unexpected body {type(body).__name__}")
    ids = await backend.tokenize(body.prompt) if isinstance(body.prompt, str) else tuple(body.prompt)
    if not ids:
        raise CallerError("the prompt is empty", param="prompt")
    _check_ids(body.prompt if isinstance(body.prompt, list) else (), "prompt", _vocab_size(backend))
    return ids


def _max_tokens(body: GenerationBody, prompt: int, context: int) -> int:
    """The asked-for tokens, which must fit; by default as many as fit."""
    asked = body.asked_tokens
    param = "messages" if isinstance(body, ChatBody) else "prompt"
    if prompt >= context:
        raise PromptTooLong(
            f"the prompt has {prompt} tokens; this model's context of {context} leaves no room for output",
            param=param, code="context_length_exceeded",
        )  # fmt: skip
    if asked is not None and prompt + asked > context:
        raise PromptTooLong(
            f"{prompt} prompt tokens and max_tokens of {asked} exceed this model's context of {context}",
            param="max_tokens", code="context_length_exceeded",
        )  # fmt: skip
    return context - prompt if asked is None else asked


def _sampling(body: GenerationBody, max_tokens: int, vocab_size: int | None) -> Sampling:
    if (body.min_tokens or 0) > max_tokens:
        raise CallerError(f"min_tokens must be at most max_tokens, which is {max_tokens}", param="min_tokens")
    bias = {int(key): value for key, value in (body.logit_bias or {}).items()}
    _check_ids(bias, "logit_bias", vocab_size)
    _check_ids(body.stop_token_ids or (), "stop_token_ids", vocab_size)
    values: dict[str, Any] = {
        name: value
        for name in (
            "temperature", "top_p", "min_p", "seed", "min_tokens", "presence_penalty", "frequency_penalty",
            "repetition_penalty", "ignore_eos",
        )
        if (value := getattr(body, name)) is not None
    }  # fmt: skip
    return Sampling(
        max_tokens=max_tokens,
        top_k=max(body.top_k or 0, 0),
        stop_token_ids=tuple(body.stop_token_ids or ()),
        logit_bias=bias,
        **values,
    )


def _check_ids(ids: Any, param: str, vocab_size: int | None) -> None:
    if vocab_size is not None and any(token >= vocab_size for token in ids):
        raise CallerError(f"{param} holds a token id outside the vocabulary of {vocab_size}", param=param)


def _vocab_size(backend: Backend) -> int | None:
    return backend.vocab_size if isinstance(backend, Vocabulary) else None


def _check_nesting(data: bytes, body: Any) -> None:
    # Most bodies have fewer brackets than the limit and need no walk.
    if data.count(b"[") + data.count(b"{") <= MAX_NESTING:
        return
    level, depth = [body], 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise CallerError(f"the body is nested more than {MAX_NESTING} deep", code="invalid_json")
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]


def _translated(error: ValidationError) -> CallerError:
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    same_field = [each for each in errors if each["loc"][:1] == errors[0]["loc"][:1]]
    # Each member of a union has its own complaint; the one that got furthest is the one that was meant.
    first = max(same_field, key=lambda each: len(each["loc"]))
    param = _path(first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return CallerError(f"{param}: {_short(message)}" if param else _short(message), param=param, code="invalid_value")


def _path(location: tuple[int | str, ...]) -> str | None:
    path = ""
    for index, part in enumerate(location):
        # Names of union members are pydantic's, not the caller's.
        if isinstance(part, str) and index > 0 and (not part.isidentifier() or part in ("str", "list")):
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path or None


def _short(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…"
