"""Processes that outlive the command which started them.

Each is known by pid and start time, so that a reused pid is never signalled, and carries the state directory
in its environment, so that one whose record was never written is found all the same.
"""

import json
import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.cluster.commands import find, search_path
from e2e.cluster.errors import ClusterError
from e2e.cluster.state import REPO, State, write
from e2e.cluster.waiting import wait_for

MARKER = "HEADWATER_CLUSTER_STATE"


@dataclass(frozen=True)
class Record:
    """One started process, as kept in STATE/run."""

    pid: int
    start: str
    argv: list[str]


def started(pid: int) -> str | None:
    """The kernel's start time of a live process; None for one that ended or is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if stat[0] == "Z" else stat[19]


def spawn(state: State, name: str, argv: Sequence[object], tied_to_caller: bool = False) -> int:
    """Start a process in its own session, logging to STATE/logs/NAME.log; `tied_to_caller` ends it with ours."""
    command = [str(a) for a in argv]
    if tied_to_caller:
        command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    program = find(command[0])
    if program is None:
        raise ClusterError(f"cannot find the program {command[0]}")
    state.logs.mkdir(parents=True, exist_ok=True)
    log = os.open(state.logs / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = os.posix_spawn(
            program,
            command,
            {**os.environ, "PATH": search_path(), MARKER: str(state.dir), "PYTHONPATH": str(REPO)},
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
            setsid=True,
        )
    finally:
        os.close(log)
        os.close(null)
    record = Record(pid, started(pid) or "", command)
    write(state.dir / "run" / name, asdict(record))
    return pid


def records(state: State) -> dict[str, Record]:
    """Name → record of all that was started and not stopped since, dead ones among them."""
    found = {}
    for file in sorted((state.dir / "run").glob("*")):
        with suppress(ValueError):  # a crash can leave an empty file
            found[file.name] = Record(**json.loads(file.read_text()))
    return found


def running(state: State) -> dict[str, int]:
    """Name → pid of those that live."""
    return {name: r.pid for name, r in records(state).items() if r.start and started(r.pid) == r.start}


def stop(state: State, names: Iterable[str]) -> None:
    """Kill outright: no data is to be saved, and an API server asked politely waits for dead nodes."""
    wanted = set(names)
    for name, pid in running(state).items():
        if name in wanted:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _reap(pid)
    wait_for(f"end of {', '.join(sorted(wanted))}", lambda: not running(state).keys() & wanted, 30)
    for name in wanted:
        (state.dir / "run" / name).unlink(missing_ok=True)


def marked(state: State) -> list[int]:
    """Every live process that carries this cluster's marker, whoever recorded it."""
    want = f"{MARKER}={state.dir}".encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile, or another user's
            if want in (directory / "environ").read_bytes().split(b"\0"):
                found.append(int(directory.name))
    return [pid for pid in found if pid != os.getpid() and started(pid)]


def sweep(state: State) -> None:
    """Kill all that carries the marker, until nothing does."""

    def swept() -> bool:
        left = marked(state)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _reap(pid)
        return not left

    wait_for("end of the cluster's processes", swept, 60)


def _reap(pid: int) -> None:
    """Collect the process if it is a child of ours (a caller that lives on would keep a zombie)."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
