"""``docs/reference/api.md``: every field with its type, default, rules and description, from the schemas."""

from __future__ import annotations


def reference_text() -> str:
    """The whole page."""
    return ""
