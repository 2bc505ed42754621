"""The operator is killed at every single write in turn, before and after it took effect."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.operator_sim import SimCrashError, Simulation, pool_object
from support.operator_sim_checks import RuleChecker, assert_settled

Story = Callable[[Simulation], None]


def up(sim: Simulation) -> None:
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))


def kill_and_refill(sim: Simulation) -> None:
    up(sim)
    sim.world.kill(f"{sim.groups('active')[0]}-0")
    sim.until(lambda: not sim.is_true("WarmPoolReady"))
    up(sim)


def scale_down_and_change(sim: Simulation) -> None:
    up(sim)
    sim.change_spec(replicas=1, engine={"backend": "sim", "tensorParallelSize": 8, "maxModelLen": 4096})
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("RolledOut") and sim.is_true("WarmPoolReady"))
    sim.until(lambda: not sim.groups("draining"))


class CrashAt:
    """Kills the operator around its n-th write."""

    def __init__(self, sim: Simulation, number: int | None, *, after: bool) -> None:
        self.count, self.number = 0, number
        if after:
            sim.api.after_write = self
        else:
            sim.api.before_write = self

    def __call__(self, verb: str, kind: str, name: str) -> None:
        self.count += 1
        if self.count == self.number:
            raise SimCrashError


def play(story: Story, number: int | None, *, after: bool) -> tuple[Simulation, RuleChecker, int]:
    checker = RuleChecker()
    sim = Simulation(pool_object(replicas=2, warmPool={"size": 1}), checks=[checker])
    sim.world.load_seconds = 3.0
    crash = CrashAt(sim, number, after=after)
    story(sim)
    sim.run(20)
    return sim, checker, crash.count


@pytest.mark.parametrize("story", [kill_and_refill, scale_down_and_change])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_write_leaves_no_orphan_and_no_double_group(story: Story, after: bool) -> None:
    _, whole, writes = play(story, None, after=after)
    assert writes > 30
    for number in range(1, writes + 1):
        sim, checker, _ = play(story, number, after=after)
        assert sim.crashes == 1, number
        assert_settled(sim)
        assert checker.group_creations == whole.group_creations, f"crash at write {number}"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_write_loses_no_failure_from_the_count_of_crashes(after: bool) -> None:
    _, _, writes = play(kill_and_refill, None, after=after)
    for number in range(1, writes + 1):
        sim, _, _ = play(kill_and_refill, number, after=after)
        got = [(item["reason"], item["group"] in sim.groups("quarantined")) for item in sim.status()["failures"]]
        assert got == [("EngineExited", True)], f"crash at write {number}"
