"""How the demo fails: what went wrong, what to do, and the output that shows it."""

from __future__ import annotations

import subprocess

from e2e.cluster.errors import ClusterError
from e2e.kit.install import InstallError
from e2e.kit.kubectl import Kubectl, KubectlError
from e2e.kit.pools import SYSTEM_NAMESPACE

LOG_TAIL = "--tail=25"
KEPT_LINES = 30


class DemoError(Exception):
    """One failed step, for a person."""

    def __init__(self, what: str, remedy: str, details: str = "") -> None:
        super().__init__(what)
        self.what, self.remedy, self.details = what, remedy, details


def explain(error: Exception) -> DemoError | None:
    """The failure behind an error that the steps are known to raise; None for a defect of the demo."""
    match error:
        case DemoError():
            return error
        case ClusterError():
            return DemoError(str(error), "Repair that and run the demo again; what is built stays built.")
        case InstallError():
            return DemoError(str(error), "The end of its output is above. Run the demo again to go on.", error.details)
        case KubectlError() | subprocess.TimeoutExpired():
            return DemoError(str(error), "Is the cluster up? `python3 -m e2e.cluster status` lists its processes.")
    return None


def operator_details(kubectl: Kubectl) -> str:
    """The operator's pods and the end of its log."""
    system = kubectl.in_namespace(SYSTEM_NAMESPACE)
    return _sections(
        system,
        ("get", "pods,events"),
        ("describe", "pods", "-l", "app.kubernetes.io/component=operator"),
        ("logs", "-l", "app.kubernetes.io/component=operator", LOG_TAIL),
    )


def pool_details(kubectl: Kubectl, pool: str) -> str:
    """The pool, its pods, their logs, the events, and the end of the operator's log."""
    selector = ("-l", f"headwater.dev/pool={pool}")
    own = _sections(
        kubectl,
        ("get", "ipool,rgroup,pods", "-o", "wide"),
        ("get", "ipool", pool, "-o", "jsonpath={range .status.conditions[*]}{.type}={.status} {.message}{'\\n'}{end}"),
        ("get", "events", "--sort-by=.lastTimestamp"),
        ("logs", *selector, LOG_TAIL, "--prefix"),
    )
    operator = ("logs", "-l", "app.kubernetes.io/component=operator", LOG_TAIL)
    return own + "\n" + _sections(kubectl.in_namespace(SYSTEM_NAMESPACE), operator)


def _sections(kubectl: Kubectl, *commands: tuple[str, ...]) -> str:
    """The end of each command's output under its own line; one that fails says why."""
    parts = []
    for command in commands:
        done = kubectl.attempt(*command)
        scope = f"-n {kubectl.namespace} " if kubectl.namespace else ""
        lines = (done.stdout or done.stderr).splitlines()[-KEPT_LINES:]
        parts.append("\n".join([f"$ kubectl {scope}{' '.join(command)}", *lines]))
    return "\n".join(parts)
