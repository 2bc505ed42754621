"""The engine's admin state as the operator reads it, and the token that guards the admin port.

``unknown is not zero``: a figure that the engine does not know is None and is left out of the JSON. A reader
ignores fields that it does not know, so that an engine may be newer than its operator, or older.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any


class EnginePhase(StrEnum):
    """Where an engine stands in its life."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"
    SLEEPING = "sleeping"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket since the engine started.

    ``counts[i]`` holds samples in ``(edges[i-1], edges[i]]`` (seconds); the last of the ``len(edges) + 1``
    counts holds what lies above all edges. Not cumulative.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    sum_seconds: float


@dataclass(frozen=True, slots=True)
class RankState:
    """One tensor- or pipeline-parallel rank and whether its process lives."""

    rank: int
    alive: bool
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class EngineState:
    """Body of ``GET /admin/state``. Ages and durations in seconds; None means not known."""

    phase: EnginePhase
    step: int
    running: int
    waiting: int
    suspended: int = 0
    healthy: bool | None = None
    failure_reason: str | None = None
    failure_message: str | None = None
    group: str | None = None
    pod: str | None = None
    backend: str | None = None
    model: str | None = None
    version: str | None = None
    admitting: bool = False
    """New requests are accepted now."""
    drained: bool = False
    """A drain was asked for and nothing runs or waits any more, or its deadline ended what did."""
    kv_used_blocks: int | None = None
    kv_total_blocks: int | None = None
    kv_block_size_tokens: int | None = None
    load_seconds: float | None = None
    last_progress_age_seconds: float | None = None
    last_test_inference_age_seconds: float | None = None
    ranks: tuple[RankState, ...] = ()
    ttft: Histogram | None = None
    itl: Histogram | None = None

    def to_json(self) -> dict[str, Any]:
        """The state as plain JSON values, unknown figures left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> EngineState:
        """Parses ``to_json``'s form; unknown fields are ignored.

        Raises ValueError if a required field is missing or of a wrong kind.
        """
        known = {f.name for f in fields(cls)}
        try:
            values = {key: value for key, value in body.items() if key in known and value is not None}
            values["phase"] = EnginePhase(values["phase"])
            values["ranks"] = tuple(_rank(rank) for rank in values.get("ranks", ()))
            for name in ("ttft", "itl"):
                if name in values:
                    values[name] = _histogram(values[name])
            _check_kinds(values)
            return cls(**values)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not an engine state: {error!r}") from error


_LARGEST_FIGURE = 2**53

_KINDS: Mapping[type | tuple[type, ...], tuple[str, ...]] = {
    int: (
        *("step", "running", "waiting", "suspended"),
        *("kv_used_blocks", "kv_total_blocks", "kv_block_size_tokens"),
    ),
    (int, float): ("load_seconds", "last_progress_age_seconds", "last_test_inference_age_seconds"),
    bool: ("healthy", "admitting", "drained"),
    str: ("failure_reason", "failure_message", "group", "pod", "backend", "model", "version"),
}


def _check_kinds(values: Mapping[str, Any]) -> None:
    """A figure of a wrong kind is refused here: further in, it would break what computes with it."""
    for kind, names in _KINDS.items():
        for name in names:
            value = values.get(name)
            # A bool is an int to Python, and no number to anybody else.
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool)):
                raise ValueError(f"not an engine state: {name} is {value!r:.50}")
            if isinstance(value, int | float):
                _figure(name, value)


def _figure(name: str, value: float) -> float:
    """The value, if arithmetic and a Kubernetes status can take it: neither negative, nor endless, nor NaN."""
    if not 0 <= value < _LARGEST_FIGURE:
        raise ValueError(f"not an engine state: {name} is {value!r:.50}")
    return value


def _rank(body: Mapping[str, Any]) -> RankState:
    names = {f.name for f in fields(RankState)}
    rank = RankState(**{key: value for key, value in body.items() if key in names})
    if type(rank.rank) is not int or type(rank.alive) is not bool:
        raise ValueError(f"not an engine state: a rank is {body!r:.50}")
    return rank


def _histogram(body: Mapping[str, Any]) -> Histogram:
    edges = tuple(_figure("a histogram's edge", float(edge)) for edge in body["edges"])
    counts = tuple(int(_figure("a histogram's count", count)) for count in body["counts"])
    if len(counts) != len(edges) + 1:
        raise ValueError(f"histogram has {len(edges)} edges and {len(counts)} counts")
    return Histogram(edges, counts, _figure("a histogram's sum", float(body["sum_seconds"])))


def group_token(master: bytes, namespace: str, group: str) -> str:
    """Admin token of one replica group, derived from the installation's master token.

    Pods carry only the token's digest, so neither a Secret per namespace nor a right to read Secrets is
    needed, and a leaked token opens one group.
    """
    return hmac.new(master, f"{namespace}/{group}".encode(), hashlib.sha256).hexdigest()


def token_digest(token: str) -> str:
    """What an engine is given to compare a presented token against: hex SHA-256."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_matches(presented: str, digest: str) -> bool:
    """Constant-time check of a presented token against its digest."""
    return hmac.compare_digest(token_digest(presented), digest)
