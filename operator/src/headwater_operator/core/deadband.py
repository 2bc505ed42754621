"""Whether a status differs enough from the stored one to be worth an API write.

| difference                                                   | write                               |
|--------------------------------------------------------------|-------------------------------------|
| anything but the figures and time stamps below               | at once                             |
| a figure left its dead band (5 points of percent, else 10 %) | if the last write is ≥ 30 s ago     |
| a figure became unknown                                      | if the last write is ≥ 30 s ago     |
| time stamps alone                                            | never                               |

``seconds_since_last_write`` is None where this process has not written yet: then a figure that became unknown is
no reason, since after a restart nothing is known for a moment, and a thousand pools would say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MINIMUM_INTERVAL_SECONDS = 30.0
_POINTS = 5.0
_RATIO = 0.10

_FIGURES = frozenset(
    {
        "kvCacheUtilizationPercent",
        "ttftP90",
        "interTokenLatencyP99",
        "running",
        "waiting",
        "groupsReporting",
        "kv",
        "ttft",
    }
)
_PERCENT = frozenset({"kvCacheUtilizationPercent", "kv"})
_TIMES = frozenset({"lastTransitionTime", "at"})
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|%)?")


def status_needs_write(old: Mapping[str, Any], new: Mapping[str, Any], seconds_since_last_write: float | None) -> bool:
    """True if the new status is worth a write; see the table above."""
    if _settled(old) != _settled(new):
        return True
    recently = seconds_since_last_write is not None and seconds_since_last_write < MINIMUM_INTERVAL_SECONDS
    return not recently and _left_dead_band(old, new, forget=seconds_since_last_write is not None)


def _settled(value: Any) -> Any:
    """The value without figures and time stamps. Empty objects and absent ones are the same."""
    if isinstance(value, Mapping):
        kept = {key: _settled(item) for key, item in value.items() if key not in _FIGURES and key not in _TIMES}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, (list, tuple)):
        return [_settled(item) for item in value]
    return value


def _left_dead_band(old: Mapping[str, Any], new: Mapping[str, Any], *, forget: bool) -> bool:
    before, after = _figures(old), _figures(new)
    for key in before.keys() | after.keys():
        was, now = before.get(key), after.get(key)
        if now is None:
            if forget and was is not None:
                return True
        elif was is None or _differs(key, was, now):
            return True
    return False


def _differs(key: str, was: float, now: float) -> bool:
    if key.rsplit(".", 1)[-1] in _PERCENT:
        return abs(now - was) >= _POINTS
    return abs(now - was) > _RATIO * max(abs(was), 1.0)


def _figures(value: Mapping[str, Any], path: str = "") -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for key, item in value.items():
        below = f"{path}.{key}"
        if key in _FIGURES:
            # That no group reports is not a figure but the lack of all figures.
            found[below] = None if key == "groupsReporting" and item == 0 else _number(item)
        elif isinstance(item, Mapping):
            found |= _figures(item, below)
    return found


def _number(item: Any) -> float | None:
    if isinstance(item, (int, float)):
        return float(item)
    match = _NUMBER.fullmatch(item) if isinstance(item, str) else None
    if match is None:
        return None
    return float(match[1]) * (1000 if match[2] == "s" else 1)
