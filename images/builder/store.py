"""Where images are kept: one OCI layout with every blob once, and a small archive for each image.

An archive holds what is the image's own (manifest, configuration, the layer of our code) and names the layout for the
rest. So after a change of code nothing of the gigabytes below it is written again.
"""

import fcntl
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster import oci
from e2e.cluster.errors import ClusterError
from e2e.cluster.state import cache_dir

LAYOUT = "layout"
KEPT_ARCHIVES = 2


@dataclass(frozen=True)
class Store:
    """The cache folder of images."""

    dir: Path

    @property
    def layout(self) -> Path:
        """The OCI layout."""
        return self.dir / LAYOUT

    def archive(self, key: str, fingerprint: str) -> Path:
        """Path of an image's archive."""
        return self.dir / f"{key}-{fingerprint}.tar"

    def blob(self, digest: str) -> Path:
        """Path of a blob in the layout."""
        return self.layout / oci.blob_path(digest)

    def complete(self, archive: Path) -> bool:
        """Whether the archive and every blob that it leaves to the layout are there."""
        if not archive.exists():
            return False
        image = oci.read_image(archive)
        if image is None:
            return True
        with tarfile.open(archive) as tar:
            own = set(tar.getnames())
        return all(oci.blob_path(d) in own or self.blob(d).exists() for d in image.blobs)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other builds out."""
        self.dir.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def adopt(self, pushed: Path) -> list[str]:
        """Take over the blobs of a `dir:` push without copying them; returns the layers' digests.

        A push into the layout itself would compress them, and again at each push of an image above them.
        """
        manifest = json.loads((pushed / "manifest.json").read_text())
        blobs = self.layout / "blobs" / "sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        for digest in oci.parts(manifest):
            (pushed / digest.removeprefix("sha256:")).replace(blobs / digest.removeprefix("sha256:"))
        return [str(layer["digest"]) for layer in manifest["layers"]]

    def manifest_of(self, reference: str) -> dict[str, Any]:
        """Descriptor of the manifest that the layout's index keeps under a reference."""
        for descriptor in json.loads((self.layout / "index.json").read_text())["manifests"]:
            if descriptor.get("annotations", {}).get(oci.REF_NAME) == reference:
                return {k: v for k, v in descriptor.items() if k != "annotations"}
        raise ClusterError(f"{self.layout} holds no image {reference}")

    def write_archive(self, archive: Path, name: str, descriptor: dict[str, Any], shared: set[str]) -> None:
        """Write the archive of the image `descriptor`, leaving blobs in `shared` to the layout."""
        manifest = json.loads(self.blob(descriptor["digest"]).read_text())
        partial = archive.with_suffix(".partial")
        with tarfile.open(partial, "w") as tar:
            oci.add_bytes(tar, "oci-layout", oci.LAYOUT)
            oci.add_bytes(tar, "index.json", oci.index(name, descriptor, rest=LAYOUT))
            for digest in (descriptor["digest"], *oci.parts(manifest)):
                if digest not in shared:
                    oci.add_bytes(tar, oci.blob_path(digest), self.blob(digest).read_bytes())
        partial.replace(archive)

    def prune(self, key: str) -> None:
        """Forget all but the newest archives of an image, and blobs that no archive left needs."""
        archives = sorted(self.dir.glob(f"{key}-*.tar"), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in archives[KEPT_ARCHIVES:]:
            old.unlink()
        images = [oci.read_image(path) for path in self.dir.glob("*.tar")]
        needed = {oci.blob_path(digest) for image in images if image for digest in image.blobs}
        for blob in self.layout.glob("blobs/*/*"):
            if str(blob.relative_to(self.layout)) not in needed:
                blob.unlink()


def default_store() -> Store:
    """The store under $HEADWATER_CACHE."""
    return Store(cache_dir() / "images")
