"""A few plain calls to the API server, with the admin's certificate."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from e2e.cluster.pki import CA, PKI
from e2e.cluster.state import State

TIMEOUT_SECONDS = 10


class Api:
    """Calls as cluster admin; never through a proxy that the environment may name."""

    def __init__(self, state: State, server: str) -> None:
        pki = PKI(state)
        context = ssl.create_default_context(cafile=pki.cert(CA))
        context.load_cert_chain(pki.cert("admin"), pki.key("admin"))
        self._server = server
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def answers(self, path: str) -> bool:
        """Whether a GET is answered with 200."""
        try:
            with self._opener.open(self._server + path, timeout=TIMEOUT_SECONDS) as response:
                return bool(response.status == http.HTTPStatus.OK)
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> Any:
        """The decoded JSON of a GET; urllib's errors are the caller's."""
        with self._opener.open(self._server + path, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)

    def patch(self, path: str, operations: list[dict[str, object]]) -> None:
        """Send a JSON patch."""
        request = urllib.request.Request(
            self._server + path,
            data=json.dumps(operations).encode(),
            headers={"Content-Type": "application/json-patch+json"},
            method="PATCH",
        )
        with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            response.read()
