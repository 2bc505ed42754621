"""From nothing to an installed Headwater: cluster, images, chart. Each step is a no-op where it is done already."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e.cluster import build, provider
from e2e.cluster.state import State
from e2e.kit.kubectl import Kubectl
from e2e.kit.pools import SYSTEM_NAMESPACE

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/headwater"
LOCAL_VALUES = ROOT / "charts/values-local.yaml"
RELEASE = "headwater"
TAIL_LINES = 30

Progress = Callable[[str], None]


class InstallError(RuntimeError):
    """A step failed; the text says what, ``details`` holds the end of its output."""

    def __init__(self, what: str, details: str = "") -> None:
        super().__init__(what)
        self.details = details


def ensure_cluster(
    state: Path, nodes: int | None = None, gpus_per_node: int | None = None, progress: Progress = print
) -> Kubectl:
    """Brings the local cluster in ``state`` up. None leaves a running cluster's size as it is.

    Raises ClusterError.
    """
    provider.up(State(state), provider.Wish(nodes, gpus_per_node), progress)
    return Kubectl(State(state).kubeconfig, kubectl_binary())


def build_images(names: Sequence[str], progress: Progress = print) -> list[Path]:
    """Builds images that are missing or out of date; the archives to load. Raises InstallError."""
    output = run_streaming([sys.executable, "images/build.py", *names], progress, what="building the images")
    archives = [Path(line) for line in output if line.endswith(".tar")]
    if len(archives) != len(names):
        raise InstallError(f"images/build.py named {len(archives)} archives for {len(names)} images", "\n".join(output))
    return archives


def load_images(state: Path, archives: Sequence[Path], progress: Progress = print) -> None:
    """Brings images into every node of the local cluster. Raises ClusterError."""
    provider.load(State(state), archives, progress)


def install_chart(kubeconfig: Path, *, settings: Sequence[str] = (), progress: Progress = print) -> None:
    """Installs or upgrades the chart with the locally built images; does not wait for the operator.

    ``settings`` are ``--set-string`` assignments. Raises InstallError.
    """
    assignments = [part for setting in settings for part in ("--set-string", setting)]
    arguments = ["upgrade", "--install", RELEASE, str(CHART), "--create-namespace", "--values", str(LOCAL_VALUES)]
    helm(kubeconfig, *arguments, *assignments, progress=progress)


def uninstall(kubeconfig: Path, progress: Progress = print) -> None:
    """Removes the release; its CRDs stay. Raises InstallError."""
    helm(kubeconfig, "uninstall", RELEASE, "--wait", "--timeout", "3m", progress=progress)


def helm(kubeconfig: Path, *arguments: str, progress: Progress = print) -> None:
    """Runs helm in the system namespace. Raises InstallError."""
    scope = ["--kubeconfig", str(kubeconfig), "--namespace", SYSTEM_NAMESPACE]
    binary = helm_binary(progress)
    # helm's notes are for a person who installs by hand; the last lines of a failure are what matters here.
    run_streaming([binary, *arguments, *scope], lambda _line: None, what=f"helm {arguments[0]}")


def kubectl_binary() -> str:
    """The kubectl that was built with the cluster, else the one on PATH."""
    built = build.bin_dir() / "kubectl"
    return str(built) if built.exists() else "kubectl"


def helm_binary(progress: Progress = print) -> str:
    """The helm that was built with the cluster, else the one on PATH, else one built now."""
    found = None if build.HELM.built() else shutil.which("helm")
    if found is None:
        build.build((build.HELM,), progress)
    return found or str(build.HELM.path)


def run_streaming(argv: Sequence[str], progress: Progress, *, what: str) -> list[str]:
    """Runs a command, hands each line of its output to ``progress`` as it comes, and returns them.

    Raises InstallError with the last lines on a non-zero exit.
    """
    lines: list[str] = []
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if text := line.rstrip():
                lines.append(text)
                progress(text)
    if process.returncode != 0:
        raise InstallError(f"{what} failed (exit code {process.returncode})", "\n".join(lines[-TAIL_LINES:]))
    return lines
