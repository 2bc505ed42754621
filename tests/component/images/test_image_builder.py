"""What `images/build.py` makes, seen in the archives themselves, and when it builds at all."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster import oci
from e2e.cluster.state import REPO
from images.builder.catalog import CATALOG
from images.builder.fingerprint import dependencies_hash, image_hash
from images.builder.store import Store

KEYS = ("operator", "engine-sim")
DOCKER = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$1" in
    info) echo engine ;;
    save) tar -cf "$3" -C "$CONTEXT" pyproject.toml ;;
esac
"""


def build(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the builder to its end."""
    command = [sys.executable, "images/build.py", *map(str, arguments)]
    return subprocess.run(
        command, cwd=REPO, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280, check=False
    )


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    done = build(*KEYS)
    assert done.returncode == 0, done.stderr
    return dict(zip(KEYS, map(Path, done.stdout.splitlines()), strict=True))


@pytest.fixture(scope="module", params=KEYS)
def whole(request: pytest.FixtureRequest, archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image as a whole archive, unpacked."""
    image = oci.read_image(archives[request.param])
    assert image
    directory = tmp_path_factory.mktemp("whole")
    with (directory / "image.tar").open("wb") as file:
        image.write(file, image.blobs)
    with tarfile.open(directory / "image.tar") as tar:
        tar.extractall(directory, filter="data")
    return directory


def blob(directory: Path, digest: str) -> Path:
    return directory / oci.blob_path(digest)


def manifest(directory: Path) -> Any:
    descriptor = json.loads((directory / "index.json").read_text())["manifests"][0]
    return json.loads(blob(directory, descriptor["digest"]).read_text())


def files(directory: Path) -> dict[str, int]:
    """Path → size of every regular file in the image's layers."""
    found = {}
    for layer in manifest(directory)["layers"]:
        with tarfile.open(blob(directory, layer["digest"])) as tar:
            found.update({member.name: member.size for member in tar if member.isfile()})
    return found


def test_what_is_built_is_not_built_again(archives: dict[str, Path]) -> None:
    again = build(*KEYS)
    assert (again.stdout.splitlines(), again.stderr) == ([str(archives[key]) for key in KEYS], "")


def test_images_run_our_code_as_an_ordinary_user(whole: Path) -> None:
    config = json.loads(blob(whole, manifest(whole)["config"]["digest"]).read_text())["config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"][:2] == ["python3", "-m"]
    assert config["Entrypoint"][2] in ("headwater_operator", "headwater_engine")


def test_images_hold_code_byte_code_and_version_but_nothing_of_the_build(whole: Path) -> None:
    got = files(whole)
    assert "opt/headwater/headwater_contracts/labels.py" in got
    assert "opt/headwater/headwater_contracts/__pycache__/labels.cpython-311.pyc" in got
    assert [path for path in got if path.startswith("opt/headwater/headwater-") and path.endswith("METADATA")]
    assert not [path for path in got if path.startswith("run/build")]


def test_no_image_holds_a_development_tool(whole: Path) -> None:
    assert not [path for path in files(whole) if "/site-packages/pytest" in path or "/site-packages/mypy/" in path]


def test_an_image_of_another_code_keeps_the_stage_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = CATALOG["engine-sim"]
    dependencies = dependencies_hash(spec)
    before, read = image_hash(spec, dependencies), Path.read_bytes

    def changed(path: Path) -> bytes:
        return read(path) + (b"# changed" if path.name == "ports.py" else b"")

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert dependencies_hash(spec) == dependencies
    assert image_hash(spec, dependencies) != before


def test_an_archive_whose_layers_were_deleted_counts_as_missing(archives: dict[str, Path], tmp_path: Path) -> None:
    original = archives["engine-sim"]
    assert Store(original.parent).complete(original)
    lonely = tmp_path / original.name
    lonely.write_bytes(original.read_bytes())
    assert not Store(tmp_path).complete(lonely)


def test_a_docker_engine_is_used_where_one_answers(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    calls, path = tmp_path / "calls", f"{tmp_path}:{os.environ['PATH']}"
    got = build("engine-sim", PATH=path, CALLS=str(calls), CONTEXT=str(REPO), HEADWATER_CACHE=str(tmp_path / "cache"))
    assert got.returncode == 0, got.stderr
    built = [line for line in calls.read_text().splitlines() if line.startswith("build")]
    assert "--target sim --tag localhost/headwater-engine-sim:dev" in built[0]
    assert tarfile.is_tarfile(got.stdout.strip())


def test_the_cuda_image_asks_for_docker() -> None:
    got = build("engine-cuda", HEADWATER_IMAGE_BUILDER="buildah")
    assert (got.returncode, "needs Docker" in got.stderr) == (1, True)
