"""Everything that can go wrong, at random and reproducibly; rules hold at each step, and peace brings order."""

from __future__ import annotations

import random

import pytest

from support.operator_sim import Simulation, pool_object
from support.operator_sim_checks import RuleChecker, assert_settled
from support.operator_sim_faults import Mischief

STEPS = 240


def settled(sim: Simulation) -> bool:
    try:
        assert_settled(sim)
    except AssertionError:
        return False
    return sim.is_true("Ready")


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_pool_keeps_the_rules_through_random_faults_and_converges_after_them(seed: int) -> None:
    sim = Simulation(pool_object(replicas=2, warmPool={"size": 1}), seed=seed, checks=[RuleChecker()])
    mischief = Mischief(sim, random.Random(seed))
    faults = 0
    for _ in range(STEPS):
        faults += mischief.step() is not None
        sim.run(0.5)
    assert faults > 20
    mischief.stop()
    # The hold after so many crashes is right, and is tested elsewhere.
    sim.change_spec(failure={"maxReplacements": 30, "window": "1s"})
    sim.until(lambda: settled(sim), within=900)


def test_the_same_seed_gives_the_same_story() -> None:
    stories = []
    for _ in range(2):
        sim = Simulation(pool_object(replicas=2), seed=3)
        mischief = Mischief(sim, random.Random(3))
        for _ in range(100):
            mischief.step()
            sim.run(0.5)
        stories.append([(write.at, write.verb, write.kind, write.name) for write in sim.api.history])
    assert stories[0] == stories[1]
