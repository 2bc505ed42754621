"""Where an engine stands in its life, and whether it takes new requests. Pure: time is an argument.

=========================  =======  ======  ==========================================
state                      phase    ready   new requests
=========================  =======  ======  ==========================================
before ``loaded``          loading  no      503 loading
after it                   ready    yes     yes
draining, within settle    drain.   no      yes, with ``Connection: close``
draining, after it         drain.   no      503 draining
after ``fail``             failed   no      503 unhealthy, for good
=========================  =======  ======  ==========================================

A drain has two deadlines: at ``settle_until`` admission ends, at ``deadline`` (``timeout`` later) what still
runs is ended in band. Asking again never postpones either; only ``undrain`` takes a drain back, and not one
that ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headwater_contracts.admin import EnginePhase


class Admission(StrEnum):
    """What a new request meets; the refusals are the reasons that clients read."""

    OPEN = "open"
    CLOSING = "closing"
    """Admitted, but the connection is not to be used again."""
    LOADING = "loading"
    DRAINING = "draining"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Drain:
    """Monotonic times."""

    settle_until: float
    deadline: float
    final: bool
    """The process ends after it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an engine is dead: a word for machines and a sentence for people."""

    reason: str
    message: str


class Lifecycle:
    """The engine's life. ``on_change`` is called after every change."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self.is_loaded = False
        self.failure: Failure | None = None
        self.drain: Drain | None = None

    @property
    def phase(self) -> EnginePhase:
        """For people and the operator."""
        if self.failure is not None:
            return EnginePhase.FAILED
        if not self.is_loaded:
            return EnginePhase.LOADING
        return EnginePhase.READY if self.drain is None else EnginePhase.DRAINING

    @property
    def ready(self) -> bool:
        """Loaded, healthy, not draining."""
        return self.phase is EnginePhase.READY

    def admission(self, now: float) -> Admission:
        """What a request meets that comes now."""
        if self.failure is not None:
            return Admission.UNHEALTHY
        if not self.is_loaded:
            return Admission.LOADING
        if self.drain is None:
            return Admission.OPEN
        return Admission.CLOSING if now < self.drain.settle_until else Admission.DRAINING

    def drained(self, now: float, in_flight: int) -> bool:
        """A drain was asked for, admits nothing more, and nothing is left."""
        if self.drain is None or in_flight > 0:
            return False
        return self.admission(now) not in (Admission.OPEN, Admission.CLOSING)

    def loaded(self) -> None:
        """The model is loaded."""
        self.is_loaded = True
        self._on_change()

    def fail(self, reason: str, message: str) -> None:
        """The engine is dead; the first reason stays."""
        if self.failure is None:
            self.failure = Failure(reason, message)
            self._on_change()

    def begin_drain(self, now: float, *, settle: float, timeout: float, final: bool = False) -> None:
        """Starts a drain, or moves a running one's deadlines closer."""
        new = Drain(now + settle, now + settle + timeout, final)
        if self.drain is not None:
            new = Drain(
                min(new.settle_until, self.drain.settle_until),
                min(new.deadline, self.drain.deadline),
                final or self.drain.final,
            )
        self.drain = new
        self._on_change()

    def undrain(self) -> bool:
        """Takes a drain back; False if the process is ending."""
        if self.drain is not None and self.drain.final:
            return False
        self.drain = None
        self._on_change()
        return True
