"""Stage health: one verdict for each group, from the first row that applies.

| # | observed                                                               | verdict                     |
|---|------------------------------------------------------------------------|-----------------------------|
| 1 | a pod ended: the node or the kubelet took it away                      | unhealthy, PodLost/NodeLost |
| 2 | a pod ended by itself                                                  | unhealthy, EngineExited     |
| 3 | a pod is being deleted and the group is not                            | unhealthy, PodLost          |
| 4 | a pod of a loaded group is missing                                     | unhealthy, PodLost          |
| 5 | the engine says that it failed, is unhealthy, or that a rank is dead   | unhealthy, EngineUnhealthy  |
| 6 | no answer to operator and kubelet, and its node is gone or not ready   | unhealthy, NodeLost         |
| 7 | loaded, then silent to operator and kubelet (unless most groups are)   | unhealthy, EngineUnhealthy  |
| 8 | not loaded within the start-up deadline of its container's start       | unhealthy, StartupDeadline… |
| 9 | not loaded                                                             | loading                     |
|10 | the kubelet or a recent answer says that it works                      | healthy                     |
|11 | anything else                                                          | unknown                     |

Rows 2 and 5 read LoadFailed for a group that never loaded. Unknown is never unhealthy: it holds what it has.
"Silent" means no answered probe, be it by a refusal, for ``health.interval`` × ``failureThreshold``.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import Reason
from headwater_operator.core.conditions import shorten
from headwater_operator.core.facts import fresh_state, leader_ready, pod_exited, token_refused, was_loaded
from headwater_operator.core.last_words import last_words
from headwater_operator.core.snapshot import GroupObservation, NodeObservation, PodObservation
from headwater_operator.core.times import seconds_between

_DETAIL_LIMIT = 300
_NODE_REASONS = frozenset({"NodeLost", "NodeShutdown", "Terminated"})
_SIGNALS = {number.value: number.name for number in signal.Signals}
_EVICTION_REASONS = frozenset({"Evicted", "Preempting", "DeletionByTaintManager", "UnexpectedAdmissionError"})


class Verdict(StrEnum):
    """Outcome of the table above."""

    HEALTHY = "healthy"
    LOADING = "loading"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict with the reason and the sentence that explain it."""

    verdict: Verdict
    loaded: bool
    reason: Reason | None = None
    message: str = ""

    @property
    def node_caused(self) -> bool:
        """Not the engine's or the spec's fault, so it does not count as a crash."""
        return self.reason in (Reason.POD_LOST, Reason.NODE_LOST)


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """What the spec allows, in seconds, and how many pods a group has."""

    silence_seconds: float
    startup_deadline_seconds: float
    pods: int
    blind: bool = False
    """Most groups are silent at once: rather the operator's sight than the engines."""


def classify_group(
    group: GroupObservation, limits: HealthLimits, nodes: Iterable[NodeObservation], now: datetime
) -> Health:
    """The verdict on one group. Its role plays no part: stages decide what a verdict means for a role."""
    loaded = was_loaded(group)
    for cause in (_ended(group, loaded), _going(group, limits, loaded), _engine_fault(group, loaded)):
        if cause is not None:
            return _unhealthy(loaded, cause)
    if cause := _lost(group, limits, {node.name: node for node in nodes}, loaded):
        return _unhealthy(loaded, cause)
    if not loaded:
        late = _late(group, limits, now)
        return _unhealthy(loaded, late) if late else Health(Verdict.LOADING, loaded=False)
    if leader_ready(group) or fresh_state(group) is not None:
        return Health(Verdict.HEALTHY, loaded=True)
    if limits.blind:
        return Health(Verdict.UNKNOWN, True, Reason.OPERATOR_BLIND, "no recent answer from it, nor from most others")
    return Health(Verdict.UNKNOWN, loaded=True, message="no recent answer from the engine")


def most_silent(groups: Iterable[GroupObservation], silence_seconds: float) -> tuple[int, int] | None:
    """How many of how many loaded groups answer no probe, if that is at least two, and more than half of all."""
    loaded = [group for group in groups if not group.terminating and was_loaded(group)]
    silent = sum(_silent(group, silence_seconds) for group in loaded)
    return (silent, len(loaded)) if silent >= 2 and 2 * silent > len(loaded) else None


