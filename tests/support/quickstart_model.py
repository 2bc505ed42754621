"""The small real model that tests serve, made once and kept in Headwater's cache."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

MAKE = Path(__file__).parents[2] / "images" / "quickstart-model" / "make.py"


def quickstart_model_dir() -> Path:
    """Directory of SmolLM2-135M-Instruct; made if it is missing or was made by another recipe (about 30 s)."""
    models = Path(os.environ.get("HEADWATER_CACHE", "~/.cache/headwater")).expanduser() / "models"
    models.mkdir(parents=True, exist_ok=True)
    out = models / "smollm2"
    # Two test runs at once must not make it twice, nor one replace it under the other.
    with (models / ".smollm2.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            [sys.executable, str(MAKE), str(out)], capture_output=True, text=True, timeout=280, check=False
        )
    if made.returncode != 0:
        raise RuntimeError(f"the quickstart model could not be made:\n{made.stdout}\n{made.stderr}")
    return out
