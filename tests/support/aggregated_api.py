"""A tiny aggregated API: an HTTPS server that admits only the API server's front proxy and notes for whom it asks."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from e2e.cluster.pki import CA, FRONT_PROXY_CA, PKI
from e2e.cluster.state import State

GROUP, VERSION, SERVICE = "test.headwater.dev", "v1", "aggregated"


class AggregatedApi:
    """Serves one API group at an address that the API server reaches; `callers` are (user, group) pairs."""

    def __init__(self, state: State, address: str) -> None:
        self.callers: list[tuple[str, str]] = []
        self.name, self.path = f"{VERSION}.{GROUP}", f"/apis/{GROUP}/{VERSION}"
        self._pki, self._address = PKI(state), address
        self._pki.issue("aggregated", SERVICE, addresses=(f"{SERVICE}.default.svc",))
        self._server = ThreadingHTTPServer((address, 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pki.cert("aggregated"), self._pki.key("aggregated"))
        context.load_verify_locations(self._pki.cert(FRONT_PROXY_CA))
        context.verify_mode = ssl.CERT_REQUIRED
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def objects(self) -> list[dict[str, Any]]:
        """The Service without a selector, its one endpoint, and the APIService."""
        authority = base64.b64encode(self._pki.cert(CA).read_bytes()).decode()
        port = self._server.server_address[1]
        return [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": SERVICE, "namespace": "default"},
                "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "addressType": "IPv4",
                "metadata": {
                    "name": SERVICE,
                    "namespace": "default",
                    "labels": {"kubernetes.io/service-name": SERVICE},
                },
                "endpoints": [{"addresses": [self._address], "conditions": {"ready": True}}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": self.name},
                "spec": {
                    "group": GROUP,
                    "version": VERSION,
                    "caBundle": authority,
                    "groupPriorityMinimum": 1000,
                    "versionPriority": 10,
                    "service": {"name": SERVICE, "namespace": "default", "port": 443},
                },
            },
        ]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        callers = self.callers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                callers.append((self.headers.get("X-Remote-User", ""), self.headers.get("X-Remote-Group", "")))
                body = json.dumps({"kind": "APIResourceList", "resources": []}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
