"""Reaching a Service from this machine."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.kit.kubectl import Kubectl, KubectlError

_CONNECT_SECONDS = 2.0


@contextmanager
def reach_service(kubectl: Kubectl, name: str) -> Iterator[str]:
    """URL of a Service: its ClusterIP where this machine has a route to it, else a port-forward while in use.

    The bundled cluster's addresses are reachable from its host; those of kind and of remote clusters are not.
    """
    service = kubectl.get("service", name)
    if service is None:
        raise KubectlError(["kubectl", "get", "service", name], "there is no such Service")
    address, port = service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"]
    if _answers(address, port):
        yield f"http://{address}" if port == 80 else f"http://{address}:{port}"
        return
    with _port_forward(kubectl, name, port) as url:
        yield url


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


@contextmanager
def _port_forward(kubectl: Kubectl, name: str, port: int) -> Iterator[str]:
    argv = kubectl.argv("port-forward", f"service/{name}", f":{port}", "--address", "127.0.0.1")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found is None:
                process.terminate()
                assert process.stderr is not None
                raise KubectlError(argv, process.stderr.read() or line)
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
