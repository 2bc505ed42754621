"""What the demo shows of a pool while it waits."""

from __future__ import annotations

from typing import Any

import pytest
from e2e.demo import view


def _condition(kind: str, status: str, reason: str = "R", message: str = "m") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _pool(*conditions: dict[str, str]) -> dict[str, Any]:
    return {"status": {"summary": {"active": "0/2", "warm": "0/1"}, "conditions": list(conditions)}}


def test_a_pool_shows_its_counts_and_why_it_is_not_ready() -> None:
    got = view.pool_lines(_pool(_condition("Ready", "False", "GroupsNotReady", "0 of 2\n groups serve")))
    assert got == ["active 0/2, warm 0/1", "Ready=False GroupsNotReady: 0 of 2 groups serve"]


def test_conditions_that_ask_for_attention_are_shown_and_quiet_ones_are_not() -> None:
    quiet = [
        _condition("Stalled", "False"),
        _condition("CapacityAvailable", "True"),
        _condition("SLOMet", "False"),
        _condition("SpecHonored", "True"),
    ]
    assert len(view.pool_lines(_pool(*quiet))) == 1
    got = view.pool_lines(_pool(_condition("CapacityAvailable", "False", "CapacityShort", "8 GPUs are missing")))
    assert got[1:] == ["CapacityAvailable=False CapacityShort: 8 GPUs are missing"]


def test_a_pool_without_status_says_that_the_operator_has_not_seen_it() -> None:
    assert view.pool_lines({}) == ["the operator has not looked at the pool yet"]


def _pod(status: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "p-0", "labels": {"headwater.dev/role": "active"}}, "status": status}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        ({"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {}}}]}, "Running, ready"),
        ({"phase": "Running", "containerStatuses": [{"ready": False, "state": {"running": {}}}]}, "Running, loading"),
        (
            {
                "phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": "ErrImageNeverPull", "message": "no image"}}}],
            },
            "Pending, ErrImageNeverPull no image",
        ),
        (
            {"phase": "Pending", "conditions": [_condition("PodScheduled", "False", message="Insufficient cpu")]},
            "Pending, Insufficient cpu",
        ),
        ({}, "Unknown"),
    ],
)
def test_a_pod_shows_why_it_does_not_serve_yet(status: dict[str, Any], want: str) -> None:
    assert view.pod_line(_pod(status)) == f"pod p-0 (active): {want}"


def test_the_newest_events_are_shown_whatever_api_wrote_them() -> None:
    events = [
        {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "reason": "Old", "message": "x"},
        {"metadata": {}, "lastTimestamp": "2026-01-01T00:00:03Z", "reason": "C", "message": "c"},
        {"metadata": {}, "eventTime": "2026-01-01T00:00:02Z", "reason": "B", "note": "b"},
        {
            "metadata": {},
            "eventTime": "2026-01-01T00:00:01Z",
            "series": {"lastObservedTime": "2026-01-01T00:00:04Z"},
            "reason": "D",
            "message": "d\nd",
        },
    ]
    assert view.event_lines(events) == ["B: b", "C: c", "D: d d"]


def test_startup_probes_that_fail_are_not_shown() -> None:
    failed = {"metadata": {}, "lastTimestamp": "9", "reason": "Unhealthy", "message": "Startup probe failed: 503"}
    assert view.event_lines([failed]) == []
    assert view.event_lines([{**failed, "message": "Readiness probe failed: 503"}]) != []


def test_a_stalled_pool_says_what_a_person_must_do() -> None:
    assert view.stalled(_pool(_condition("Stalled", "True", "ImageNotAllowed", "use another"))) == (
        "ImageNotAllowed: use another"
    )
    assert view.stalled(_pool(_condition("Stalled", "False"))) is None
    assert view.stalled(None) is None
