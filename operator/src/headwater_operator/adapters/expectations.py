"""Own writes of which no answer came.

The answer to a write goes into the cache, so the next reconcile sees it. A write without an answer may have
happened, or may yet happen. Its object is asked for by name before the pool is decided on again, and the name
that a create was tried under is used first for the next one: then a late create and a second create meet in
the API server, where one of them is told AlreadyExists, and there are never two groups for one intent.

Nothing of this is kept over a restart: the list that a start begins with shows what was really written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from headwater_operator import errors

K = TypeVar("K")

REUSE_SECONDS = 90.0
"""How long a tried name is used again: the API server itself gives up on a request after 60 s."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: what to look at to learn whether it happened."""

    kind: str
    namespace: str
    name: str
    creates: bool = False


class Expectations(Generic[K]):
    """By pool."""

    def __init__(self) -> None:
        self._open: dict[K, dict[Write, None]] = {}
        self._tried: dict[K, dict[str, float]] = {}

    @contextmanager
    def writing(self, key: K, write: Write) -> Iterator[None]:
        """Around one write: it stays open if the body is left without a definite answer."""
        self._open.setdefault(key, {})[write] = None
        try:
            yield
        except errors.OutcomeUnknown:
            raise
        except errors.OperatorError:
            self.settle(key, write)
            raise
        else:
            self.settle(key, write)

    def open(self, key: K) -> list[Write]:
        """Writes whose outcome is not known."""
        return list(self._open.get(key, ()))

    def settle(self, key: K, write: Write) -> None:
        """The outcome is known, or was looked up."""
        writes = self._open.get(key)
        if writes is not None:
            writes.pop(write, None)
            if not writes:
                del self._open[key]

    def absent(self, key: K, write: Write, *, now: float) -> None:
        """Looked up and not there: if it was a create, its name comes first for the next one."""
        self.settle(key, write)
        if write.creates:
            self._tried.setdefault(key, {})[write.name] = now

    def tried_names(self, key: K, *, now: float) -> list[str]:
        """Names whose create may yet happen."""
        tried = self._tried.get(key, {})
        for name in [name for name, at in tried.items() if now - at > REUSE_SECONDS]:
            del tried[name]
        return list(tried)

    def forget(self, key: K) -> None:
        """Drops all that is known of a pool."""
        self._open.pop(key, None)
        self._tried.pop(key, None)
