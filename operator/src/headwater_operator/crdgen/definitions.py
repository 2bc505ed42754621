"""The two CustomResourceDefinitions, whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from headwater_contracts.labels import API_GROUP, API_VERSION, LABEL_POOL, MAX_POOL_NAME_LENGTH
from headwater_operator.api.base import VALIDATIONS, Cel
from headwater_operator.api.group import ReplicaGroupSpec, ReplicaGroupStatus
from headwater_operator.api.pool import InferencePoolSpec, InferencePoolStatus
from headwater_operator.crdgen.structural import structural_schema

_READY = '.status.conditions[?(@.type=="Ready")]'


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; a wide one shows with ``-o wide`` only."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    wide: bool = False

    def as_object(self) -> dict[str, Any]:
        """The column as ``additionalPrinterColumns`` wants it."""
        out: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            out["description"] = self.description
        return {**out, "priority": 1} if self.wide else out


@dataclass(frozen=True, slots=True)
class Kind:
    """What one CustomResourceDefinition is made from."""

    kind: str
    plural: str
    short_name: str
    description: str
    spec: type[BaseModel]
    status: type[BaseModel]
    columns: tuple[Column, ...]
    rules: tuple[Cel, ...] = ()
    scale: bool = False


_AGE = Column("AGE", ".metadata.creationTimestamp", "date", "Time since creation.")

POOL = Kind(
    kind="InferencePool",
    plural="inferencepools",
    short_name="ipool",
    description="InferencePool serves one model with a number of replica groups, and keeps warm ones in reserve.",
    spec=InferencePoolSpec,
    status=InferencePoolStatus,
    columns=(
        Column("ACTIVE", ".status.summary.active", description="Groups that serve, of those desired."),
        Column("WARM", ".status.summary.warm", description="Loaded standby groups, of those desired."),
        Column("KV", ".status.summary.kv", description="Used share of the KV cache."),
        Column("TTFT-P90", ".status.summary.ttft", description="90th percentile of the time to the first token."),
        Column("READY", f"{_READY}.status", description="Whether the pool serves as its spec says."),
        Column("MODEL", ".spec.model.name", description="Name that clients send.", wide=True),
        Column("REVISION", ".status.currentRevision", description="Revision that serves.", wide=True),
        Column("REASON", f"{_READY}.reason", description="Why the pool is ready or not.", wide=True),
        _AGE,
    ),
    rules=(
        Cel(
            f"self.metadata.name.size() <= {MAX_POOL_NAME_LENGTH} "
            "&& self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            f"the name must have at most {MAX_POOL_NAME_LENGTH} characters, only lower-case letters, digits and "
            "dashes, begin with a letter and end with a letter or digit, for the pool's Service bears it: choose "
            "another name",
            at=".metadata.name",
        ),
        Cel(
            "!has(self.spec.degradation) || !has(self.spec.degradation.fallbackPool) "
            "|| self.spec.degradation.fallbackPool != self.metadata.name",
            "must name another pool than this one",
            at=".spec.degradation.fallbackPool",
        ),
    ),
    scale=True,
)

GROUP = Kind(
    kind="ReplicaGroup",
    plural="replicagroups",
    short_name="rgroup",
    description="ReplicaGroup is one servable copy of a pool's model. The operator makes and deletes groups; to change "
    "one, change its InferencePool.",
    spec=ReplicaGroupSpec,
    status=ReplicaGroupStatus,
    columns=(
        Column("POOL", f".metadata.labels.{LABEL_POOL.replace('.', chr(92) + '.')}", description="Pool of the group."),
        Column("ROLE", ".spec.role", description="What the group is for."),
        Column("PHASE", ".status.phase", description="Summary of the group's conditions."),
        Column("NODE", ".status.nodes[0]", description="Node of its leader."),
        Column("RUNNING", ".status.running", "integer", "Requests that are being computed."),
        Column("KV", ".status.kvCacheUtilizationPercent", "integer", "Used share of the KV cache, in percent."),
        Column("REVISION", ".spec.revision", description="Hash of the template.", wide=True),
        _AGE,
    ),
)

KINDS = (POOL, GROUP)


def build_crd(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition object of ``kind``."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{API_GROUP}"},
        "spec": {
            "group": API_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": [kind.short_name],
                "categories": ["headwater"],
            },
            "versions": [_version(kind)],
        },
    }


def _version(kind: Kind) -> dict[str, Any]:
    return {
        "name": API_VERSION,
        "served": True,
        "storage": True,
        "subresources": _subresources(kind),
        "additionalPrinterColumns": [column.as_object() for column in kind.columns],
        "schema": {"openAPIV3Schema": root_schema(kind)},
    }


def _subresources(kind: Kind) -> dict[str, Any]:
    if not kind.scale:
        return {"status": {}}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return {"status": {}, "scale": scale}


def root_schema(kind: Kind) -> dict[str, Any]:
    """Schema of the whole object. ``metadata.name`` gets a length so that rules over it stay within their cost."""
    schema: dict[str, Any] = {
        "type": "object",
        "description": kind.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{API_GROUP}/{API_VERSION}."},
            "kind": {"type": "string", "description": f"{kind.kind}."},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
            "spec": structural_schema(kind.spec),
            "status": structural_schema(kind.status),
        },
    }
    if kind.rules:
        schema[VALIDATIONS] = [rule.as_schema() for rule in kind.rules]
    return schema