_Cause = tuple[Reason, str]


def _unhealthy(loaded: bool, cause: _Cause) -> Health:
    return Health(Verdict.UNHEALTHY, loaded, cause[0], cause[1])


def _ended(group: GroupObservation, loaded: bool) -> _Cause | None:
    pod = next((pod for pod in group.pods if pod_exited(pod)), None)
    if pod is None:
        return None
    if pod.pod_reason in _NODE_REASONS:
        return Reason.NODE_LOST, _detail(f"node {pod.node} took the pod down ({pod.pod_reason})", pod.pod_message)
    if pod.pod_reason in _EVICTION_REASONS:
        return Reason.POD_LOST, _detail(f"pod {pod.name} was evicted ({pod.pod_reason})", pod.pod_message)
    what, words = (
        f"engine exited ({describe_exit(pod)})",
        last_words(pod.exit_message, pod.exit_code) or pod.pod_message,
    )
    if loaded:
        return Reason.ENGINE_EXITED, _detail(what, words)
    return Reason.LOAD_FAILED, _detail(f"{what} before it had loaded", words)


def describe_exit(pod: PodObservation) -> str:
    """``code 137, SIGKILL`` or ``code 1, OOMKilled``; ``Failed`` if the code is not known."""
    if pod.exit_code is None:
        return pod.exit_reason or pod.pod_reason or pod.phase
    parts = [f"code {pod.exit_code}"]
    if pod.exit_reason not in (None, "", "Error", "Completed"):
        parts.append(str(pod.exit_reason))
    if pod.exit_code - 128 in _SIGNALS:
        parts.append(_SIGNALS[pod.exit_code - 128])
    return ", ".join(parts)


def _detail(message: str, more: str | None) -> str:
    more = (more or "").strip()
    return f"{message}: {shorten(more, _DETAIL_LIMIT)}" if more else message


def _going(group: GroupObservation, limits: HealthLimits, loaded: bool) -> _Cause | None:
    pod = next((pod for pod in group.pods if pod.terminating), None)
    if pod is not None and not group.terminating:
        return Reason.POD_LOST, f"pod {pod.name} is being deleted"
    if loaded and len(group.pods) < limits.pods:
        return Reason.POD_LOST, f"{limits.pods - len(group.pods)} of {limits.pods} pods no longer exist"
    return None


def _engine_fault(group: GroupObservation, loaded: bool) -> _Cause | None:
    state = fresh_state(group)
    if state is None:
        return None
    dead = [rank.rank for rank in state.ranks if not rank.alive]
    if state.phase is EnginePhase.FAILED or state.healthy is False:
        what = state.failure_reason or "the engine reports itself unhealthy"
    elif dead and state.phase is not EnginePhase.LOADING:
        what = f"rank {dead[0]} is dead"
    else:
        return None
    return (Reason.ENGINE_UNHEALTHY if loaded else Reason.LOAD_FAILED), _detail(what, state.failure_message)


def _lost(
    group: GroupObservation, limits: HealthLimits, nodes: dict[str, NodeObservation], loaded: bool
) -> _Cause | None:
    reading = group.engine
    if leader_ready(group) or reading is None or fresh_state(group) is not None:
        return None
    for pod in group.pods:
        node = nodes.get(pod.node or "")
        if pod.node and nodes and (node is None or node.ready is not True):
            return Reason.NODE_LOST, f"node {pod.node} is {'gone' if node is None else 'not ready'}"
    if loaded and not limits.blind and _silent(group, limits.silence_seconds):
        return Reason.ENGINE_UNHEALTHY, "answers neither the operator nor the kubelet"
    return None


def _silent(group: GroupObservation, silence_seconds: float) -> bool:
    reading = group.engine
    if token_refused(group):
        return False  # it answers
    return reading is not None and reading.silent_seconds is not None and reading.silent_seconds >= silence_seconds


def _late(group: GroupObservation, limits: HealthLimits, now: datetime) -> _Cause | None:
    started = [pod.started_at for pod in group.pods if pod.started_at is not None]
    if not started or seconds_between(min(started), now) < limits.startup_deadline_seconds:
        return None
    allowed = f"{limits.startup_deadline_seconds:.0f} s"
    return Reason.STARTUP_DEADLINE_EXCEEDED, f"not loaded within health.startupDeadline ({allowed})"
