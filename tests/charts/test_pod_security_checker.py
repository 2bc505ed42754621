"""The checker that the other tests rely on finds each way to break the restricted standard."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from support.pod_security import restricted_violations

Spec = dict[str, Any]

GOOD: Spec = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {}}],
}


def context(spec: Spec) -> Spec:
    found: Spec = spec["containers"][0]["securityContext"]
    return found


BREAKS: dict[str, Callable[[Spec], Any]] = {
    "hostNetwork": lambda s: s.update(hostNetwork=True),
    "hostPID": lambda s: s.update(hostPID=True),
    "hostIPC": lambda s: s.update(hostIPC=True),
    "hostPath": lambda s: s["volumes"].append({"name": "h", "hostPath": {"path": "/"}}),
    "nfs": lambda s: s["volumes"].append({"name": "n", "nfs": {"server": "x"}}),
    "hostPort": lambda s: s["containers"][0]["ports"][0].update(hostPort=80),
    "privileged": lambda s: context(s).update(privileged=True),
    "escalation": lambda s: context(s).pop("allowPrivilegeEscalation"),
    "capability kept": lambda s: context(s).update(capabilities={"drop": ["NET_RAW"]}),
    "capability added": lambda s: context(s)["capabilities"].update(add=["SYS_ADMIN"]),
    "root allowed": lambda s: s["securityContext"].pop("runAsNonRoot"),
    "root allowed below": lambda s: context(s).update(runAsNonRoot=False),
    "root user": lambda s: context(s).update(runAsUser=0),
    "root user of the pod": lambda s: s["securityContext"].update(runAsUser=0),
    "no seccomp": lambda s: s["securityContext"].pop("seccompProfile"),
    "seccomp off": lambda s: context(s).update(seccompProfile={"type": "Unconfined"}),
    "procMount": lambda s: context(s).update(procMount="Unmasked"),
    "apparmor off": lambda s: context(s).update(appArmorProfile={"type": "Unconfined"}),
    "selinux user": lambda s: s["securityContext"].update(seLinuxOptions={"user": "u"}),
    "sysctl": lambda s: s["securityContext"].update(sysctls=[{"name": "kernel.msgmax", "value": "1"}]),
    "hostProcess": lambda s: context(s).update(windowsOptions={"hostProcess": True}),
    "probe elsewhere": lambda s: s["containers"][0]["livenessProbe"]["httpGet"].update(host="10.0.0.1"),
    "hook elsewhere": lambda s: s["containers"][0].update(lifecycle={"preStop": {"tcpSocket": {"host": "x"}}}),
    "init container": lambda s: s.update(initContainers=[{"name": "i"}]),
}


def test_a_good_spec_passes() -> None:
    assert restricted_violations(GOOD) == []


@pytest.mark.parametrize("what", sorted(BREAKS))
def test_each_break_is_found(what: str) -> None:
    spec = copy.deepcopy(GOOD)
    BREAKS[what](spec)
    assert restricted_violations(spec) != []


def test_an_empty_spec_passes_for_nothing() -> None:
    assert restricted_violations({"containers": [{"name": "c"}]}) != []
