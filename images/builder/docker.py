"""Building with a Docker engine: the same Dockerfiles, on their default base image."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError

from images.builder.catalog import REPO, ImageSpec
from images.builder.context import certificates, context
from images.builder.store import Store


def build(store: Store, progress: Callable[[str], None], spec: ImageSpec, fingerprint: str) -> Path:
    """Build the image and save it as an archive. Docker's own cache keeps the stage below our code."""
    archive = store.archive(spec.key, fingerprint)
    with context(spec, store.dir / "tmp") as directory:
        progress(f"{spec.key}: building with Docker")
        what = ["--file", str(REPO / spec.dockerfile), "--target", spec.target, "--tag", spec.name]
        done = subprocess.run(
            ["docker", "build", *what, *certificates(), str(directory)], stdout=sys.stderr, check=False
        )
    if done.returncode:
        raise ClusterError(f"docker build of {spec.key} failed; what it said is above")
    partial = archive.with_suffix(".partial")
    run("docker", "save", "--output", partial, spec.name)
    partial.replace(archive)
    return archive
