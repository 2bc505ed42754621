"""A cluster's state directory: its paths, its lock, and the settings that outlive a command.

Every name that a cluster leaves in the kernel (links, cgroups, an environment marker) is derived from the
directory's path, so that `down` finds all of it even when nothing in the directory can be read any more.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from e2e.cluster.errors import ClusterError

REPO = Path(__file__).resolve().parents[2]
DEFAULT_STATE = REPO / ".headwater" / "cluster"
OWN_PARTS = ("run", "etcd", "nodes", "pki", "conf", "logs", "kubeconfig", "settings.json")


def cache_dir() -> Path:
    """Where binaries and images are kept between clusters: $HEADWATER_CACHE or ~/.cache/headwater."""
    configured = os.environ.get("HEADWATER_CACHE")
    return Path(configured).expanduser().resolve() if configured else Path.home() / ".cache" / "headwater"


@dataclass(frozen=True)
class Settings:
    """What `up` was asked for and what it chose; `complete` once all of it came up."""

    provider: Literal["bundled", "kind"]
    nodes: tuple[str, ...]
    gpus_per_node: int
    net: str = ""
    server: str = ""
    complete: bool = False
    ports: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """One cluster, known by its directory (made absolute, so that one directory has one name)."""

    dir: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "dir", self.dir.expanduser().resolve())

    @property
    def id(self) -> str:
        """Six hex digits that name this cluster's links and cgroups."""
        return hashlib.sha256(str(self.dir).encode()).hexdigest()[:6]

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.dir / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One log a process."""
        return self.dir / "logs"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.dir / "pki"

    @property
    def conf(self) -> Path:
        """Configuration of the control plane's processes."""
        return self.dir / "conf"

    def node(self, name: str) -> Path:
        """A node's own directory: its configuration and its /var and /run."""
        return self.dir / "nodes" / name

    def settings(self) -> Settings | None:
        """What `up` wrote, or None where no cluster was begun."""
        try:
            raw = json.loads((self.dir / "settings.json").read_text())
        except FileNotFoundError:
            return None
        return Settings(**{**raw, "nodes": tuple(raw["nodes"])})

    def require(self) -> Settings:
        """The settings, or ClusterError where no cluster was begun."""
        settings = self.settings()
        if settings is None:
            raise ClusterError(f"no cluster in {self.dir}; start one with `python3 -m e2e.cluster up`")
        return settings

    def save(self, settings: Settings) -> Settings:
        """Write the settings in one step, so that a crash leaves the old or the new ones."""
        partial = self.dir / "settings.json.new"
        partial.write_text(json.dumps(asdict(settings), indent=1))
        partial.replace(self.dir / "settings.json")
        return settings

    def mark_complete(self, settings: Settings) -> Settings:
        """Record that all of the cluster came up."""
        return self.save(replace(settings, complete=True))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other commands on this directory out; `down` may remove the directory while it holds the lock."""
        with suppress(FileExistsError):
            self.dir.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._is_still(descriptor):
                    yield
                    return
            finally:
                os.close(descriptor)
            self.dir.mkdir(parents=True, exist_ok=True)

    def _is_still(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.dir.stat())
        except FileNotFoundError:
            return False

    def foreign_files(self) -> list[str]:
        """What lies in the directory although no cluster was begun there: never ours to delete."""
        return sorted(p.name for p in self.dir.iterdir()) if self.settings() is None else []

    def remove_files(self) -> None:
        """Delete what a cluster wrote (settings last: they mark the rest as ours), then the empty directory."""
        if self.settings() is not None:
            for part in OWN_PARTS:
                path = self.dir / part
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            (self.dir / "settings.json.new").unlink(missing_ok=True)
        with suppress(OSError):
            self.dir.rmdir()
            if self.dir == DEFAULT_STATE:
                self.dir.parent.rmdir()


def write(path: Path, content: str | dict[str, object], mode: int = 0o644) -> Path:
    """Write text, or JSON (which is YAML), making the directories above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=mode)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path
