"""Names of groups and pods. Chance is an argument: the caller passes suffixes in."""

from __future__ import annotations

from collections.abc import Collection, Iterator

NameSource = Iterator[str]
"""Yields random suffixes of five characters from ``SUFFIX_ALPHABET``, without end."""

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, as Kubernetes itself does for generated names."""
SUFFIX_LENGTH = 5
_REVISION_CHARACTERS = 6


def group_name(pool: str, revision: str, suffix: str) -> str:
    """``<pool>-<revision6>-<suffix>``, a valid label value for pools of at most 40 characters."""
    return f"{pool}-{revision[:_REVISION_CHARACTERS]}-{suffix}"


def fresh_group_name(pool: str, revision: str, names: NameSource, taken: Collection[str]) -> str:
    """The first name from the source that no known group has."""
    while True:
        name = group_name(pool, revision, next(names))
        if name not in taken:
            return name


def pod_name(group: str, rank: int) -> str:
    """``<group>-<rank>``: deterministic, so that a second create of the same pod is refused by the API server."""
    return f"{group}-{rank}"


def revision_name(pool: str, revision: str) -> str:
    """Name of the ControllerRevision that holds a revision's template."""
    return f"{pool}-{revision}"
