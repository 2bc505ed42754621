"""Start-up faults of groups and pods that no retry mends, and what a person can do about each."""

from __future__ import annotations

from datetime import datetime

from headwater_contracts.reasons import Reason
from headwater_operator.core.names import pod_name
from headwater_operator.core.snapshot import NEW_GROUP, GroupObservation, PodObservation, PoolSnapshot
from headwater_operator.core.times import seconds_between

_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"})
_CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_AT_ONCE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Faults that do not go away by themselves, so nothing is gained by waiting."""

Fault = tuple[Reason, str]


def group_fault(group: GroupObservation, snapshot: PoolSnapshot) -> Fault | None:
    """What keeps a pod of the group from starting, with the remedy; None if nothing does."""
    image = (group.template.get("engine") or {}).get("image", "")
    for pod in group.pods:
        if fault := _pod_fault(pod, image):
            return fault
    refused = snapshot.refused.get(pod_name(group.name, 0))
    if refused is None or group.pods:
        return None
    return (
        Reason.POD_REFUSED,
        f"the API server refuses the pod of {group.name}: {refused.message}: mend the quota or policy that it names",
    )


def lasting_fault(group: GroupObservation, snapshot: PoolSnapshot, now: datetime, grace_seconds: float) -> Fault | None:
    """A fault that has stood for longer than ``grace_seconds``, or that cannot mend itself."""
    fault = group_fault(group, snapshot)
    if fault is None:
        return None
    if any(pod.waiting_reason in _AT_ONCE for pod in group.pods):
        return fault
    since = min([pod.created_at for pod in group.pods], default=group.created_at)
    return fault if seconds_between(since, now) >= grace_seconds else None


def refused_group(snapshot: PoolSnapshot, lasting_seconds: float = 0.0) -> Fault | None:
    """What keeps groups from being made, if it has stood for so long."""
    refused = snapshot.refused.get(NEW_GROUP)
    if refused is None or refused.for_seconds < lasting_seconds:
        return None
    return (
        Reason.GROUP_REFUSED,
        f"the API server refuses a new group: {refused.message}: mend the quota or policy that it names",
    )


def _pod_fault(pod: PodObservation, image: str) -> Fault | None:
    if pod.waiting_reason in _PULL:
        what = f"pod {pod.name} cannot get its image {image!r}{_because(pod)}"
        remedy = "set spec.engine.image to an image that the nodes can pull, or make this one available to them"
        return Reason.IMAGE_PULL_FAILED, f"{what}: {remedy}"
    if pod.waiting_reason in _CONFIG:
        what = f"pod {pod.name} cannot start its container{_because(pod)}"
        return Reason.CONTAINER_CONFIG_INVALID, f"{what}: create the object that it names, or change the spec"
    return None


def _because(pod: PodObservation) -> str:
    """The kubelet's words, the same while it alternates between ErrImagePull and ImagePullBackOff: a message that
    flips would be a status write at each flip."""
    words = (pod.waiting_message or "").rpartition("ErrImagePull: ")[2].strip()
    return f" ({words})" if words else ""
