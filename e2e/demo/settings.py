"""What the demo is asked for, from arguments and environment."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from e2e.cluster.state import DEFAULT_STATE
from e2e.kit.install import ROOT

GROUPS, GPUS_OF_A_GROUP = 3, 8  # of docs/examples/quickstart-sim.yaml


@dataclass(frozen=True)
class Backend:
    """What differs between the demo with a real model and the quick one."""

    name: str
    images: tuple[str, ...]
    example: Path
    ready_seconds: float
    warning: str = ""


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("vllm", ("operator", "engine-cpu"), ROOT / "docs/examples/quickstart.yaml", ready_seconds=900),
        Backend(
            "sim",
            ("operator", "engine-sim"),
            ROOT / "docs/examples/quickstart-sim.yaml",
            ready_seconds=300,
            warning="Backend sim makes its text up; `make demo` without BACKEND=sim asks a real model.",
        ),
    )
}


@dataclass(frozen=True)
class Settings:
    """One run. ``kubeconfig`` is None for the local cluster in ``state``."""

    backend: Backend
    state: Path
    nodes: int | None
    kubeconfig: Path | None
    question: str

    @property
    def gpus_per_node(self) -> int | None:
        """Pretended GPUs for whole groups, enough for all; None leaves a running cluster as it is."""
        return ceil(GROUPS / self.nodes) * GPUS_OF_A_GROUP if self.nodes else None


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line; environment variables give the defaults."""
    parser = argparse.ArgumentParser(
        prog="python -m e2e.demo", description="From nothing to the streamed tokens of a model on Kubernetes."
    )
    add = parser.add_argument
    add("--backend", choices=sorted(BACKENDS), default=os.environ.get("BACKEND") or "vllm", help="(default: vllm)")
    add("--state", type=Path, default=DEFAULT_STATE, metavar="DIR", help="directory of the local cluster")
    add("--nodes", type=int, metavar="N", help="nodes of a new local cluster (default: 1)")
    # Only by name: whatever KUBECONFIG points to may be somebody's production.
    add(
        "--kubeconfig",
        type=Path,
        default=os.environ.get("HEADWATER_DEMO_KUBECONFIG") or None,
        metavar="FILE",
        help="use this cluster instead of a local one; its nodes must hold the images already (make images)",
    )
    add("--question", default="What is the capital of France?", help="what to ask the model")
    args = parser.parse_args(arguments)
    kubeconfig = args.kubeconfig and Path(args.kubeconfig).expanduser().resolve()
    return Settings(BACKENDS[args.backend], args.state.expanduser().resolve(), args.nodes, kubeconfig, args.question)
