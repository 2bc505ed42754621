"""``python -m headwater_operator.crdgen crds --docs docs/reference`` writes both; ``--check`` only compares."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from headwater_contracts.labels import API_GROUP
from headwater_operator.crdgen.definitions import KINDS, build_crd
from headwater_operator.crdgen.reference import reference_text

HEADER = "# Generated from operator/src/headwater_operator/api by `make crds`. Change the models, not this file.\n"
_SHOWN_LINES = 40


def definition_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The CustomResourceDefinitions, each with the file that it belongs into."""
    for kind in KINDS:
        body = yaml.safe_dump(build_crd(kind), sort_keys=False, width=110, allow_unicode=True)
        yield folder / f"{API_GROUP}_{kind.plural}.yaml", HEADER + body


def reference_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The API reference. The table of bad specs beside it becomes a part of it."""
    refusals = folder / "refusals.yaml"
    rows = yaml.safe_load(refusals.read_text(encoding="utf-8")) if refusals.exists() else []
    yield folder / "api.md", reference_text(rows)


def difference(path: Path, want: str) -> list[str]:
    """What generating would change in the file at ``path``, as lines of a diff."""
    got = path.read_text(encoding="utf-8") if path.exists() else ""
    return list(
        difflib.unified_diff(
            got.splitlines(), want.splitlines(), f"{path} (found)", f"{path} (generated)", "", "", 1, ""
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or compares; the exit code is 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(prog="headwater_operator.crdgen", description=__doc__)
    parser.add_argument("crds", type=Path, nargs="?", help="folder of the CustomResourceDefinitions")
    parser.add_argument("--docs", type=Path, help="folder of the API reference")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file differs")
    options = parser.parse_args(arguments)
    if options.crds is None and options.docs is None:
        parser.error("name the folder of the definitions, or --docs with that of the reference, or both")
    files = [
        *(definition_files(options.crds) if options.crds else ()),
        *(reference_files(options.docs) if options.docs else ()),
    ]
    return _check(files) if options.check else _write(files)


def _write(files: Sequence[tuple[Path, str]]) -> int:
    for path, text in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {path}\n")
    return 0


def _check(files: Sequence[tuple[Path, str]]) -> int:
    stale = {path: lines for path, text in files if (lines := difference(path, text))}
    for path, lines in stale.items():
        shown = "\n".join(lines[:_SHOWN_LINES])
        more = f"\n… {len(lines) - _SHOWN_LINES} more lines" if len(lines) > _SHOWN_LINES else ""
        sys.stderr.write(f"{path} is not what the models generate:\n{shown}{more}\n")
    if stale:
        sys.stderr.write("run `make crds` and commit the result\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
