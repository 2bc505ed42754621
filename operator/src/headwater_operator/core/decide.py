"""The decision: one frozen snapshot in, one plan out. No input, no output, no clock."""

from __future__ import annotations

from datetime import datetime

from headwater_contracts.reasons import Reason
from headwater_operator.core.actions import Plan
from headwater_operator.core.names import NameSource
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import PoolSnapshot


def decide(snapshot: PoolSnapshot, settings: DecisionSettings, now: datetime, names: NameSource) -> Plan:
    """What to do about a pool, in order, and why."""
    return Plan((), (), 0, 0, Reason.FIXED_REPLICAS, None)
