"""As much of a Kubernetes API server as helm's lookups and dry runs ask: discovery and GET of given objects."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Object = dict[str, Any]

# kind → (group/version, plural, namespaced): everything that the chart renders or looks up.
KINDS = {
    "Namespace": ("v1", "namespaces", False),
    "Secret": ("v1", "secrets", True),
    "Service": ("v1", "services", True),
    "ServiceAccount": ("v1", "serviceaccounts", True),
    "Deployment": ("apps/v1", "deployments", True),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings", True),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
}

_MISSING = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


@contextmanager
def api_with(objects: Iterable[Object] = ()) -> Iterator[str]:
    """Serves the objects read-only on loopback and yields the address. Anything else is Not Found."""
    answers = {**_discovery(), **{_path(thing): thing for thing in objects}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(re.sub(r"\?.*", "", self.path))
            if answer is None and self.path.endswith("owner%3Dhelm"):
                answer = {"kind": "SecretList", "apiVersion": "v1", "items": []}  # no releases
            body = json.dumps(answer or _MISSING).encode()
            self.send_response(200 if answer else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Keeps the test output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _root(group_version: str) -> str:
    return f"/api/{group_version}" if group_version == "v1" else f"/apis/{group_version}"


def _path(thing: Object) -> str:
    group_version, plural, namespaced = KINDS[thing["kind"]]
    metadata = thing["metadata"]
    scope = f"/namespaces/{metadata['namespace']}" if namespaced else ""
    return f"{_root(group_version)}{scope}/{plural}/{metadata['name']}"


def _discovery() -> dict[str, Object]:
    groups = sorted({group_version for group_version, _, _ in KINDS.values() if group_version != "v1"})
    answers: dict[str, Object] = {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.4"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in groups]},
    }
    for group_version in ["v1", *groups]:
        resources = [
            {"name": plural, "kind": kind, "namespaced": namespaced, "verbs": ["get", "list", "create", "patch"]}
            for kind, (owner, plural, namespaced) in KINDS.items()
            if owner == group_version
        ]
        answers[_root(group_version)] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": resources,
        }
    return answers


def _group(group_version: str) -> Object:
    group, version = group_version.split("/")
    entry = {"groupVersion": group_version, "version": version}
    return {"name": group, "versions": [entry], "preferredVersion": entry}
