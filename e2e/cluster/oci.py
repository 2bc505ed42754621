"""Reading OCI image archives, and writing parts of them.

An archive may leave out blobs that an OCI layout beside it holds: its index then names that folder under REST.
So a change of a few files above a layer of gigabytes costs a few files, on disk and at each node.
"""

import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from e2e.cluster.errors import ClusterError

REST = "dev.headwater.rest"
IMAGE_NAME = "io.containerd.image.name"
REF_NAME = "org.opencontainers.image.ref.name"
LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'


@dataclass(frozen=True)
class Image:
    """The image in an archive: its name, the descriptor of its manifest, and the digests of all its blobs.

    `rest` is the OCI layout that holds the blobs which the archive leaves out.
    """

    name: str
    descriptor: dict[str, Any]
    blobs: tuple[str, ...]
    archive: Path
    rest: Path | None

    @property
    def digest(self) -> str:
        """Digest of the manifest, the image's identity."""
        return str(self.descriptor["digest"])

    def write(self, out: IO[bytes], blobs: Iterable[str]) -> None:
        """Stream an archive of this image that holds only `blobs`."""
        with tarfile.open(fileobj=out, mode="w|") as tar:
            add_bytes(tar, "oci-layout", LAYOUT)
            add_bytes(tar, "index.json", index(self.name, self.descriptor))
            left = set(blobs)
            left -= _copy(self.archive, tar, left)
            for digest in left:
                self._add_from_rest(tar, digest)

    def _add_from_rest(self, tar: tarfile.TarFile, digest: str) -> None:
        path = blob_path(digest)
        if self.rest is None or not (self.rest / path).exists():
            raise ClusterError(f"{self.archive} lacks some of its layers; build the image again")
        tar.add(self.rest / path, path, recursive=False)


def index(name: str, descriptor: dict[str, Any], rest: str = "") -> bytes:
    """index.json naming one image, and the folder beside the archive that holds what it leaves out."""
    annotations = {IMAGE_NAME: name, REF_NAME: name, **({REST: rest} if rest else {})}
    named = {**descriptor, "annotations": annotations}
    return json.dumps({"schemaVersion": 2, "manifests": [named]}).encode()


def read_image(archive: Path) -> Image | None:
    """The one image in an OCI archive; None for other kinds of archive, which can be imported only whole."""
    if not tarfile.is_tarfile(archive):
        raise ClusterError(f"{archive} is no image archive")
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        if "index.json" not in names:
            return None
        manifests = json.loads(_read(tar, "index.json"))["manifests"]
        if len(manifests) != 1:
            return None
        descriptor = manifests[0]
        annotations = descriptor.pop("annotations", {})
        manifest_path = blob_path(descriptor["digest"])
        if IMAGE_NAME not in annotations or manifest_path not in names:
            return None
        manifest = json.loads(_read(tar, manifest_path))
    rest = archive.parent / annotations[REST] if REST in annotations else None
    return Image(annotations[IMAGE_NAME], descriptor, (descriptor["digest"], *parts(manifest)), archive, rest)


def parts(manifest: dict[str, Any]) -> list[str]:
    """Digests of the configuration and the layers."""
    if "layers" not in manifest:
        raise ClusterError("the archive holds an index of several platforms; save one platform's image")
    return [manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]


def blob_path(digest: str) -> str:
    """Where an OCI layout keeps a blob."""
    return f"blobs/{digest.replace(':', '/')}"


def add_bytes(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    """Add a small file."""
    info = tarfile.TarInfo(path)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _read(tar: tarfile.TarFile, path: str) -> bytes:
    member = tar.extractfile(path)
    if member is None:
        raise ClusterError(f"{path} in the image archive is no file")
    return member.read()


def _copy(archive: Path, out: tarfile.TarFile, wanted: set[str]) -> set[str]:
    copied = set()
    paths = {blob_path(digest): digest for digest in wanted}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name in paths:
                out.addfile(member, tar.extractfile(member))
                copied.add(paths[member.name])
    return copied
