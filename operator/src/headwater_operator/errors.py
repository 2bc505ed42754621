"""Two families: ``Refused`` is for someone else to mend (a spec, a quota, a policy), ``Failed`` is ours to retry."""

# The names say what happened, as the HTTP libraries' do; "Error" would add nothing to any of them.
# ruff: noqa: N818

from __future__ import annotations


class OperatorError(Exception):
    """Base of all errors that the operator raises on purpose."""


class Refused(OperatorError):
    """The API server says no, and will say so again until someone changes something."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        """The API server's own sentence: it names the quota, the policy or the field."""
        self.status = status
        self.reason = reason


class AlreadyExists(Refused):
    """A create found its name taken."""


class Failed(OperatorError):
    """Something between us and the answer broke; the next reconcile starts from what is really there."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class Stale(Failed):
    """The object changed, or was replaced, since it was read."""


class NotFound(Failed):
    """No such object, or no such kind."""


class WatchExpired(Failed):
    """The API server no longer has the history that a watch or a list wants to continue from."""


class OutcomeUnknown(Failed):
    """A write was sent and no answer came: it may have happened, or may yet."""


class EngineUnreachable(Failed):
    """An engine's admin port gave no usable answer."""


class TokenRefused(EngineUnreachable):
    """An engine answers, but knows another admin token than ours: its pod was made by another installation."""


class LeaseLost(Failed):
    """Another operator holds the Lease, or ours could not be renewed in time."""
