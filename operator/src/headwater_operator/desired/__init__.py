"""Pure builders of whole Kubernetes objects, with our labels, owner references and conventions."""

from headwater_operator.desired.groups import build_group, build_group_role
from headwater_operator.desired.pods import build_pod, build_pod_role, grace_period_seconds
from headwater_operator.desired.refs import BuildSettings, PoolRef
from headwater_operator.desired.revision import resolve_template, revision_hash
from headwater_operator.desired.revisions import build_revision
from headwater_operator.desired.services import build_service, service_selector

__all__ = [
    "BuildSettings",
    "PoolRef",
    "build_group",
    "build_group_role",
    "build_pod",
    "build_pod_role",
    "build_revision",
    "build_service",
    "grace_period_seconds",
    "resolve_template",
    "revision_hash",
    "service_selector",
]
