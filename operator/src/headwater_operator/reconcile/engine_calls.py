"""What a plan tells engines. One that cannot be reached stops nothing: it is told again with the next plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from headwater_operator import errors
from headwater_operator.core import actions as act
from headwater_operator.core.facts import leader
from headwater_operator.core.snapshot import GroupObservation
from headwater_operator.ports import EngineControl

log = structlog.get_logger(__name__)


class Engines(Protocol):
    """The engines as the prober knows them."""

    def token(self, namespace: str, group: str) -> str:
        """The admin token of a group."""

    def ask_now(self, pod_uid: str) -> None:
        """Asks for a fresh reading soon."""


async def tell_engine(
    action: act.StartDrain | act.CancelDrain,
    group: GroupObservation,
    namespace: str,
    control: EngineControl,
    engines: Engines,
) -> None:
    """Calls the leader: workers of a group outlive its drain."""
    pod = leader(group)
    if pod is None or pod.ip is None:
        return
    try:
        await _call(action, control)(pod.ip, engines.token(namespace, group.name))
    except errors.EngineUnreachable as error:
        log.warning("engine not reached", namespace=namespace, group=group.name, error=error.message)
    engines.ask_now(pod.uid)


def _call(action: act.StartDrain | act.CancelDrain, control: EngineControl) -> Callable[[str, str], Awaitable[None]]:
    if isinstance(action, act.CancelDrain):
        return control.undrain

    async def drain(ip: str, token: str) -> None:
        await control.drain(ip, token, timeout_seconds=action.timeout_seconds, settle_seconds=action.settle_seconds)

    return drain
