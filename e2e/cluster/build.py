"""Building the cluster's programs from their Go modules, cached by what they are built from."""

import fcntl
import hashlib
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.archive import write_archive
from e2e.cluster.errors import ClusterError
from e2e.cluster.requirements import BUILD, require_programs
from e2e.cluster.state import cache_dir

SOURCES = Path(__file__).resolve().parent / "go"
KUBERNETES_VERSION = "1.34.4"
HELM_VERSION = "3.22.0"
PAUSE_IMAGE = "localhost/headwater-pause:1"

Progress = Callable[[str], None]


def _kubernetes_stamp() -> str:
    # Without it the components call themselves v0.0.0-master.
    major, minor, _ = KUBERNETES_VERSION.split(".")
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    values = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X {p}.{k}={v}" for p in packages for k, v in values.items())


@dataclass(frozen=True)
class Program:
    """One Go module under go/, and the binary that it becomes."""

    name: str
    takes: str
    package: str = "."
    stamp: str = ""

    @property
    def path(self) -> Path:
        """Where the built binary lies."""
        return bin_dir() / self.name

    def fingerprint(self) -> str:
        """Changes when the binary would."""
        digest = hashlib.sha256(f"{self.package} {self.stamp} {platform.machine()}".encode())
        for file in sorted((SOURCES / self.name).iterdir()):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def built(self) -> bool:
        """Whether the cached binary is the one these sources give."""
        stamp = self.path.with_suffix(".built-from")
        return self.path.exists() and stamp.exists() and stamp.read_text() == self.fingerprint()


KUBELITE = Program("kubelite", "about 6 min the first time", stamp=_kubernetes_stamp())
PAUSE = Program("pause", "a few seconds")
COREDNS = Program("coredns", "about 2 min the first time")
HELM = Program(
    "helm",
    "about 2 min the first time",
    "helm.sh/helm/v3/cmd/helm",
    f"-X helm.sh/helm/v3/internal/version.version=v{HELM_VERSION}",
)
ALL = (KUBELITE, PAUSE, COREDNS, HELM)
LONE = (KUBELITE,)
"""What a control plane without nodes needs."""


def bin_dir() -> Path:
    """Where built programs lie; holds kubectl and helm too, fit for PATH."""
    return cache_dir() / "bin"


def pause_archive() -> Path:
    """The pause image."""
    return bin_dir() / "pause.tar"


def build(programs: tuple[Program, ...] = ALL, progress: Progress = print) -> None:
    """Build what is missing or out of date; nothing to do costs milliseconds."""
    if all(p.built() for p in programs):
        return
    require_programs(BUILD)
    bin_dir().mkdir(parents=True, exist_ok=True)
    with _lock(bin_dir()):
        for program in programs:
            if not program.built():
                progress(f"building {program.name} ({program.takes}) ...")
                _compile(program)


def _compile(program: Program) -> None:
    partial = program.path.with_suffix(".partial")
    flags = ["-trimpath", f"-ldflags=-s -w {program.stamp}", "-o", str(partial)]
    done = subprocess.run(
        ["go", "build", *flags, program.package],
        cwd=SOURCES / program.name,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"go build of {program.name} failed:\n" + "\n".join(done.stdout.splitlines()[-20:]))
    partial.replace(program.path)
    _finish(program)
    program.path.with_suffix(".built-from").write_text(program.fingerprint())


def _finish(program: Program) -> None:
    if program is KUBELITE:
        link = bin_dir() / "kubectl"
        link.unlink(missing_ok=True)
        link.symlink_to(program.name)
    elif program is PAUSE:
        write_archive(pause_archive(), PAUSE_IMAGE, program.path, user="65535")


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
