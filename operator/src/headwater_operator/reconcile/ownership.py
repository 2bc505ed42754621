"""Whose an object is, of those that have a name which a pool needs."""

from __future__ import annotations

from enum import Enum, auto

from headwater_operator.adapters.kinds import POOL
from headwater_operator.adapters.store import controller_of
from headwater_operator.ports import Object


class Ownership(Enum):
    """An object's relation to one pool."""

    ABSENT = auto()
    OURS = auto()
    LEFTOVER = auto()
    """Of an earlier pool of the same name; the garbage collector is about to take it."""
    FOREIGN = auto()
    """Somebody else's. Never taken over."""


def ownership(item: Object | None, pool: str, pool_uid: str) -> Ownership:
    """Judges by the controller reference alone: labels and names can be anybody's."""
    if item is None:
        return Ownership.ABSENT
    owner = controller_of(item)
    if owner is None:
        return Ownership.FOREIGN
    if owner["uid"] == pool_uid:
        return Ownership.OURS
    earlier = owner.get("kind") == POOL.name and owner.get("name") == pool
    return Ownership.LEFTOVER if earlier else Ownership.FOREIGN
