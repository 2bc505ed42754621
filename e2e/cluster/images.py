"""Bringing images into the nodes' container runtimes, without a registry.

A node is sent only what it lacks: nothing if it has the image by digest, else the blobs that are missing.
"""

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from e2e.cluster.commands import find, run
from e2e.cluster.errors import ClusterError
from e2e.cluster.oci import Image, blob_path, read_image
from e2e.cluster.processes import running
from e2e.cluster.state import Settings, State

# Unpacking is mostly one core's work a node.
AT_ONCE = 2
# Relative to the node's folder: a socket's path may have 108 characters, and a state directory's may be long.
CONTENT = "var/lib/containerd/io.containerd.content.v1.content"
CTR = ("ctr", "--address", "run/containerd/containerd.sock", "--namespace", "k8s.io")


def load(state: State, settings: Settings, archives: Sequence[Path], progress: Callable[[str], None] = print) -> None:
    """Import archives (OCI or docker) on every node that is on; raise ClusterError naming what failed."""
    missing = [str(a) for a in archives if not a.is_file()]
    if missing:
        raise ClusterError(f"no such image archive: {', '.join(missing)}")
    names = [name for name in settings.nodes if name in running(state)]
    for archive in archives:
        image = read_image(archive)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = pool.map(partial(_load, state, archive, image), names)
            for name, outcome in zip(names, outcomes, strict=True):
                progress(f"{name}: {outcome}")


def _load(state: State, archive: Path, image: Image | None, node: str) -> str:
    home = state.node(node)
    if image is None:
        run(*CTR, "images", "import", archive.resolve(), cwd=home)
        return f"imported {archive.name}"
    if _has(home, image):
        return f"has {image.name} already"
    present = set(run(*CTR, "content", "ls", "--quiet", cwd=home).split())
    needed = [digest for digest in image.blobs if digest not in present]
    lent = _lend(home, image, needed)
    try:
        _stream(home, image, [digest for digest in needed if digest not in lent])
    except ClusterError:
        # Until an image holds them, containerd may collect lent blobs as garbage.
        _stream(home, image, needed)
    return f"imported {image.name} ({len(needed)} of {len(image.blobs)} blobs)"


def _has(home: Path, image: Image) -> bool:
    lines = run(*CTR, "images", "ls", f"name=={image.name}", cwd=home).splitlines()
    return any(line.split()[0] == image.name and image.digest in line.split() for line in lines if line.strip())


def _lend(home: Path, image: Image, blobs: list[str]) -> set[str]:
    """Link blobs from beside the archive into the node's store, and make them known there; returns which.

    A layer may have gigabytes: this way containerd neither reads nor writes it once more. It takes a blob whose digest
    and size it finds in its store as written. Where the store is on another filesystem, nothing is lent.
    """
    lent = set()
    for digest in blobs if image.rest else ():
        source, target = Path(image.rest or "", blob_path(digest)), home / CONTENT / blob_path(digest)
        try:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.hardlink_to(source)
        except OSError:
            continue
        expected = ("--expected-digest", digest, "--expected-size", source.stat().st_size)
        with source.open("rb") as blob:
            run(*CTR, "content", "ingest", *expected, f"headwater-{digest}", cwd=home, stdin=blob)
        lent.add(digest)
    return lent


def _stream(home: Path, image: Image, blobs: list[str]) -> None:
    importer = subprocess.Popen(
        [find(CTR[0]) or CTR[0], *CTR[1:], "images", "import", "-"],
        cwd=home,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with importer:
        assert importer.stdin
        assert importer.stderr
        with suppress(BrokenPipeError):  # its own words below say why it ended
            image.write(importer.stdin, blobs)
            importer.stdin.close()
        errors = importer.stderr.read().decode()
    if importer.returncode:
        raise ClusterError(f"could not import {image.name}: {errors.strip()}")
