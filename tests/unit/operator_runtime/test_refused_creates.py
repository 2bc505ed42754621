"""Refused creates: said, not repeated at once, and forgotten when they no longer matter."""

from __future__ import annotations

from headwater_operator.core.snapshot import NEW_GROUP, Refusal
from headwater_operator.reconcile.refusals import LAST_WAIT_SECONDS, Refusals

POOL = ("n", "p")


def test_a_refused_object_is_asked_for_later_each_time_up_to_a_cap() -> None:
    refusals, waits = Refusals(), []
    for _ in range(10):
        refusals.add(POOL, "g-0", "quota", 0.0)
        waits.append(refusals.wait_seconds(POOL, "g-0", 0.0))
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LAST_WAIT_SECONDS
    assert refusals.wait_seconds(POOL, "g-0", 1000.0) == 0.0
    assert refusals.wait_seconds(POOL, "other-0", 0.0) == 0.0


def test_only_a_new_message_is_news() -> None:
    refusals = Refusals()
    assert refusals.add(POOL, "g-0", "quota", 0.0)
    assert not refusals.add(POOL, "g-0", "quota", 5.0)
    assert refusals.add(POOL, "g-0", "another", 9.0)
    assert refusals.standing(POOL, 12.0) == {"g-0": Refusal("another", 12.0)}, "refused since the first time"


def test_a_changed_spec_asks_anew_at_once() -> None:
    refusals = Refusals()
    refusals.begin(POOL, 1, ["g"])
    refusals.add(POOL, "g-0", "quota", 0.0)
    refusals.begin(POOL, 1, ["g"])
    assert refusals.wait_seconds(POOL, "g-0", 0.0) > 0
    refusals.begin(POOL, 2, ["g"])
    assert refusals.wait_seconds(POOL, "g-0", 0.0) == 0


def test_pods_of_groups_that_are_gone_are_forgotten_and_the_want_of_a_group_is_not() -> None:
    refusals = Refusals()
    refusals.begin(POOL, 1, ["g"])
    refusals.add(POOL, "g-0", "quota", 0.0)
    refusals.add(POOL, NEW_GROUP, "quota", 0.0)
    refusals.begin(POOL, 1, [])
    assert list(refusals.standing(POOL, 0.0)) == [NEW_GROUP]


def test_an_accepted_object_is_no_longer_named() -> None:
    refusals = Refusals()
    refusals.add(POOL, "g-0", "quota", 0.0)
    refusals.accepted(POOL, "g-0")
    assert refusals.standing(POOL, 0.0) == {}
    assert refusals.next_try_seconds(POOL, 0.0) is None
