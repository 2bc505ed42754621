"""The chart's CRDs are those of crds/, upgraded by Helm and kept when the release goes."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
import yaml

from support import helm

SOURCE = helm.REPOSITORY / "crds"
SYNC = helm.REPOSITORY / "charts" / "sync_crds.py"


def checked_in() -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted(SOURCE.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            found[document["metadata"]["name"]] = document
    return found


def rendered(values: helm.Values | None = None) -> dict[str, dict[str, Any]]:
    crds = helm.of_kind(helm.render(values), "CustomResourceDefinition")
    return {crd["metadata"]["name"]: crd for crd in crds}


def test_chart_has_both_kinds() -> None:
    assert set(rendered()) == {"inferencepools.headwater.dev", "replicagroups.headwater.dev"}


def test_rendered_crds_are_the_checked_in_ones() -> None:
    got, want = rendered(), checked_in()
    assert got.keys() == want.keys()
    for name, crd in want.items():
        assert got[name]["spec"] == crd["spec"]
        assert got[name]["apiVersion"] == crd["apiVersion"]


def test_checked_in_crds_carry_no_metadata_that_the_chart_would_double() -> None:
    """The chart inserts annotations and labels as text; a second block of either would win silently."""
    for crd in checked_in().values():
        assert set(crd["metadata"]) == {"name"}


def test_uninstall_keeps_the_crds() -> None:
    """With them go all pools of the cluster, so only a person may delete them."""
    for crd in rendered().values():
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_crds_can_be_left_out() -> None:
    assert rendered({"crds": {"install": False}}) == {}


def test_crds_are_templates_so_that_an_upgrade_changes_them() -> None:
    assert not (helm.CHART / "crds").exists()


def copy_of_charts(at: Path) -> Path:
    (at / "charts" / "headwater").mkdir(parents=True)
    (at / "crds").mkdir()
    script = at / "charts" / SYNC.name
    script.write_text(SYNC.read_text())
    return script


def sync(script: Path, *arguments: str) -> tuple[int, str]:
    done = run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def test_copies_in_the_chart_are_up_to_date() -> None:
    assert sync(SYNC, "--check") == (0, "")


def test_sync_copies_changes_and_removes_leftovers(tmp_path: Path) -> None:
    script = copy_of_charts(tmp_path)
    target = tmp_path / "charts" / "headwater" / "files" / "crds"
    (tmp_path / "crds" / "a.yaml").write_text("a: 1\n")
    assert sync(script)[0] == 0
    (tmp_path / "crds" / "a.yaml").write_text("a: 2\n")
    (target / "old.yaml").write_text("old: 1\n")
    assert sync(script)[0] == 0
    assert {path.name: path.read_text() for path in target.iterdir()} == {"a.yaml": "a: 2\n"}


@pytest.mark.parametrize("spoil", ["stale", "missing", "leftover"])
def test_check_fails_on_any_difference_and_says_what_to_run(tmp_path: Path, spoil: str) -> None:
    script = copy_of_charts(tmp_path)
    source, target = tmp_path / "crds", tmp_path / "charts" / "headwater" / "files" / "crds"
    (source / "a.yaml").write_text("a: 1\n")
    assert sync(script)[0] == 0
    assert sync(script, "--check") == (0, "")
    {
        "stale": lambda: (source / "a.yaml").write_text("a: 2\n"),
        "missing": lambda: (source / "b.yaml").write_text("b: 1\n"),
        "leftover": lambda: (target / "c.yaml").write_text("c: 1\n"),
    }[spoil]()
    code, message = sync(script, "--check")
    assert code == 1
    assert "run `make crds`" in message


def test_check_fails_when_there_are_no_crds_at_all(tmp_path: Path) -> None:
    code, message = sync(copy_of_charts(tmp_path), "--check")
    assert code == 1
    assert "no CRDs" in message
