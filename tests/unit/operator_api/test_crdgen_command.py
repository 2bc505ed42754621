"""``python -m headwater_operator.crdgen``: what it writes, and that it notices a difference."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from headwater_operator.crdgen.__main__ import main
from headwater_operator.crdgen.reference import reference_text
from support.refusals import TABLE

ROOT = Path(__file__).resolve().parents[3]


def test_the_files_in_the_repository_are_what_the_models_generate() -> None:
    assert main([str(ROOT / "crds"), "--docs", str(ROOT / "docs/reference"), "--check"]) == 0


def test_what_was_written_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path / "crds"), "--docs", str(tmp_path / "docs")]

    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    assert sorted(path.name for path in (tmp_path / "crds").iterdir()) == [
        "headwater.dev_inferencepools.yaml",
        "headwater.dev_replicagroups.yaml",
    ]
    assert "wrote" in capsys.readouterr().out


def test_a_difference_fails_the_check_shows_itself_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path)])
    stale = tmp_path / "headwater.dev_inferencepools.yaml"
    stale.write_text(stale.read_text().replace("maximum: 64", "maximum: 63", 1))

    got = main([str(tmp_path), "--check"])

    shown = capsys.readouterr().err
    assert got == 1
    assert "maximum: 63" in shown
    assert "maximum: 64" in shown
    assert "make crds" in shown
    assert "maximum: 63" in stale.read_text(), "a check must not write"


def test_the_reference_alone_can_be_written(tmp_path: Path) -> None:
    assert main(["--docs", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["api.md"]


def test_nothing_to_do_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "name the folder" in capsys.readouterr().err


def test_a_missing_file_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--check"]) == 1
    assert "more lines" in capsys.readouterr().err


def test_the_reference_names_every_field_and_every_refusal() -> None:
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    page = reference_text(rows)

    for name in ("spec.slo", "`ttftP90`", "`kvCacheUtilizationPercent`", "`maxEstimatedTTFT`", "status.signals"):
        assert name in page
    assert all(row["what"] in page for row in rows)
