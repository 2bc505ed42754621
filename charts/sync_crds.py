"""Copies crds/*.yaml into the chart, which can only read files below itself. ``--check`` compares instead."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

CHARTS = Path(__file__).resolve().parent
SOURCE = CHARTS.parent / "crds"
TARGET = CHARTS / "headwater" / "files" / "crds"


def differences(source: Path, target: Path) -> list[str]:
    """Names of CRD files that are missing, stale or left over in ``target``."""
    want = {path.name: path.read_bytes() for path in source.glob("*.yaml")}
    got = {path.name: path.read_bytes() for path in target.glob("*.yaml")}
    return sorted(name for name in want.keys() | got.keys() if want.get(name) != got.get(name))


def sync(source: Path, target: Path) -> None:
    """Makes ``target`` hold exactly the CRD files of ``source``."""
    target.mkdir(parents=True, exist_ok=True)
    for name in differences(source, target):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
        else:
            (target / name).unlink()


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 with ``--check`` and a difference, or when there is nothing to copy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the copies differ")
    options = parser.parse_args(arguments)
    if not any(SOURCE.glob("*.yaml")):
        sys.stderr.write(f"no CRDs in {SOURCE}: generate them with `make crds`\n")
        return 1
    if not options.check:
        sync(SOURCE, TARGET)
        return 0
    stale = differences(SOURCE, TARGET)
    for name in stale:
        sys.stderr.write(f"{TARGET / name} differs from {SOURCE / name}: run `make crds`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
