"""Building with buildah: no daemon, no registry, a store of its own."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run, search_path
from e2e.cluster.errors import ClusterError
from e2e.cluster.requirements import require_programs

from images.builder.base import base_fingerprint, write_base_context
from images.builder.catalog import REPO, ImageSpec
from images.builder.context import certificates, context
from images.builder.store import Store

PROGRAMS = {"buildah": "buildah", "uv": "uv"}
LINES_OF_A_FAILURE = 25
# Without skip_mount_home the store stays mounted upon itself after each build.
STORAGE = """[storage]
driver = "overlay"
graphroot = "{0}/storage"
runroot = "{0}/run"
[storage.options.overlay]
skip_mount_home = "true"
"""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Buildah:
    """buildah with all its state under the image store."""

    store: Store
    progress: Progress

    def build(self, spec: ImageSpec, dependencies: str, fingerprint: str) -> Path:
        """Build the image's archive; the stage below our code only if it is not there yet."""
        self._prepare()
        below = f"localhost/headwater-{spec.key}-dependencies:{dependencies}"
        layers = self._dependencies(spec, below)
        tag = f"localhost/headwater-{spec.key}-build:{fingerprint}"
        with context(spec, self._scratch) as directory:
            self.progress(f"{spec.key}: adding our code")
            argument = f"{spec.dependencies_argument}={below}"
            self._bud(spec, spec.target, tag, directory, "--build-arg", argument)
        self._run("push", *self._policy, "--disable-compression", tag, f"oci:{self.store.layout}:{spec.key}")
        self._run("rmi", tag)
        archive = self.store.archive(spec.key, fingerprint)
        self.store.write_archive(archive, spec.name, self.store.manifest_of(spec.key), layers)
        return archive

    def _dependencies(self, spec: ImageSpec, tag: str) -> set[str]:
        """Layers of the stage below our code, built and put into the layout if need be."""
        if not self._has(tag):
            uv = self._uv()
            self.progress(f"{spec.key}: installing third-party packages ({spec.takes}; once for each lock file)")
            with context(spec, self._scratch) as directory:
                self._bud(spec, spec.dependencies, tag, directory, "--build-arg", f"UV_IMAGE={uv}", *_downloads())
            self._forget_others(tag)
        layers = self._layers(tag)
        if not all(self.store.blob(digest).exists() for digest in layers):
            self.progress(f"{spec.key}: storing the layers")
            with tempfile.TemporaryDirectory(dir=self._scratch) as pushed:
                self._run("push", *self._policy, "--disable-compression", tag, f"dir:{pushed}/image")
                self.store.adopt(Path(pushed, "image"))
        return layers

    def _base(self) -> str:
        tag = f"localhost/headwater-base:{base_fingerprint()}"
        if not self._has(tag):
            self.progress("making the base image from Debian's packages")
            with tempfile.TemporaryDirectory(dir=self._scratch) as directory:
                write_base_context(Path(directory))
                self._run("bud", *self._policy, "--tag", tag, directory)
            self._forget_others(tag)
        return tag

    def _uv(self) -> str:
        """An image that holds only this machine's uv."""
        program = Path(run("uv", "run", "--no-project", "printenv", "UV").strip())
        tag = f"localhost/headwater-uv:{hashlib.sha256(program.read_bytes()).hexdigest()[:12]}"
        if not self._has(tag):
            with tempfile.TemporaryDirectory(dir=self._scratch) as directory:
                shutil.copy(program, Path(directory, "uv"))
                Path(directory, "Dockerfile").write_text("FROM scratch\nCOPY uv /uv\n")
                self._run("bud", *self._policy, "--tag", tag, directory)
            self._forget_others(tag)
        return tag

    def _bud(self, spec: ImageSpec, target: str, tag: str, directory: Path, *flags: str) -> None:
        fixed = ["--pull-never", "--network", "host", "--build-arg", f"BASE_IMAGE={self._base()}", *certificates()]
        what = ["--file", str(REPO / spec.dockerfile), "--target", target, "--tag", tag]
        try:
            self._run("bud", *self._policy, *fixed, *what, *flags, str(directory))
        finally:
            # A stage that was only mounted from stays behind, mounted.
            self._run("rm", "--all")

    def _layers(self, tag: str) -> set[str]:
        described = json.loads(self._run("inspect", "--type", "image", tag))
        return set(described["OCIv1"]["rootfs"]["diff_ids"])

    def _has(self, tag: str) -> bool:
        return self._call("inspect", "--type", "image", tag).returncode == 0

    def _forget_others(self, tag: str) -> None:
        """Remove former images of the same stage, which hold gigabytes."""
        name = tag.rpartition(":")[0]
        for line in self._run("images", "--format", "{{.Name}}:{{.Tag}}").splitlines():
            if line.rpartition(":")[0] == name and line != tag:
                self._run("rmi", line)

    def _run(self, *arguments: str) -> str:
        done = self._call(*arguments)
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-LINES_OF_A_FAILURE:])
            raise ClusterError(f"buildah {arguments[0]} failed:\n{said}")
        return done.stdout

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": search_path(),
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_STORAGE_CONF": str(self.store.dir / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.store.dir / "registries.conf"),
            "TMPDIR": str(self._scratch),
        }
        return subprocess.run(
            ["buildah", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _prepare(self) -> None:
        """Settings of its own: the machine's may name another store or forbid what is built here."""
        if os.geteuid():
            raise ClusterError("building images without Docker needs root")
        require_programs(PROGRAMS)
        self._scratch.mkdir(parents=True, exist_ok=True)
        (self.store.dir / "storage.conf").write_text(STORAGE.format(self.store.dir))
        (self.store.dir / "registries.conf").write_text("")
        (self.store.dir / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')

    @property
    def _scratch(self) -> Path:
        return self.store.dir / "tmp"

    @property
    def _policy(self) -> list[str]:
        return ["--signature-policy", str(self.store.dir / "policy.json")]


def _downloads() -> list[str]:
    """Flags that let the build use what uv has downloaded on this machine before."""
    inside = "/run/build/downloads"
    return ["--volume", f"{run('uv', 'cache', 'dir').strip()}:{inside}", "--build-arg", f"UV_CACHE_DIR={inside}"]
