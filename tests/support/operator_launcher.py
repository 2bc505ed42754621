"""The operator's own entry point, with engines looked for at loopback.

The API server refuses loopback addresses in EndpointSlices, so fake pods carry addresses of 10.9.0.0/16, at which
nobody listens; their fake engines listen at the same address of 127.9.0.0/16.
"""

from __future__ import annotations

import sys
from typing import Any

from headwater_operator.adapters.probe_http import HttpEngineControl

POD_PREFIX, ENGINE_PREFIX = "10.9.", "127.9."


def engine_address(pod_ip: str) -> str:
    """Where the fake engine of a fake pod listens."""
    return pod_ip.replace(POD_PREFIX, ENGINE_PREFIX, 1) if pod_ip.startswith(POD_PREFIX) else pod_ip


def look_at_loopback() -> None:
    """Patches the operator in this process; a second call changes nothing."""
    call = HttpEngineControl._call
    if getattr(call, "redirected", False):
        return

    async def redirected(self: HttpEngineControl, method: str, ip: str, *rest: Any) -> str:
        return await call(self, method, engine_address(ip), *rest)

    redirected.redirected = True  # type: ignore[attr-defined]
    HttpEngineControl._call = redirected  # type: ignore[assignment,method-assign]


if __name__ == "__main__":
    from headwater_operator.main import main

    look_at_loopback()
    sys.exit(main())
