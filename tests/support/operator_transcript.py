"""A simulation's story as text: each decision, write and turn of the pool, one line each, for people to read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from support.operator_sim import Simulation
from support.operator_sim_api import Write

UPDATE = "HEADWATER_UPDATE_GOLDEN"
"""Set to 1 to write golden files anew; the commit then says why they changed."""
_GOLDEN = Path(__file__).parents[1] / "sim" / "operator" / "golden"
_TOLD = ("Ready", "Stalled", "WarmPoolReady", "CapacityAvailable", "RolledOut")


def transcript(sim: Simulation) -> str:
    """The story so far."""
    lines = [(at, 1, f"event   {reason}: {message}") for at, reason, message in sim.log.events]
    for write in sim.api.history:
        lines += [(write.at, 0, line) for line in _lines(write)]
    return "".join(f"{at:7.1f}  {line}\n" for at, _, line in sorted(lines, key=lambda line: line[:2]))


def assert_golden(sim: Simulation, name: str) -> None:
    """Compares the story with the checked-in one."""
    path, got = _GOLDEN / f"{name}.txt", transcript(sim)
    if os.environ.get(UPDATE) == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(got, encoding="utf-8")
    want = path.read_text(encoding="utf-8")
    assert got == want, f"{path.name} tells another story; {UPDATE}=1 writes it anew"


def _lines(write: Write) -> list[str]:
    if write.kind == "ReplicaGroup":
        return _group(write)
    if write.kind == "InferencePool":
        return _pool(write)
    if write.kind in ("Service", "ControllerRevision") and write.verb in ("create", "delete"):
        return [f"{write.verb:7} {write.kind} {write.name}"]
    if write.kind == "Pod" and write.verb in ("create", "delete"):
        return [f"{write.verb:7} pod {write.name}"]
    return []


def _group(write: Write) -> list[str]:
    if write.verb in ("create", "delete"):
        role = (write.after or write.before or {})["spec"]["role"]
        return [f"{write.verb:7} group {write.name} ({role})"]
    before, after = write.before or {}, write.after or {}
    if before["spec"]["role"] != after["spec"]["role"]:
        return [f"role    group {write.name}: {before['spec']['role']} → {after['spec']['role']}"]
    old, new = _phase(before), _phase(after)
    return [f"phase   group {write.name}: {old or '-'} → {new}"] if old != new else []


def _phase(group: dict[str, Any]) -> str | None:
    phase: str | None = (group.get("status") or {}).get("phase")
    return phase


def _pool(write: Write) -> list[str]:
    before, after = write.before or {}, write.after or {}
    if write.verb == "other":
        changed = [key for key, value in after["spec"].items() if before["spec"].get(key) != value]
        fields = ", ".join(f"{key}={after['spec'][key]}" for key in changed)
        return [f"user    sets {fields}"]
    lines = []
    old, new = before.get("status") or {}, after.get("status") or {}
    counts = [{key: status.get("summary", {}).get(key) for key in ("active", "warm")} for status in (old, new)]
    if new and counts[0] != counts[1]:
        lines.append(f"status  active {counts[1]['active']}, warm {counts[1]['warm']}")
    conditions = {item["type"]: item for item in old.get("conditions", ())}
    for item in new.get("conditions", ()):
        was = conditions.get(item["type"], {})
        if item["type"] in _TOLD and (was.get("status"), was.get("reason")) != (item["status"], item["reason"]):
            lines.append(f"status  {item['type']}={item['status']} ({item['reason']}) {item['message']}")
    return lines
