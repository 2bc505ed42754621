"""The build context: only the files that an image is made from, so that nothing else can get into it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from images.builder.catalog import REPO, ImageSpec


@contextmanager
def context(spec: ImageSpec, scratch: Path) -> Iterator[Path]:
    """A directory with the image's files at their places in the repository."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="context-") as name:
        for path in spec.context_files():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPO / path, target)
        yield Path(name)


def certificates() -> list[str]:
    """Build flags that hand the caller's certificates to package installers, without a trace in the image."""
    for variable in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        file = os.environ.get(variable)
        if file and Path(file).is_file():
            return ["--secret", f"id=certificates,src={file}"]
    return []
