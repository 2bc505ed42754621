"""What an image is made from, as a hash: the same hash means that nothing needs to be built."""

import hashlib

from e2e.cluster.commands import run

from images.builder.base import base_fingerprint
from images.builder.catalog import REPO, ImageSpec

LENGTH = 12


def dependencies_hash(spec: ImageSpec) -> str:
    """Covers the base, the build files and the locked packages of the image's extras; not the rest of the lock."""
    digest = hashlib.sha256(base_fingerprint().encode())
    for path in (spec.dockerfile, *spec.scripts):
        digest.update((REPO / path).read_bytes())
    digest.update(locked_packages(spec.extras).encode())
    return digest.hexdigest()[:LENGTH]


def image_hash(spec: ImageSpec, dependencies: str) -> str:
    """Covers the dependencies and our own code."""
    digest = hashlib.sha256(dependencies.encode())
    for path in spec.context_files():
        if path.parts[0] != "images" and path.name not in ("pyproject.toml", "uv.lock"):
            digest.update(f"{path}\0".encode() + (REPO / path).read_bytes())
    return digest.hexdigest()[:LENGTH]


def locked_packages(extras: tuple[str, ...]) -> str:
    """The lock file's packages for these extras, one a line with its hashes."""
    flags = [part for extra in extras for part in ("--extra", extra)]
    fixed = ["--frozen", "--no-dev", "--no-emit-project", "--no-header", "--quiet", "--format", "requirements.txt"]
    return run("uv", "export", "--project", REPO, *fixed, *flags)
