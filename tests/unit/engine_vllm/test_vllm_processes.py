"""The process tree, on real processes: found, watched, killed, reaped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from multiprocessing.shared_memory import SharedMemory

import pytest

from headwater_engine.backends.vllm import reaper
from headwater_engine.backends.vllm.processes import Member, ProcessTree, rank_states

PATIENCE = 60.0

# A core with two workers, each told apart by its order; the core prints when both run.
CORE = """
import subprocess, sys
workers = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(2)]
print(*(worker.pid for worker in workers), flush=True)
sys.stdin.read()
"""


SLEEPER = "input()"
SEGMENT = """
from multiprocessing.shared_memory import SharedMemory
made = SharedMemory(create=True, size=64)
print(made.name, flush=True)
input()
"""


def python(code: str) -> subprocess.Popen[str]:
    """A child; leaving its context closes its input and waits for it."""
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
async def tree() -> AsyncIterator[ProcessTree]:
    made = ProcessTree()
    yield made
    await made.end()


@pytest.fixture
def core(tree: ProcessTree) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    with subprocess.Popen(
        [sys.executable, "-c", CORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as made:
        assert made.stdout is not None
        workers = [int(pid) for pid in made.stdout.readline().split()]
        yield made, workers
        made.kill()
        for pid in workers:
            if reaper.start_ticks(pid) is not None:
                os.kill(pid, signal.SIGKILL)


Core = tuple[subprocess.Popen[str], list[int]]


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while reaper.start_ticks(pid) is not None:  # noqa: ASYNC110 - not a child of ours
            await asyncio.sleep(0.01)


async def test_workers_are_ranks_in_the_order_of_their_start(tree: ProcessTree, core: Core) -> None:
    tree.settle()

    got = [(state.rank, state.pid, state.alive) for state in rank_states(tree.ranks(), {core[1][1]})]

    assert got == [(0, core[1][0], True), (1, core[1][1], False)]


async def test_a_core_without_workers_is_the_only_rank(tree: ProcessTree) -> None:
    with python(SLEEPER) as alone:
        tree.settle()

        assert [member.pid for member in tree.ranks()] == [alone.pid]


async def test_processes_from_before_are_not_part_of_the_tree() -> None:
    with python(SLEEPER) as other:
        tree = ProcessTree()
        tree.open()
        await tree.end()

        assert other.poll() is None


async def test_helpers_of_the_load_that_have_ended_are_forgotten(tree: ProcessTree) -> None:
    with python(SLEEPER) as helper:
        tree.scan()
        helper.communicate("\n")
    exits: list[Member] = []

    tree.settle()
    tree.watch(exits.append)
    await asyncio.sleep(0)

    assert tree.ranks() == ()
    assert exits == []


async def test_the_death_of_any_process_is_told_once(tree: ProcessTree, core: Core) -> None:
    tree.settle()
    exits: asyncio.Queue[Member] = asyncio.Queue()
    tree.watch(exits.put_nowait)

    os.kill(core[1][1], signal.SIGKILL)

    async with asyncio.timeout(PATIENCE):
        assert (await exits.get()).pid == core[1][1]
    assert exits.empty()


async def test_the_end_kills_every_process_even_one_that_is_stopped(tree: ProcessTree, core: Core) -> None:
    tree.scan()
    os.kill(core[1][0], signal.SIGSTOP)

    await tree.end()

    assert [reaper.start_ticks(pid) for pid in (core[0].pid, *core[1])] == [None, None, None]


async def test_the_end_removes_shared_memory_that_a_killed_process_left(tree: ProcessTree) -> None:
    with python(SEGMENT) as made:
        assert made.stdout is not None
        name = made.stdout.readline().strip()
        tree.scan()
        # Its tracker would remove it too, a little later.
        kept = SharedMemory(name)

        await tree.end()

        with pytest.raises(FileNotFoundError):
            SharedMemory(name)
        kept.close()


SERVER = """
import os, signal, subprocess, sys
from headwater_engine.backends.vllm.processes import ProcessTree
tree = ProcessTree()
tree.open()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
tree.scan()
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_the_reaper_kills_the_tree_when_the_server_is_killed() -> None:
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    child = int(await server.stdout.readline())
    await server.wait()

    await until_gone(child)


def test_the_reaper_leaves_alone_what_the_server_ended_itself(core: Core) -> None:
    ticks = reaper.start_ticks(core[1][0])

    reaper.reap([f"process {core[1][0]} {ticks}\n", "done\n"])

    assert reaper.start_ticks(core[1][0]) == ticks


def test_the_reaper_spares_a_process_that_got_the_pid_later(core: Core) -> None:
    ticks = reaper.start_ticks(core[1][0])
    assert ticks is not None

    reaper.reap([f"process {core[1][0]} {ticks - 1}\n"])

    assert reaper.start_ticks(core[1][0]) == ticks
