"""Checks that no linter makes: names that shadow the standard library, and files grown too large."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# An operator/__init__.py would make Python's own operator module import this folder.
FORBIDDEN = ("operator/__init__.py", "operator.py", "operator/src/operator.py")
LARGEST_SOURCE_LINES = 700


def tracked() -> list[str]:
    """Paths of tracked and not-ignored files, relative to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()  # noqa: S603


def problems(paths: list[str]) -> list[str]:
    """One line for each fault found."""
    found = [f"{path}: shadows the standard library's operator module" for path in FORBIDDEN if path in paths]
    for path in paths:
        if path.endswith(".py") and (ROOT / path).is_file():
            lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
            if lines > LARGEST_SOURCE_LINES:
                found.append(f"{path}: {lines} lines; split it ({LARGEST_SOURCE_LINES} at most)")
    return found


def main() -> int:
    """Prints the faults; 1 if there are any."""
    found = problems(tracked())
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
