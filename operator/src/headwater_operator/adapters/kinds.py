"""The kinds that the operator reads or writes, and where the API server keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from headwater_contracts.labels import API_GROUP, API_VERSION


@dataclass(frozen=True, slots=True)
class Kind:
    """One Kubernetes kind."""

    name: str
    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As it stands in an object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of a collection, an object or a subresource; no namespace means all of them."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


POOL = Kind("InferencePool", API_GROUP, API_VERSION, "inferencepools")
GROUP = Kind("ReplicaGroup", API_GROUP, API_VERSION, "replicagroups")
POD = Kind("Pod", "", "v1", "pods")
SERVICE = Kind("Service", "", "v1", "services")
NODE = Kind("Node", "", "v1", "nodes", namespaced=False)
EVENT = Kind("Event", "", "v1", "events")
REVISION = Kind("ControllerRevision", "apps", "v1", "controllerrevisions")
ENDPOINT_SLICE = Kind("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices")
LEASE = Kind("Lease", "coordination.k8s.io", "v1", "leases")

KINDS = {kind.name: kind for kind in (POOL, GROUP, POD, SERVICE, NODE, EVENT, REVISION, ENDPOINT_SLICE, LEASE)}
"""By the name in an object's ``kind``."""
