"""The store's table: what wins when lists, watches and own writes meet in any order."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_operator.adapters.store import Store


def thing(
    name: str = "a", *, uid: str = "u1", version: int = 1, owner: str | None = None, **more: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    if owner is not None:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True, "kind": "K", "name": "o"}]
    return {"metadata": metadata, **more}


class Changes(list[tuple[str, str]]):
    def __call__(self, new: Any, old: Any) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        self.append((kind, (new or old)["metadata"]["uid"]))


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def store(changes: Changes) -> Store:
    return Store(changes)


def test_a_newer_version_replaces_an_older_one(store: Store, changes: Changes) -> None:
    store.observe(thing(version=1))
    store.observe(thing(version=2, x="new"))
    got = store.get("n", "a")
    assert got is not None
    assert got["x"] == "new"
    assert changes == [("added", "u1"), ("changed", "u1")]


@pytest.mark.parametrize("version", [4, 5])
def test_an_older_or_equal_version_is_ignored(store: Store, changes: Changes, version: int) -> None:
    store.observe(thing(version=5, x="new"))
    store.observe(thing(version=version, x="old"))
    got = store.get("n", "a")
    assert got is not None
    assert got["x"] == "new"
    assert changes == [("added", "u1")]


def test_versions_are_compared_as_numbers(store: Store) -> None:
    store.observe(thing(version=9))
    store.observe(thing(version=10, x="ten"))
    got = store.get("n", "a")
    assert got is not None
    assert got["x"] == "ten"


def test_a_late_answer_to_an_own_write_does_not_bring_back_what_was_deleted(store: Store) -> None:
    store.forget("u1")
    store.observe(thing(version=9))
    assert store.get("n", "a") is None


def test_a_list_makes_up_the_deletion_of_what_it_no_longer_shows(store: Store, changes: Changes) -> None:
    store.observe(thing("a", uid="u1", version=3))
    store.observe(thing("b", uid="u2", version=4))
    store.end_list(["u2"], 10, namespace=None)
    assert store.get("n", "a") is None
    assert store.get("n", "b") is not None
    assert changes[-1] == ("deleted", "u1")


def test_a_list_keeps_what_was_created_after_it_was_taken(store: Store) -> None:
    store.observe(thing(version=11))
    store.end_list([], 10, namespace=None)
    assert store.get("n", "a") is not None


def test_a_list_of_one_namespace_says_nothing_about_another(store: Store) -> None:
    store.observe(thing(version=1))
    store.end_list([], 10, namespace="other")
    assert store.get("n", "a") is not None


def test_a_name_used_again_leads_to_the_new_object_even_if_the_old_one_goes_later(store: Store) -> None:
    store.observe(thing(uid="u1", version=1))
    store.observe(thing(uid="u2", version=2))
    store.forget("u1")
    got = store.get("n", "a")
    assert got is not None
    assert got["metadata"]["uid"] == "u2"


def test_children_are_found_by_the_controllers_uid_and_leave_with_their_deletion(store: Store) -> None:
    store.observe(thing("a", uid="u1", owner="o1"))
    store.observe(thing("b", uid="u2", owner="o1"))
    store.observe(thing("c", uid="u3", owner="o2"))
    assert [item["metadata"]["name"] for item in store.owned("o1")] == ["a", "b"]
    store.forget("u1")
    assert [item["metadata"]["name"] for item in store.owned("o1")] == ["b"]
    assert store.owned("nobody") == []


def test_an_object_that_changes_its_owner_is_found_under_the_new_one_only(store: Store) -> None:
    store.observe(thing(version=1, owner="o1"))
    store.observe(thing(version=2, owner="o2"))
    assert store.owned("o1") == []
    assert len(store.owned("o2")) == 1
