"""Ports and paths that processes find each other by."""

ENGINE_HTTP_PORT = 8000
ENGINE_ADMIN_PORT = 8001
OPERATOR_METRICS_PORT = 8080
OPERATOR_PROBE_PORT = 8081
SERVICE_PORT = 80
"""Port of a pool's Service; it leads to ENGINE_HTTP_PORT of the active groups."""

HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
ADMIN_STATE_PATH = "/admin/state"
ADMIN_DRAIN_PATH = "/admin/drain"
ADMIN_UNDRAIN_PATH = "/admin/undrain"
ADMIN_FAULTS_PATH = "/admin/faults"
