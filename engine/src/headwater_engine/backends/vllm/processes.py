"""The processes that vLLM starts under this one: found, watched, ended, and nothing of them left behind.

vLLM's engine core does not notice when the server dies, and its own shutdown gives up on a process that hangs.
So the tree is read from /proc, each process is watched by a pidfd (its death is seen at once, where vLLM
takes up to 13 s for one of several workers), and ``end`` kills what is left. The reaper covers the server's
own death.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

from headwater_contracts.admin import RankState
from headwater_engine.backends.vllm import reaper
from headwater_engine.backends.vllm.reaper import start_ticks

SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - where POSIX shared memory lies
KILL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the tree. A pid alone can be somebody else's later."""

    pid: int
    start_ticks: int
    parent: int

    @property
    def alive(self) -> bool:
        """It runs still; a zombie does not."""
        return start_ticks(self.pid) == self.start_ticks


class ProcessTree:
    """Everything that descends from this process and was not there when the tree was made."""

    def __init__(self) -> None:
        self._others = {member.pid for member in descendants(os.getpid())}
        self._members: dict[int, Member] = {}
        self._segments: set[str] = set()
        self._watched: dict[int, int] = {}
        self._reaper: subprocess.Popen[str] | None = None

    def open(self) -> None:
        """Starts the reaper."""
        self._reaper = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-I", "-S", reaper.__file__],
            stdin=subprocess.PIPE,
            text=True,
            # A terminal's Ctrl-C reaches the whole session; the reaper has to outlive the server.
            start_new_session=True,
        )
        self._others.add(self._reaper.pid)

    def scan(self) -> None:
        """Takes in what was started since the last scan; a few milliseconds, so call it in a thread."""
        for member in descendants(os.getpid()):
            if member.pid not in self._others and member.pid not in self._members and not _is_tracker(member.pid):
                self._members[member.pid] = member
                self._tell(f"process {member.pid} {member.start_ticks}")
        for member in list(self._members.values()):
            for name in mapped_segments(member.pid) - self._segments:
                self._segments.add(name)
                self._tell(f"segment {name}")

    def settle(self) -> None:
        """Scans, and forgets the helpers of the load that have ended: what is left is to live on."""
        self.scan()
        self._members = {pid: member for pid, member in self._members.items() if member.alive}

    def ranks(self) -> tuple[Member, ...]:
        """The workers in rank order, or the engine core where it is its own worker."""
        members = sorted(self._members.values(), key=lambda member: (member.start_ticks, member.pid))
        cores = [member for member in members if member.parent == os.getpid()]
        workers = [member for member in members if member.parent in {core.pid for core in cores}]
        return tuple(workers or cores)

    def watch(self, on_exit: Callable[[Member], None]) -> None:
        """Calls back in the running loop, once for each process that ends from now on."""
        loop = asyncio.get_running_loop()
        for member in self._members.values():
            try:
                descriptor = os.pidfd_open(member.pid)
            except ProcessLookupError:
                loop.call_soon(on_exit, member)
                continue
            self._watched[member.pid] = descriptor
            loop.add_reader(descriptor, self._exited, member, on_exit)

    def _exited(self, member: Member, on_exit: Callable[[Member], None]) -> None:
        self._unwatch(member.pid)
        on_exit(member)

    def _unwatch(self, pid: int) -> None:
        descriptor = self._watched.pop(pid)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)

    async def end(self) -> None:
        """Kills what still runs, removes its shared memory and dismisses the reaper. Safe to call twice."""
        for pid in list(self._watched):
            self._unwatch(pid)
        await asyncio.to_thread(self.kill)
        await asyncio.to_thread(self._clean)

    def kill(self) -> None:
        """SIGKILLs the whole tree and waits for it to be gone, for KILL_SECONDS at most."""
        self.scan()
        for member in self._members.values():
            if member.alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
        for member in self._members.values():
            _await_exit(member)

    def _clean(self) -> None:
        for name in self._segments:
            _remove_segment(name)
        if self._reaper is None:
            return
        self._tell("done")
        with contextlib.suppress(OSError):
            if self._reaper.stdin is not None:
                self._reaper.stdin.close()
        self._reaper.wait(KILL_SECONDS)
        self._reaper = None

    def _tell(self, line: str) -> None:
        if self._reaper is None or self._reaper.stdin is None:
            return
        # A reaper that somebody killed is no reason to fail.
        with contextlib.suppress(OSError):
            self._reaper.stdin.write(line + "\n")
            self._reaper.stdin.flush()


def rank_states(ranks: tuple[Member, ...], dead: set[int]) -> tuple[RankState, ...]:
    """The ranks as the admin state shows them; ``dead`` are the pids that have ended."""
    return tuple(RankState(rank, member.pid not in dead, member.pid) for rank, member in enumerate(ranks))


def descendants(root: int) -> Iterator[Member]:
    """All processes beneath one, parents first."""
    children: dict[int, list[Member]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (member := _member(entry)) is not None:
            children.setdefault(member.parent, []).append(member)
    parents = [root]
    while parents:
        for member in children.get(parents.pop(), ()):
            yield member
            parents.append(member.pid)


def _member(entry: Path) -> Member | None:
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else Member(int(entry.name), int(fields[19]), int(fields[1]))


def _is_tracker(pid: int) -> bool:
    """multiprocessing's resource tracker: it ends by itself and cleans up for those that were killed."""
    try:
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def mapped_segments(pid: int) -> set[str]:
    """Names of the POSIX shared memory that a process has mapped and nobody has removed."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return set()
    paths = (line.partition(SHARED_MEMORY)[2] for line in maps.splitlines() if SHARED_MEMORY in line)
    return {path for path in paths if "/" not in path and not path.endswith(" (deleted)")}


def _remove_segment(name: str) -> None:
    # What multiprocessing made goes through it, for its tracker would else report that it cannot find it. The
    # tracker chokes on other names, for vLLM's own hold colons.
    if name.startswith("psm_"):
        with contextlib.suppress(OSError, ValueError):
            segment = SharedMemory(name)
            segment.close()
            segment.unlink()
    with contextlib.suppress(OSError):
        Path(SHARED_MEMORY, name).unlink()


def _await_exit(member: Member) -> None:
    try:
        descriptor = os.pidfd_open(member.pid)
    except ProcessLookupError:
        return
    try:
        if member.alive:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(KILL_SECONDS * 1000)
    finally:
        os.close(descriptor)
