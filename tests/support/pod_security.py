"""The restricted Pod Security Standard as a checker of pod specs, written from the standard's own table.

https://kubernetes.io/docs/concepts/security/pod-security-standards/ (version 1.34, Linux pods). It imports nothing
from what it checks, and refuses a field that is missing as well as one that is wrong, as admission does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Spec = Mapping[str, Any]

_VOLUME_TYPES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_PROFILES = {"RuntimeDefault", "Localhost"}
_SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
}


def restricted_violations(spec: Spec) -> list[str]:
    """Every point in which a pod spec falls short; empty if it passes."""
    return [*_pod(spec), *(found for container in _containers(spec) for found in _container(spec, container))]


def _containers(spec: Spec) -> Iterator[Spec]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field, ())


def _pod(spec: Spec) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield f"{field} is set"
    for volume in spec.get("volumes", ()):
        kinds = set(volume) - {"name"}
        if not kinds <= _VOLUME_TYPES:
            yield f"volume {volume['name']} is of type {', '.join(sorted(kinds - _VOLUME_TYPES))}"
    context = spec.get("securityContext", {})
    for sysctl in context.get("sysctls", ()):
        if sysctl["name"] not in _SYSCTLS:
            yield f"sysctl {sysctl['name']} is unsafe"
    yield from _shared_context("pod", context)


def _container(spec: Spec, container: Spec) -> Iterator[str]:
    name = container["name"]
    context, pod = container.get("securityContext", {}), spec.get("securityContext", {})
    yield from _shared_context(name, context)
    yield from _privileges(name, context)
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{name}: runAsNonRoot isn't true"
    if "seccompProfile" not in context and "seccompProfile" not in pod:
        yield f"{name}: no seccompProfile"
    for port in container.get("ports", ()):
        if port.get("hostPort"):
            yield f"{name}: hostPort {port['hostPort']}"
    for handler in _handlers(container):
        if handler.get("host"):
            yield f"{name}: a probe or lifecycle handler names a host"


def _privileges(name: str, context: Spec) -> Iterator[str]:
    if context.get("privileged"):
        yield f"{name}: privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{name}: allowPrivilegeEscalation isn't false"
    if context.get("procMount", "Default") != "Default":
        yield f"{name}: procMount is {context['procMount']}"
    capabilities = context.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()):
        yield f"{name}: capabilities.drop lacks ALL"
    if added := set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield f"{name}: capabilities.add has {', '.join(sorted(added))}"


def _shared_context(where: str, context: Spec) -> Iterator[str]:
    """What both a pod's and a container's security context may hold."""
    if context.get("runAsUser") == 0:
        yield f"{where}: runAsUser is 0"
    if context.get("runAsNonRoot") is False:
        yield f"{where}: runAsNonRoot is false"
    if "seccompProfile" in context and context["seccompProfile"].get("type") not in _PROFILES:
        yield f"{where}: seccompProfile is {context['seccompProfile'].get('type')}"
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield f"{where}: hostProcess"
    if context.get("appArmorProfile", {}).get("type", "RuntimeDefault") not in _PROFILES:
        yield f"{where}: appArmorProfile is {context['appArmorProfile']['type']}"
    selinux = context.get("seLinuxOptions", {})
    if selinux.get("type", "") not in _SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield f"{where}: seLinuxOptions sets a type, user or role"


def _handlers(container: Spec) -> Iterator[Spec]:
    probes = [container.get(field, {}) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
    hooks = container.get("lifecycle", {}).values()
    for handler in [*probes, *hooks]:
        for kind in ("httpGet", "tcpSocket"):
            yield handler.get(kind, {})
