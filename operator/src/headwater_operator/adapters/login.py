"""Where the API server is and how to log in: the pod's service account, or else a kubeconfig."""

from __future__ import annotations

import asyncio
import os

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from headwater_operator import errors

_CONNECTIONS = 400
"""Watches hold one each; the rest is for writes."""


def load_configuration() -> Configuration:
    """Reads files: call it before the event loop runs. Raises Failed with what was tried."""
    configuration = Configuration()
    try:
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
            config.load_incluster_config(client_configuration=configuration)
        else:
            asyncio.run(config.load_kube_config(client_configuration=configuration))
    except config.ConfigException as error:
        raise errors.Failed(f"no way to reach a Kubernetes API: {error}") from error
    configuration.connection_pool_maxsize = _CONNECTIONS
    return configuration
