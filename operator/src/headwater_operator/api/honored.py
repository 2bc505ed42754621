"""Fields that the API accepts and this version does not act on yet, or not in full.

A pool that sets one of them away from its default gets the condition ``SpecHonored=False`` with the paths, so that
nothing is ignored in silence. Acting on a field means removing its line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater_operator.api.base import ApiModel
from headwater_operator.api.pool import InferencePoolSpec

NOT_HONORED: tuple[str, ...] = (
    "engine.pipelineParallelSize",
    "autoscaling",
    "slo.kvCacheUtilizationPercent",
    "slo.objectivePercent",
    "admission",
    "degradation",
    "warmPool.tier",
    "rollout.progressDeadline",
)
"""Paths below ``spec``. A path to an object stands for all of its fields."""
PARTLY_HONORED: Mapping[str, str] = {
    "rollout.partition": "that many active groups stay on the old revision, but one of them that fails is replaced at "
    "the new one",
}
"""Paths below ``spec`` that act in part, and how far."""


def fields_not_honored(spec: InferencePoolSpec) -> tuple[str, ...]:
    """Paths, with ``spec.`` in front, that ``spec`` sets away from their default without effect in this version."""
    return tuple(f"spec.{path}" for path in NOT_HONORED if _is_set(spec, path.split(".")))


def fields_partly_honored(spec: InferencePoolSpec) -> Mapping[str, str]:
    """The same for fields that act in part, each with how far."""
    return {f"spec.{path}": how for path, how in PARTLY_HONORED.items() if _is_set(spec, path.split("."))}


def _is_set(model: ApiModel, path: list[str]) -> bool:
    """Whether the field at ``path`` differs from its default. An absent optional object sets nothing."""
    alias, *rest = path
    name = next(name for name, field in type(model).model_fields.items() if alias in (name, field.alias))
    value = getattr(model, name)
    if rest and value is not None:
        return _is_set(value, rest)
    return bool(value != type(model).model_fields[name].get_default(call_default_factory=True))
