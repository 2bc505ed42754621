"""Command line of the image builder."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from e2e.cluster.commands import docker_answers
from e2e.cluster.errors import ClusterError
from e2e.cluster.oci import read_image

from images.builder import docker
from images.builder.buildah import Buildah
from images.builder.catalog import CATALOG, ImageSpec
from images.builder.fingerprint import dependencies_hash, image_hash
from images.builder.store import Store, default_store

BUILDER = "HEADWATER_IMAGE_BUILDER"


def main(arguments: list[str] | None = None) -> int:
    """Build the images that are named; prints their archives' paths to standard output, progress to the other."""
    parser = argparse.ArgumentParser(prog="images/build.py", description=__doc__)
    parser.add_argument("images", nargs="+", choices=sorted(CATALOG), metavar="IMAGE", help=", ".join(sorted(CATALOG)))
    parser.add_argument("--out", type=Path, metavar="DIR", help="copy whole archives there as NAME.tar")
    args = parser.parse_args(arguments)
    try:
        for key in args.images:
            archive = build(CATALOG[key], _report)
            print(_export(archive, args.out / f"{key}.tar") if args.out else archive, flush=True)
    except ClusterError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


def build(spec: ImageSpec, progress: Callable[[str], None], store: Store | None = None) -> Path:
    """The archive of one image, built unless it is there."""
    store = store or default_store()
    dependencies = dependencies_hash(spec)
    fingerprint = image_hash(spec, dependencies)
    archive = store.archive(spec.key, fingerprint)
    with store.lock():
        if store.complete(archive):
            os.utime(archive)  # the newest are kept
            return archive
        if _use_docker():
            docker.build(store, progress, spec, fingerprint)
        elif spec.needs_registry:
            raise ClusterError(f"{spec.key} is built on an image of a registry and needs Docker")
        else:
            Buildah(store, progress).build(spec, dependencies, fingerprint)
        store.prune(spec.key)
    return archive


def _use_docker() -> bool:
    forced = os.environ.get(BUILDER)
    return forced == "docker" if forced else docker_answers()


def _export(archive: Path, out: Path) -> Path:
    """A whole archive, fit for any tool."""
    out.parent.mkdir(parents=True, exist_ok=True)
    image = read_image(archive)
    if image is None:
        shutil.copyfile(archive, out)
    else:
        with out.open("wb") as file:
            image.write(file, image.blobs)
    return out


def _report(text: str) -> None:
    print(f"images: {text}", file=sys.stderr, flush=True)
