"""``spec.placement`` and ``spec.resources``: which nodes the pods may use, and how much of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from headwater_operator.api.base import ApiModel, Cel, Rules, SchemaExtra
from headwater_operator.api.scalars import DNS_SUBDOMAIN, LABEL_VALUE, QUALIFIED_NAME, LabelValue, Quantity

ResourceName = Annotated[
    str,
    StringConstraints(max_length=253),
    Rules(
        Cel(
            f"self == '' || (self.contains('/') && self.matches(r'{QUALIFIED_NAME}'))",
            "must be an extended resource such as nvidia.com/gpu, or empty to run on CPU",
        )
    ),
]
NodeSelector = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=63)]],
    Field(max_length=32),
    Rules(
        Cel(
            f"self.all(k, k.matches(r'{QUALIFIED_NAME}') && self[k].matches(r'{LABEL_VALUE}'))",
            "must map label names to label values",
        )
    ),
]
PriorityClassName = Annotated[
    str,
    StringConstraints(max_length=253),
    Rules(
        Cel(f"self == '' || self.matches(r'{DNS_SUBDOMAIN}')", "must be the name of a PriorityClass, or empty"),
        Cel(
            "!self.startsWith('system-')",
            "system- priority classes are for the cluster's own pods: name another one",
            reason="FieldValueForbidden",
        ),
    ),
]


class TolerationOperator(StrEnum):
    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(ApiModel):
    """A taint that the pods tolerate, as in a pod."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel("self.operator != 'Exists' || !has(self.value)", "remove value, or set operator to Equal", at=".value"),
        Cel("self.operator == 'Exists' || has(self.key)", "set key, or set operator to Exists", at=".key"),
        Cel(
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "is only for effect NoExecute: remove tolerationSeconds, or set effect to NoExecute",
            at=".tolerationSeconds",
        ),
    )

    key: Annotated[str, StringConstraints(pattern=QUALIFIED_NAME, max_length=317)] | None = None
    """Key of the taint; absent with operator Exists: any."""
    operator: TolerationOperator = TolerationOperator.EQUAL
    """Exists, or Equal to compare the value too."""
    value: LabelValue | None = None
    """Value of the taint, for operator Equal."""
    effect: TaintEffect | None = None
    """Effect of the taint; absent: any."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """How long the pod stays once a NoExecute taint appears; absent: for ever."""


class Placement(ApiModel):
    """Which nodes the pods may use."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "!has(self.acceleratorProduct) || self.acceleratorResource != ''",
            "needs an accelerator: remove acceleratorProduct, or set acceleratorResource",
            at=".acceleratorProduct",
        ),
    )

    accelerator_resource: ResourceName = "nvidia.com/gpu"
    """Extended resource of which each pod gets tensorParallelSize. Empty: the pods run on CPU."""
    accelerator_product: Annotated[LabelValue, Field(min_length=1)] | None = None
    """Value of the node label nvidia.com/gpu.product that the pods need, such as NVIDIA-H100-80GB-HBM3."""
    node_selector: NodeSelector = Field(default_factory=dict)
    """Further node labels that the pods need."""
    tolerations: Annotated[
        tuple[Toleration, ...], Field(max_length=16), SchemaExtra(x_kubernetes_list_type="atomic")
    ] = ()
    """Taints that the pods tolerate."""
    priority_class_name: PriorityClassName = ""
    """PriorityClass of the pods."""


class Resources(ApiModel):
    """CPU and memory of each pod."""

    cpu: Quantity = "16"
    """CPUs of one pod, such as 16 or 500m. Requested and not limited, since throttling would stall token streams."""
    memory: Quantity = "200Gi"
    """Memory of one pod, shared memory included, such as 200Gi. Requested and limited alike."""
    shared_memory: Quantity = "16Gi"
    """Most that /dev/shm may hold, through which tensor-parallel workers talk. It counts as memory of the pod."""
