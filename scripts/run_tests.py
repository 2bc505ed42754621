"""Runs the test tiers one after the other and says at the end what passed, what failed and what was skipped, and why.

A tier that this machine cannot run is skipped with its reason; with ``--e2e required`` any skip is a failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIERS: dict[str, str | tuple[list[str], ...]] = {
    "static": (["make", "-s", "lint"], ["make", "-s", "type"], ["make", "-s", "verify"]),
    "unit": "tests/unit",
    "sim": "tests/sim",
    "charts": "tests/charts",
    "contract": "tests/contract",
    "component": "tests/component",
    "e2e": "e2e",
}

NEED_BUILDS = frozenset({"charts", "component", "e2e"})
NEED_NODES = ("tests/component/cluster", "tests/component/images")


@dataclass
class Result:
    """What became of one tier. ``skips`` holds a reason for each thing not run."""

    tier: str
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skips: list[str] = field(default_factory=list)


def run_commands(tier: str, commands: tuple[list[str], ...]) -> Result:
    """A tier of plain commands: each counts as one test."""
    result = Result(tier)
    for command in commands:
        ok = subprocess.run(command, cwd=ROOT, check=False).returncode == 0  # noqa: S603
        result.passed += ok
        result.failed += not ok
    return result


def run_pytest(tier: str, path: str, *more: str) -> Result:
    """A tier of pytest; counts and skip reasons come from its JUnit report."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", path, *more, f"--junit-xml={report}", "--durations=5"]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603
        result = Result(tier)
        if report.exists():
            read_report(report, result)
    if code != 0 and result.failed == 0:  # a crash, an internal error, or no test collected
        result.failed = 1
    return result


def read_report(report: Path, result: Result) -> None:
    """Adds a JUnit file's counts to ``result``."""
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - our own file
        skipped = case.find("skipped")
        if skipped is not None:
            result.skips.append(f"{case.get('classname')}.{case.get('name')}: {skipped.get('message')}")
        elif case.find("failure") is not None or case.find("error") is not None:
            result.failed += 1
        else:
            result.passed += 1


def why_no_nodes() -> str | None:
    """Why no cluster with nodes can run here, or None if one can. Installs what is missing where it may."""
    check = subprocess.run([str(ROOT / "scripts/bootstrap"), "cluster"], stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    sys.stderr.write(check.stderr)
    return None if check.returncode == 0 else check.stderr.strip() or "scripts/bootstrap cluster failed"


def run_tier(tier: str, no_nodes: str | None) -> Result:
    """Runs one tier without what needs nodes if there can be none, which then is a skip."""
    print(f"\n=== {tier}", flush=True)
    begin = time.monotonic()
    what = TIERS[tier]
    if tier == "e2e" and no_nodes:
        result = Result(tier)
    elif isinstance(what, str):
        without = [f"--ignore={path}" for path in NEED_NODES if no_nodes]
        result = run_pytest(tier, what, *without)
    else:
        result = run_commands(tier, what)
    if no_nodes and tier in ("component", "e2e"):
        result.skips.append(f"what needs a cluster with nodes: {no_nodes}")
    result.seconds = time.monotonic() - begin
    return result


def summary(results: list[Result]) -> str:
    """A table of the tiers, then every skip with its reason."""
    lines = [f"{'tier':<12}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    lines += [f"{r.tier:<12}{r.passed:>8}{r.failed:>8}{len(r.skips):>9}{r.seconds:>9.0f}" for r in results]
    lines += [f"skipped in {r.tier}: {reason}" for r in results for reason in r.skips]
    return "\n".join(lines)


def main() -> int:
    """0 if nothing failed and, with ``--e2e required``, nothing was skipped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--e2e", choices=("auto", "required", "off"), default="auto")
    parser.add_argument("tiers", nargs="*", help=f"of {', '.join(TIERS)}; default all")
    args = parser.parse_args()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    # The end-to-end tests look into the nodes from the host, which only the bundled cluster allows.
    os.environ["HEADWATER_CLUSTER_PROVIDER"] = "bundled"
    no_nodes = "switched off by E2E=off" if args.e2e == "off" else why_no_nodes()
    tiers = args.tiers or list(TIERS)
    if NEED_BUILDS.intersection(tiers):
        # Here and not in a fixture of whichever test comes first: from nothing it takes ten minutes.
        subprocess.run([sys.executable, "-m", "e2e.cluster", "build"], cwd=ROOT, check=True)
    results = [run_tier(tier, no_nodes) for tier in tiers]
    passed, failed = sum(r.passed for r in results), sum(r.failed for r in results)
    skipped = sum(len(r.skips) for r in results)
    print(f"\n{summary(results)}\n\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or (args.e2e == "required" and skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
