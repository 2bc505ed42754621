"""Two families: the caller's fault (CallerError) and ours (EngineError)."""

from __future__ import annotations


class HeadwaterEngineError(Exception):
    """Root of both families. ``str`` is for the log; ``public`` is what a client may read."""

    public = "internal error"


class CallerError(HeadwaterEngineError):
    """The request is wrong: 4xx, names the parameter, not retried."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.public = message
        self.param = param
        self.code = code
        self.status = status


class PromptTooLong(CallerError):  # noqa: N818 - named for what happened
    """Prompt plus asked-for output exceed the model's context."""


class EngineError(HeadwaterEngineError):
    """The engine cannot serve this request, though it may be well-formed."""

    code = "engine_error"


class LoadFailed(EngineError):  # noqa: N818 - named for what happened
    """The model could not be loaded."""

    code = "load_failed"


class BackendDead(EngineError):  # noqa: N818 - named for what happened
    """The engine beneath is gone; it does not come back in this process."""

    public = "the engine stopped"
    code = "engine_dead"


class Unavailable(EngineError):  # noqa: N818 - named for what happened
    """Not admitting now: 503, or 429 when the queue is full."""

    def __init__(self, public: str, *, reason: str, retry_after_seconds: int, status: int = 503) -> None:
        super().__init__(public)
        self.public = public
        self.code = reason
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        self.status = status
