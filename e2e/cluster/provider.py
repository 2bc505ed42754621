"""The commands on one cluster, whichever provider runs it. Each takes the state directory's lock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from e2e.cluster import bundled, images, kind, nodes
from e2e.cluster.errors import ClusterError
from e2e.cluster.state import Settings, State

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What `up` is asked for; None leaves a running cluster as it is, and else means the default."""

    nodes: int | None = None
    gpus_per_node: int | None = None

    DEFAULT_NODES = 1
    DEFAULT_GPUS = 24

    def settings(self, provider: Literal["bundled", "kind"]) -> Settings:
        """Settings of a new cluster."""
        count = self.DEFAULT_NODES if self.nodes is None else self.nodes
        gpus = self.DEFAULT_GPUS if self.gpus_per_node is None else self.gpus_per_node
        return Settings(provider, tuple(f"node{i}" for i in range(1, count + 1)), gpus)

    def check(self, settings: Settings) -> None:
        """Raise ClusterError if a running cluster is of another size."""
        running = {"nodes": len(settings.nodes), "gpus-per-node": settings.gpus_per_node}
        wanted = {"nodes": self.nodes, "gpus-per-node": self.gpus_per_node}
        for what, count in wanted.items():
            if count is not None and count != running[what]:
                raise ClusterError(f"the running cluster has --{what} {running[what]}, not {count}; take it down first")


def up(state: State, wish: Wish, progress: Progress = print, tied_to_caller: bool = False) -> bool:
    """Bring the cluster up; False if it was there already. `tied_to_caller` ends its processes with ours."""
    with state.lock():
        existing = state.settings()
        if existing and existing.complete and _survives(state, existing):
            wish.check(existing)
            return bool(_mend(state, existing, progress))
        if existing:
            progress(f"removing what is left of an earlier cluster in {state.dir}")
            _down(state, existing)
            state.dir.mkdir(parents=True, exist_ok=True)
        foreign = state.foreign_files()
        if foreign:
            raise ClusterError(f"{state.dir} is not empty ({foreign[0]}, ...) and holds no cluster; choose another")
        try:
            _create(state, wish, progress, tied_to_caller)
        finally:
            if state.settings() is None:
                state.remove_files()
    return True


def down(state: State) -> bool:
    """Remove every trace of the cluster; False if there was none to see."""
    if not state.dir.exists():
        bundled.down(state)
        return False
    with state.lock():
        settings = state.settings()
        _down(state, settings)
    return settings is not None


def load(state: State, archives: Sequence[Path], progress: Progress = print) -> None:
    """Import image archives on every node."""
    settings = state.require()
    with state.lock():
        if settings.provider == "kind":
            kind.load(state, archives, progress)
        else:
            images.load(state, settings, archives, progress)


def start_nodes(state: State, names: list[str]) -> None:
    """Switch nodes on and wait until they are Ready."""
    settings = state.require()
    nodes.require_nodes(settings, names)
    with state.lock():
        if settings.provider == "kind":
            kind.start_nodes(state, settings, names)
        else:
            bundled.start_nodes(state, settings, names)


def stop_nodes(state: State, names: list[str]) -> None:
    """Cut the power of nodes: everything in them ends at once, and nothing is told."""
    settings = state.require()
    nodes.require_nodes(settings, names)
    with state.lock():
        if settings.provider == "kind":
            kind.stop_nodes(state, names)
        else:
            bundled.stop_nodes(state, settings, names)


def _create(state: State, wish: Wish, progress: Progress, tied_to_caller: bool) -> None:
    # A control plane alone needs neither Docker nor root, and tests want it quickly.
    if wish.nodes != 0 and kind.available():
        kind.up(state, wish.settings("kind"), progress)
    else:
        bundled.up(state, wish.settings("bundled"), progress, tied_to_caller)


def _survives(state: State, settings: Settings) -> bool:
    return settings.provider == "kind" or bundled.survives(state, settings)


def _mend(state: State, settings: Settings, progress: Progress) -> list[str]:
    mend = kind.mend if settings.provider == "kind" else bundled.mend
    return mend(state, settings, progress)


def _down(state: State, settings: Settings | None) -> None:
    if settings and settings.provider == "kind":
        kind.down(state)
    else:
        bundled.down(state)
