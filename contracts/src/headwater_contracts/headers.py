"""HTTP header names, lower case as ASGI has them."""

REQUEST_ID = "x-request-id"
REASON = "x-headwater-reason"
"""Machine-readable reason beside a 4xx or 5xx: ``draining``, ``loading``, ``too_many_waiting``, ``unhealthy``."""
GROUP = "x-headwater-group"
"""Response: name of the replica group that served the request."""
RETRY_AFTER = "retry-after"
