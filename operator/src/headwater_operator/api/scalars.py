"""Values that several fields share: counts, percentages, names, quantities."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from headwater_operator.api.base import Cel, Rules, SchemaExtra

DNS_LABEL = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""DNS-1035, as Services want it."""
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
)
QUANTITY = r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"

Replicas = Annotated[int, Field(ge=0, le=1000)]
PositiveReplicas = Annotated[int, Field(ge=1, le=1000)]
Percent = Annotated[int, Field(ge=1, le=100)]
Count = Annotated[int, Field(ge=0)]

ObjectName = Annotated[str, StringConstraints(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)]
OptionalObjectName = Annotated[
    str,
    StringConstraints(max_length=253),
    Rules(Cel(f"self == '' || self.matches(r'{DNS_SUBDOMAIN}')", "must be the name of an object, or empty")),
]
LabelValue = Annotated[str, StringConstraints(pattern=LABEL_VALUE, max_length=63)]


def _as_text(value: object) -> object:
    """YAML reads ``cpu: 16`` as a number; the API takes both, as for a pod."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Quantity = Annotated[
    str,
    BeforeValidator(_as_text),
    StringConstraints(pattern=QUANTITY, max_length=32),
    SchemaExtra(x_kubernetes_int_or_string=True),
    # The server takes no notice of a pattern beside int-or-string, so the rule checks the form too.
    Rules(
        Cel(
            f"string(self).matches(r'{QUANTITY}') && quantity(string(self)).isGreaterThan(quantity('0'))",
            "must be a quantity above 0, such as 16, 500m or 200Gi",
        )
    ),
]
"""A Kubernetes quantity such as ``16``, ``500m`` or ``200Gi``."""
