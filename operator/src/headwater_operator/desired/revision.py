"""What a revision is: the resolved template of a group, and the hash that names it.

The hash covers what a user wrote about model, engine, placement, resources and the warm-pool tier, and never
what the operator adds (default image, built pods): so an operator upgrade re-hashes nothing. Two rules keep it
so when the API grows. A field of ``_V1_FIELDS`` always counts, since the API server has stored its value, default
or not; a changed default then changes no stored pool. A field added later counts only where it differs from its
default; a pool stored before it existed then keeps its hash. A change of these rules needs a new version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from headwater_operator.api.base import ApiModel
from headwater_operator.api.engine import Backend
from headwater_operator.api.group import GroupTemplate
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.settings import DecisionSettings

_HASH_VERSION = "v1"
_HASH_LENGTH = 10

_V1_FIELDS = frozenset(
    {
        "model.name",
        "model.source.huggingFace.repo",
        "model.source.huggingFace.revision",
        "model.source.huggingFace.tokenSecret.name",
        "model.source.huggingFace.tokenSecret.key",
        "model.source.persistentVolumeClaim.claimName",
        "model.source.persistentVolumeClaim.path",
        "model.source.imagePath",
        "model.cache.persistentVolumeClaim",
        "engine.backend",
        "engine.image",
        "engine.tensorParallelSize",
        "engine.pipelineParallelSize",
        "engine.maxModelLen",
        "engine.blockSize",
        "engine.maxNumBatchedTokens",
        "engine.prefixCaching",
        "engine.extraArgs",
        "engine.simulation.profile",
        "engine.simulation.timeScale",
        "placement.acceleratorResource",
        "placement.acceleratorProduct",
        "placement.nodeSelector",
        "placement.tolerations",
        "placement.priorityClassName",
        "resources.cpu",
        "resources.memory",
        "resources.sharedMemory",
    }
)
_WHOLE = frozenset({"engine.extraArgs", "placement.nodeSelector", "placement.tolerations"})
"""Maps and lists that users fill freely: compared as one value."""


def default_image(spec: InferencePoolSpec, settings: DecisionSettings) -> str:
    """The operator's image for a pool that names none; empty if the installation has none for it."""
    if spec.engine.backend is Backend.SIM:
        return settings.default_image_sim
    if spec.placement.accelerator_resource == "":
        return settings.default_image_vllm_cpu
    return settings.default_image_vllm_cuda


def resolve_template(spec: InferencePoolSpec, settings: DecisionSettings) -> dict[str, Any]:
    """The template of a new revision as plain JSON values, default image filled in."""
    image = spec.engine.image or default_image(spec, settings)
    return GroupTemplate(
        model=spec.model,
        engine=spec.engine.model_copy(update={"image": image}),
        placement=spec.placement,
        resources=spec.resources,
        tier=spec.warm_pool.tier,
    ).to_object()


def revision_hash(spec: InferencePoolSpec) -> str:
    """Ten hex digits over what the spec says about a group; see the module note."""
    sections: dict[str, ApiModel] = {
        "model": spec.model,
        "engine": spec.engine,
        "placement": spec.placement,
        "resources": spec.resources,
    }
    inputs: dict[str, Any] = {"tier": str(spec.warm_pool.tier)}
    for name, section in sections.items():
        stored = dict(_leaves(section.to_object(), name))
        set_away = dict(_leaves(section.model_dump(mode="json", by_alias=True, exclude_defaults=True), name))
        inputs |= {path: value for path, value in stored.items() if path in _V1_FIELDS or path in set_away}
    text = f"{_HASH_VERSION}:{json.dumps(inputs, sort_keys=True, separators=(',', ':'))}"
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def _leaves(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        below = f"{path}.{key}"
        if isinstance(item, Mapping) and below not in _WHOLE:
            yield from _leaves(item, below)
        else:
            yield below, item
