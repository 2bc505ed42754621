"""What an installation allows and defaults to, as far as decisions need it. Frozen and passed in."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """Operator settings that a decision may read."""

    default_image_sim: str = ""
    default_image_vllm_cpu: str = ""
    default_image_vllm_cuda: str = ""
    allowed_images: tuple[str, ...] = ()
    """Glob patterns, matched case-sensitively against the whole image reference."""
    allowed_engine_args: frozenset[str] = frozenset()
    allow_sim: bool = False
    revision_history_limit: int = 5
    route_settle_seconds: float = 2.0
    """How long an endpoint must have been published before the pool counts it as reached by every kube-proxy."""
    fault_grace_seconds: float = 30.0
    """How long a pod may wait with a start-up fault (image pull) before the pool asks a person to act."""

    def default_images(self) -> frozenset[str]:
        """Images that the operator itself chooses; they need no entry in the allow list."""
        images = (self.default_image_sim, self.default_image_vllm_cpu, self.default_image_vllm_cuda)
        return frozenset(image for image in images if image)

    def image_allowed(self, image: str) -> bool:
        """True if a pod may run this image."""
        return image in self.default_images() or any(fnmatchcase(image, glob) for glob in self.allowed_images)
