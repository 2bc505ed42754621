"""Faults that an admin call, or the start-up settings, put into the simulated engine.

==============  =======================================================================================
fault           what happens
==============  =======================================================================================
hang            no further step, no answer to a ping; HTTP goes on answering
stall           a request gets no token after its ``after_tokens``-th; the others do
slow            every step takes ``factor`` times as long
dead_rank       rank ``rank`` is reported dead and no further step comes
lost_heartbeat  pings time out, steps go on
oom             the next step kills the engine beneath; the process lives
crash           the process exits at once with ``exit_code``
errors          the next ``count`` requests fail
garbage         tokens are arbitrary bytes
slow_start      loading takes ``seconds`` in all
clear           all of the above end, but crash and oom
==============  =======================================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

_MOST_EXIT_CODE = 255


def _open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


@dataclass(slots=True)
class Faults:
    """The faults in force. ``gate`` is closed while no step may run."""

    exit: Callable[[int], None]
    """Ends the process at once, without any clean-up."""
    gate: asyncio.Event = field(default_factory=_open_gate)
    stall_after_tokens: int | None = None
    slow_factor: float = 1.0
    dead_ranks: frozenset[int] = frozenset()
    deaf: bool = False
    out_of_memory: bool = False
    errors: int = 0
    garbage: bool = False
    load_seconds: float | None = None

    @property
    def hung(self) -> bool:
        """No step may run."""
        return not self.gate.is_set()

    def apply(self, body: Mapping[str, Any]) -> None:
        """Puts one fault in force: ``{"fault": name, …}``. Raises ValueError."""
        name = body.get("fault")
        action = _ACTIONS.get(name) if isinstance(name, str) else None
        if action is None:
            raise ValueError(f"unknown fault {name!r}; known: {', '.join(sorted(_ACTIONS))}")
        action(self, body)

    def clear(self) -> None:
        """Ends all faults that can end."""
        fresh = Faults(self.exit)
        for each in fields(self):
            if each.name not in ("gate", "exit"):
                setattr(self, each.name, getattr(fresh, each.name))
        self.gate.set()


def _number(body: Mapping[str, Any], key: str, default: float | None = None, least: float = 0) -> float:
    value = body.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
        raise ValueError(f"{key} must be a number of at least {least:g}")
    return value


def _hang(faults: Faults, _body: Mapping[str, Any]) -> None:
    faults.gate.clear()


def _stall(faults: Faults, body: Mapping[str, Any]) -> None:
    faults.stall_after_tokens = int(_number(body, "after_tokens"))


def _slow(faults: Faults, body: Mapping[str, Any]) -> None:
    faults.slow_factor = _number(body, "factor", least=0.001)


def _dead_rank(faults: Faults, body: Mapping[str, Any]) -> None:
    faults.dead_ranks |= {int(_number(body, "rank"))}
    faults.gate.clear()


def _lost_heartbeat(faults: Faults, _body: Mapping[str, Any]) -> None:
    faults.deaf = True


def _oom(faults: Faults, _body: Mapping[str, Any]) -> None:
    faults.out_of_memory = True


def _crash(faults: Faults, body: Mapping[str, Any]) -> None:
    code = int(_number(body, "exit_code", 137))
    if code > _MOST_EXIT_CODE:
        raise ValueError(f"exit_code must be at most {_MOST_EXIT_CODE}")
    faults.exit(code)


def _errors(faults: Faults, body: Mapping[str, Any]) -> None:
    faults.errors = int(_number(body, "count", 1))


def _garbage(faults: Faults, _body: Mapping[str, Any]) -> None:
    faults.garbage = True


def _slow_start(faults: Faults, body: Mapping[str, Any]) -> None:
    faults.load_seconds = _number(body, "seconds")


def _clear(faults: Faults, _body: Mapping[str, Any]) -> None:
    faults.clear()


_ACTIONS: Mapping[str, Callable[[Faults, Mapping[str, Any]], None]] = {
    "hang": _hang,
    "stall": _stall,
    "slow": _slow,
    "dead_rank": _dead_rank,
    "lost_heartbeat": _lost_heartbeat,
    "oom": _oom,
    "crash": _crash,
    "errors": _errors,
    "garbage": _garbage,
    "slow_start": _slow_start,
    "clear": _clear,
}
