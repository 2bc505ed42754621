"""From a stored object to its model. The API server has checked it; this is the second line for what it let pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from headwater_operator.api.base import ApiModel
from headwater_operator.api.group import GroupTemplate, ReplicaGroupSpec
from headwater_operator.api.pool import InferencePoolSpec

_M = TypeVar("_M", bound=ApiModel)
_UNKNOWN_FIELD = "is not a field that this operator knows: remove it, or upgrade the operator"


class InvalidSpec(ValueError):  # noqa: N818
    """A stored object that does not fit the API. The text names each field and what it must be."""


def parse_pool(obj: Mapping[str, Any]) -> InferencePoolSpec:
    """Spec of an InferencePool object. InvalidSpec when it does not fit."""
    return _parse(InferencePoolSpec, obj.get("spec", {}), "spec")


def parse_group(obj: Mapping[str, Any]) -> ReplicaGroupSpec:
    """Spec of a ReplicaGroup object. InvalidSpec when it does not fit."""
    return _parse(ReplicaGroupSpec, obj.get("spec", {}), "spec")


def parse_template(template: Mapping[str, Any]) -> GroupTemplate:
    """A resolved template, as a group or a revision holds it. InvalidSpec when it does not fit."""
    return _parse(GroupTemplate, template, "template")


def _parse(model: type[_M], value: object, root: str) -> _M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidSpec("; ".join(_problem(root, item) for item in error.errors(include_url=False))) from None


def _problem(root: str, item: Mapping[str, Any]) -> str:
    path = root
    for part in item["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    text = _UNKNOWN_FIELD if item["type"] == "extra_forbidden" else str(item["msg"]).removeprefix("Value error, ")
    return f"{path}: {text}"
