"""What happens before the engine's own code is loaded."""

from __future__ import annotations

import subprocess
import sys

# Runs the engine as a container does, and has the signal come while its imports go on.
TOLD_TO_END_DURING_IMPORTS = """
import importlib.abc, os, runpy, signal, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "headwater_engine.main":
            os.kill(os.getpid(), signal.SIGTERM)
            raise SystemExit("the signal did not end the process")

sys.meta_path.insert(0, Finder())
runpy.run_module("headwater_engine", run_name="__main__", alter_sys=True)
"""


def test_sigterm_during_the_imports_exits_zero() -> None:
    # Without a handler the code is -15 here, and as the first process of a container nothing would happen at all.
    done = subprocess.run(
        [sys.executable, "-c", TOLD_TO_END_DURING_IMPORTS], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
