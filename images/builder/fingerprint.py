"""What an image is made from, as a hash: the same hash means that nothing needs to be built."""

import hashlib
import tomllib
from pathlib import Path

from e2e.cluster.commands import run

from images.builder.base import base_fingerprint
from images.builder.catalog import REPO, ImageSpec

LENGTH = 12
CODE_STAGE = "AS code\n"


def dependencies_hash(spec: ImageSpec) -> str:
    """Covers the base, the stages before `code`, their scripts and the extras' locked packages; no more of the lock."""
    digest = hashlib.sha256(base_fingerprint().encode())
    digest.update((REPO / spec.dockerfile).read_text().partition(CODE_STAGE)[0].encode())
    for path in spec.scripts:
        digest.update((REPO / path).read_bytes())
    digest.update(locked_packages(spec.extras).encode())
    return digest.hexdigest()[:LENGTH]


def image_hash(spec: ImageSpec, dependencies: str) -> str:
    """Covers the dependencies, our own code and its version."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    digest = hashlib.sha256(f"{dependencies} {project['version']}".encode())
    for path in (Path(spec.dockerfile), *spec.context_files()):
        if path.name not in ("pyproject.toml", "uv.lock"):
            digest.update(f"{path}\0".encode() + (REPO / path).read_bytes())
    return digest.hexdigest()[:LENGTH]


def locked_packages(extras: tuple[str, ...]) -> str:
    """The lock file's packages for these extras, one a line with its hashes."""
    flags = [part for extra in extras for part in ("--extra", extra)]
    fixed = ["--frozen", "--no-dev", "--no-emit-project", "--no-header", "--quiet", "--format", "requirements.txt"]
    return run("uv", "export", "--project", REPO, *fixed, *flags)
