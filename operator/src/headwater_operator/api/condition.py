"""Conditions, as every Kubernetes API has them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from headwater_operator.api.base import ApiModel, SchemaExtra

Timestamp = Annotated[str, StringConstraints(max_length=40), SchemaExtra(format="date-time")]
"""RFC 3339 time."""


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ApiModel):
    """One aspect of the object's state."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=316)]
    """Name of the aspect."""
    status: ConditionStatus
    """True, False or Unknown."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the spec that the condition is about."""
    last_transition_time: Timestamp
    """When status last changed."""
    reason: Annotated[str, StringConstraints(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", max_length=1024)]
    """Why, as one word that programs can rely on."""
    message: Annotated[str, StringConstraints(max_length=32768)] = ""
    """Why, and what to do, for people."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=16),
    SchemaExtra(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=("type",)),
]
