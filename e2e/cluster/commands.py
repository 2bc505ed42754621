"""Running the system's own programs."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import IO

from e2e.cluster.errors import ClusterError


def search_path() -> str:
    """PATH with the administrator's folders, which an ordinary user's lacks."""
    return os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin") + ":/usr/sbin:/sbin"


def find(program: str) -> str | None:
    """Path of a program, or None."""
    return shutil.which(program, path=search_path())


def docker_answers() -> bool:
    """Whether there is a Docker engine, not only its client."""
    return bool(find("docker") and run("docker", "info", "--format", "{{.ID}}", check=False).strip())


def run(*argv: object, check: bool = True, cwd: Path | None = None, stdin: IO[bytes] | None = None) -> str:
    """The program's standard output; a failure is a ClusterError with what it printed, unless `check` is off."""
    command = [str(a) for a in argv]
    program = find(command[0])
    if program is None:
        raise ClusterError(f"cannot find the program {command[0]}")
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False, cwd=cwd, stdin=stdin)
    if check and done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout
