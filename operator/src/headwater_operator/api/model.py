"""``spec.model``: what is served, and where its weights come from."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import StringConstraints

from headwater_operator.api.base import ApiModel, Cel, Rules
from headwater_operator.api.scalars import ObjectName, OptionalObjectName

_NO_DOTS = "!self.split('/').exists(part, part == '..')"
_PATH_CHARS = "[A-Za-z0-9._@+-]"

Revision = Annotated[
    str,
    StringConstraints(max_length=64),
    Rules(
        Cel(
            "self.matches('^[0-9a-f]{40}$')",
            "must be a commit hash of 40 lower-case hex digits: a branch or tag may move under a running pool",
        )
    ),
]
RelativePath = Annotated[
    str,
    StringConstraints(max_length=512),
    Rules(
        Cel(
            f"self == '' || (self.matches('^{_PATH_CHARS}+(/{_PATH_CHARS}+)*/?$') && {_NO_DOTS})",
            "must be a path inside the volume, such as llama-70b: not absolute and without '..'",
        )
    ),
]
AbsolutePath = Annotated[
    str,
    StringConstraints(max_length=512),
    Rules(
        Cel(
            f"self.matches('^(/{_PATH_CHARS}+)+/?$') && {_NO_DOTS}",
            "must be an absolute path inside the engine image, such as /models/smollm2, without '..'",
        )
    ),
]
ServedName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:@/-]*[A-Za-z0-9])?$", min_length=1, max_length=253),
    Rules(
        Cel(
            "self == oldSelf",
            "cannot be changed, for clients ask for the model by this name: create another pool instead",
        )
    ),
]


class SecretKey(ApiModel):
    """One key of a Secret in the pool's namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: Annotated[str, StringConstraints(pattern=r"^[-._A-Za-z0-9]+$", min_length=1, max_length=253)] = "token"
    """Key within the Secret."""


class HuggingFaceSource(ApiModel):
    """Weights downloaded from the Hugging Face hub."""

    repo: Annotated[
        str,
        StringConstraints(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$",
            min_length=1,
            max_length=193,
        ),
    ]
    """Repository, such as meta-llama/Llama-3.3-70B-Instruct."""
    revision: Revision
    """Commit of the repository: 40 hex digits."""
    token_secret: SecretKey | None = None
    """Secret that holds the access token of a gated repository."""


class PersistentVolumeClaimSource(ApiModel):
    """Weights on a volume of the pool's namespace, mounted read-only."""

    claim_name: ObjectName
    """Name of the PersistentVolumeClaim."""
    path: RelativePath = ""
    """Directory of the weights within the volume; empty for its root."""


class ModelSource(ApiModel):
    """Where the weights come from: exactly one of the fields."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "[has(self.huggingFace), has(self.persistentVolumeClaim), has(self.imagePath)]"
            ".filter(given, given).size() == 1",
            "set exactly one of huggingFace, persistentVolumeClaim and imagePath",
        ),
    )

    hugging_face: HuggingFaceSource | None = None
    """A repository of the Hugging Face hub, pinned to a commit."""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    """A directory on a volume of the pool's namespace."""
    image_path: AbsolutePath | None = None
    """A directory inside the engine image, such as /models/smollm2."""


class ModelCache(ApiModel):
    """Where downloaded weights are kept."""

    persistent_volume_claim: OptionalObjectName = ""
    """PersistentVolumeClaim that keeps a download, so that a replacement does not fetch it again. Empty: each pod
    downloads anew."""


class Model(ApiModel):
    """The model that the pool serves."""

    rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "self.cache.persistentVolumeClaim == '' || has(self.source.huggingFace)",
            "a cache is only for a download: remove cache.persistentVolumeClaim, or set source.huggingFace",
            at=".cache.persistentVolumeClaim",
        ),
    )

    name: ServedName
    """Name that clients send in the field model of their requests. Cannot be changed."""
    source: ModelSource
    """Where the weights come from: exactly one of huggingFace, persistentVolumeClaim and imagePath."""
    cache: ModelCache = ModelCache()
    """Where downloaded weights are kept."""
