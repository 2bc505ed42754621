"""What a waiting person wants to see of a pool, as short lines. Pure: objects in, lines out."""

from __future__ import annotations

from collections.abc import Sequence

from e2e.kit.kubectl import Object, condition

EVENTS_SHOWN = 3
# Each with the status that needs no attention.
_QUIET = {"Stalled": "False", "CapacityAvailable": "True", "SpecHonored": "True", "WarmPoolReady": "True"}


def pool_lines(pool: Object) -> list[str]:
    """Counts, why it is not Ready, and conditions that ask for attention."""
    status = pool.get("status") or {}
    if not status:
        return ["the operator has not looked at the pool yet"]
    summary = status.get("summary") or {}
    lines = [f"active {summary.get('active', '?')}, warm {summary.get('warm', '?')}"]
    lines += [_condition_line(found) for found in [condition(pool, "Ready")] if found]
    for kind, quiet in _QUIET.items():
        found = condition(pool, kind)
        if found and found["status"] != quiet:
            lines.append(_condition_line(found))
    return lines


def pod_line(pod: Object) -> str:
    """One pod: phase, readiness, and why a container waits or ended."""
    status = pod.get("status") or {}
    words = [status.get("phase", "Unknown")]
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            if kind in state:
                reason = state[kind].get("reason", kind)
                words.append(f"{reason} {state[kind].get('message', '')}".strip())
        if "running" in state:
            words.append("ready" if container.get("ready") else "loading")
    if condition(pod, "PodScheduled") and not _is(pod, "PodScheduled"):
        words.append((condition(pod, "PodScheduled") or {}).get("message", "unscheduled"))
    role = pod["metadata"].get("labels", {}).get("headwater.dev/role")
    return f"pod {pod['metadata']['name']}{f' ({role})' if role else ''}: {', '.join(words)}"


def event_lines(events: Sequence[Object], count: int = EVENTS_SHOWN) -> list[str]:
    """The newest events, oldest of them first. Every engine fails its startup probe until it is loaded: not shown."""
    shown = [event for event in events if not str(event.get("message")).startswith("Startup probe failed")]
    newest = sorted(shown, key=_event_time)[-count:]
    return [
        f"{event.get('reason', '')}: {_one_line(event.get('message') or event.get('note') or '')}" for event in newest
    ]


def stalled(pool: Object | None) -> str | None:
    """Why a person must act, or None."""
    found = condition(pool, "Stalled")
    return f"{found['reason']}: {found.get('message', '')}" if found and found["status"] == "True" else None


def _event_time(event: Object) -> str:
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return next((time for time in times if time), "")


def _condition_line(found: Object) -> str:
    return f"{found['type']}={found['status']} {found.get('reason', '')}: {_one_line(found.get('message', ''))}"


def _is(obj: Object, kind: str) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"


def _one_line(text: str) -> str:
    return " ".join(text.split())
