"""What happens to the operator's process before kopf minds its signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs the operator as a container does, and has the signal come while its imports go on, or right after them.
TOLD_TO_END = """
import importlib.abc, os, runpy, signal, sys

def told():
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit("the signal did not end the process")

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "headwater_operator.main":
            told()

if sys.argv[1] == "during":
    sys.meta_path.insert(0, Finder())
else:
    import headwater_operator.main
    headwater_operator.main.main = told
sys.argv[1:] = []
runpy.run_module("headwater_operator", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("when", ["during", "after"])
def test_sigterm_before_kopf_minds_signals_exits_zero(when: str) -> None:
    # Without a handler the code is -15 here, and as the first process of a container nothing would happen at all.
    done = subprocess.run(
        [sys.executable, "-c", TOLD_TO_END, when], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
