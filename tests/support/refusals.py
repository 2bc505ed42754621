"""The table of bad specs in ``docs/reference/refusals.yaml``, and what kubectl said, in comparable form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headwater_contracts.labels import API_GROUP, API_VERSION, LABEL_POOL

TABLE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "refusals.yaml"

_MODEL = {"name": "m", "source": {"imagePath": "/models/smollm2"}}
_TEMPLATE = {"model": _MODEL, "engine": {}, "placement": {}, "resources": {}}
BASE_SPECS: dict[str, dict[str, Any]] = {
    "InferencePool": {"model": _MODEL},
    "ReplicaGroup": {"role": "active", "revision": "6f9c01", "template": _TEMPLATE},
}
"""The least spec of each kind; a row of the table says what it changes."""

UNCHECKED = "some validation rules were not checked because the object was invalid"
"""What the server adds when an error kept it from running the CEL rules."""


@dataclass(frozen=True)
class Refusal:
    """One row: a change of the least spec, and what the API server answers."""

    what: str
    mechanism: str
    change: dict[str, Any]
    want: tuple[str, ...]
    kind: str = "InferencePool"
    name: str = "refused"
    before: dict[str, Any] | None = None
    """For a transition: what a stored object has beyond the least spec."""

    def __str__(self) -> str:
        return self.what

    def stored(self) -> dict[str, Any]:
        """The object that is there before."""
        return manifest(self.kind, self.name, self.before or {})

    def applied(self) -> dict[str, Any]:
        """The object that is refused."""
        return manifest(self.kind, self.name, self.change)


def load() -> list[Refusal]:
    """All rows."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return [Refusal(**{**row, "want": tuple(row["want"])}) for row in rows]


def manifest(kind: str, name: str, change: dict[str, Any]) -> dict[str, Any]:
    """A whole object: the least spec of its kind with ``change`` merged into it; null takes a field away."""
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": kind,
        "metadata": {"name": name, "labels": {LABEL_POOL: name}},
        "spec": merged(BASE_SPECS[kind], change),
    }


def merged(base: Any, change: Any) -> Any:
    """JSON merge patch (RFC 7396)."""
    if not isinstance(change, dict):
        return change
    out = dict(base) if isinstance(base, dict) else {}
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def messages(stderr: str) -> tuple[str, ...]:
    """kubectl's complaint as one text a problem, without the words around them."""
    if "strict decoding error: " in stderr:
        return (stderr.rsplit("strict decoding error: ", 1)[1].strip(),)
    body = re.sub(r'^The \w+ "[^"]*" is invalid:', "", stderr.strip()).strip()
    lines = [line.removeprefix("* ") for line in body.splitlines()]
    return tuple(line for line in lines if UNCHECKED not in line)
