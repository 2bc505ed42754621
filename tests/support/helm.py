"""Runs helm on the chart: finds the binary, renders manifests, reports helm's own message on failure."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from e2e.cluster import build

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "headwater"
LOCAL_VALUES = REPOSITORY / "charts" / "values-local.yaml"
RELEASE = "hw"
NAMESPACE = "hw-system"
KUBERNETES_VERSION = "1.34.4"

RUN_DEADLINE_SECONDS = 120

Values = Mapping[str, Any]
Manifest = dict[str, Any]


class HelmError(Exception):
    """helm refused; the text is what it wrote to its standard error."""


@cache
def helm_binary() -> str:
    """Path of the helm that is built with the local cluster, else of the one on PATH, else of one built now."""
    if not build.HELM.built():
        found = shutil.which("helm")
        if found is not None:
            return found
        build.build((build.HELM,))
    return str(build.HELM.path)


def run(*arguments: str, values: Values | None = None, api: str | None = None) -> str:
    """Output of one helm command, cut off from any configuration, cluster and cache of this user.

    ``api`` is the address of an API server; without one nothing is contacted.
    """
    with TemporaryDirectory() as scratch:
        command = [helm_binary(), *arguments]
        if values is not None:
            file = Path(scratch) / "values.yaml"
            file.write_text(yaml.safe_dump(dict(values)))
            command += ["--values", str(file)]
        if api is not None:
            command += ["--kube-apiserver", api]
        done = subprocess.run(
            command,
            env=_environment(scratch),
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_DEADLINE_SECONDS,
        )
    if done.returncode != 0:
        raise HelmError(done.stderr + done.stdout)
    return done.stdout


def _environment(scratch: str) -> dict[str, str]:
    homes = {f"HELM_{kind}_HOME": scratch for kind in ("CACHE", "CONFIG", "DATA")}
    return {"HOME": scratch, "KUBECONFIG": os.devnull, "NO_PROXY": "127.0.0.1", **homes}


def template(
    values: Values | None = None,
    *,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
    files: Sequence[Path] = (),
    api: str | None = None,
    fresh: bool = False,
) -> str:
    """Text of the rendered manifests. With ``api`` the templates' lookups ask that server.

    The same question is asked once, for helm takes a good part of a second; ``fresh`` asks again.
    """
    arguments = ["template", release, str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES_VERSION]
    for file in files:
        arguments += ["--values", str(file)]
    if api is not None:
        return run(*arguments, "--dry-run=server", values=values or {}, api=api)
    text = yaml.safe_dump(dict(values or {}))
    ask = _template.__wrapped__ if fresh else _template
    return ask(tuple(arguments), text)


@cache
def _template(arguments: tuple[str, ...], values: str) -> str:
    return run(*arguments, values=yaml.safe_load(values))


def render(
    values: Values | None = None,
    *,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
    files: Sequence[Path] = (),
    api: str | None = None,
    fresh: bool = False,
) -> list[Manifest]:
    """The rendered manifests as plain values."""
    text = template(values, release=release, namespace=namespace, files=files, api=api, fresh=fresh)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    """Those manifests of one kind."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def only(manifests: Sequence[Manifest], kind: str) -> Manifest:
    """The one manifest of a kind; AssertionError if there are none or several."""
    (found,) = of_kind(manifests, kind)
    return found
