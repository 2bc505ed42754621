"""Named scenarios over the operator's real reconcile, each with the whole story beside it as a golden file."""

from __future__ import annotations

from typing import Any

import pytest

from support.operator_sim import Simulation, pool_object
from support.operator_sim_checks import RuleChecker, assert_settled
from support.operator_transcript import assert_golden

TWO_AND_ONE = {"replicas": 2, "warmPool": {"size": 1}}


def simulation(**spec: Any) -> Simulation:
    return Simulation(pool_object(**spec), checks=[RuleChecker()])


def serving(**spec: Any) -> Simulation:
    """A pool that has come up."""
    sim = simulation(**spec)
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    return sim


def leader(group: str) -> str:
    return f"{group}-0"


def engine_spec(**fields: Any) -> dict[str, Any]:
    return {"backend": "sim", "tensorParallelSize": 8, **fields}


def test_a_cold_start_ends_with_two_active_groups_and_one_warm() -> None:
    sim = serving(**TWO_AND_ONE)
    sim.run(30)
    assert_settled(sim)
    assert sim.status()["summary"] == {"active": "2/2", "warm": "1/1", "kv": "0%", "ttft": "-"}
    assert_golden(sim, "cold-start")


def test_a_killed_active_group_is_replaced_by_the_warm_one_within_one_probe() -> None:
    sim = serving(**TWO_AND_ONE)
    victim, warm = sim.groups("active")[0], sim.groups("standby")[0]
    sim.world.kill(leader(victim))
    took = sim.until(lambda: warm in sim.groups("active"))
    assert took <= 2.0
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    assert_settled(sim)
    told = [message for _, reason, message in sim.log.events if reason == "Replaced"]
    assert told == [f"group {victim}: engine exited (code 137, SIGKILL); promoted {warm}"]
    assert_golden(sim, "kill-active")


def test_an_engine_that_hangs_is_replaced_by_an_operator_that_started_after_it_fell_silent() -> None:
    sim = serving(**TWO_AND_ONE)
    victim = sim.groups("active")[0]
    sim.world.hang(leader(victim))
    sim.restart()
    took = sim.until(lambda: victim not in sim.groups("active"))
    assert 15 <= took <= 20, "health.interval times failureThreshold, from the first probe"
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    assert_settled(sim)


def test_scaling_from_three_to_one_lets_running_streams_finish() -> None:
    sim = serving(replicas=3)
    busiest, *others = sim.groups("active")
    for number, group in enumerate(others):
        sim.world.engines[leader(group)].streams.append(sim.api.now + 20 + 10 * number)
    sim.world.engines[leader(busiest)].streams.extend([sim.api.now + 90] * 3)
    sim.run(4)
    sim.change_spec(replicas=1)
    sim.until(lambda: len(sim.groups()) == 1)
    assert sim.groups("active") == [busiest], "the groups with the fewest streams go"
    sim.run(100)
    assert_settled(sim)
    assert_golden(sim, "scale-down")


def test_streams_that_outlive_the_drain_timeout_end_with_their_group() -> None:
    sim = serving(replicas=2)
    for group in sim.groups("active"):
        sim.world.engines[leader(group)].streams.append(sim.api.now + 10_000)
    sim.run(4)
    sim.change_spec(replicas=1)
    took = sim.until(lambda: len(sim.groups()) == 1)
    assert 65 <= took <= 75, "drain.endpointSettle, then drain.timeout"


def test_a_scale_down_that_is_taken_back_returns_the_draining_group_to_service() -> None:
    sim = serving(replicas=2)
    groups = sim.groups("active")
    for group in groups:
        sim.world.engines[leader(group)].streams.append(sim.api.now + 50)
    sim.run(4)
    sim.change_spec(replicas=1)
    sim.until(lambda: len(sim.groups("draining")) == 1)
    sim.run(4)
    sim.change_spec(replicas=2)
    sim.until(lambda: sim.is_true("Ready"))
    assert sim.groups("active") == groups, "nothing was loaded anew"
    assert_settled(sim)


def test_a_group_deleted_by_hand_is_replaced() -> None:
    sim = serving(**TWO_AND_ONE)
    sim.by_hand = sim.groups("active")[0]
    sim.api.delete("ReplicaGroup", sim.by_hand)
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    sim.run(10)
    assert_settled(sim)
    assert_golden(sim, "delete-group")


def test_a_pod_deleted_by_hand_costs_its_group_which_is_replaced_as_a_whole() -> None:
    sim = serving(**TWO_AND_ONE)
    victim = sim.groups("active")[0]
    sim.world.engines[leader(victim)].streams.append(sim.api.now + 30)
    sim.api.delete("Pod", leader(victim))
    sim.until(lambda: len(sim.groups("active")) == 2 and victim not in sim.groups("active"))
    sim.run(10)
    assert ("Pod", leader(victim)) in sim.api.objects, "its stream is still allowed to finish"
    sim.until(lambda: victim not in sim.groups())
    sim.run(20)
    assert_settled(sim)


def test_without_a_warm_pool_groups_start_as_standbys_and_are_promoted() -> None:
    sim = serving(replicas=1)
    sim.world.kill(leader(sim.groups("active")[0]))
    sim.until(lambda: not sim.is_true("Ready"))
    sim.until(lambda: sim.is_true("Ready"))
    sim.run(10)
    assert_settled(sim)
    assert_golden(sim, "no-warm-pool")


def test_a_missing_image_stalls_the_pool_without_making_group_after_group() -> None:
    checker = RuleChecker()
    sim = Simulation(pool_object(**TWO_AND_ONE), checks=[checker])
    sim.world.missing_images.add("engine-sim:1")
    sim.until(lambda: sim.is_true("Stalled"))
    writes = len(sim.api.history)
    sim.run(600)
    assert checker.group_creations == 3
    assert len(sim.api.history) == writes, "at rest nothing is written"
    assert "spec.engine.image" in sim.condition("Stalled")["message"]
    assert_golden(sim, "missing-image")
    sim.world.missing_images.clear()
    sim.until(lambda: sim.is_true("Ready"))
    assert not sim.is_true("Stalled")


def test_a_pool_whose_engines_crash_at_once_backs_off_and_recovers_by_itself() -> None:
    checker = RuleChecker()
    sim = Simulation(pool_object(**TWO_AND_ONE), checks=[checker])
    sim.run(0.5)
    revision = sim.status()["updateRevision"]
    sim.world.crash_revisions[revision] = 1
    sim.until(lambda: sim.condition("Ready").get("reason") == "CrashLoopHold")
    assert not sim.is_true("Stalled"), "it tries again by itself"
    made = checker.group_creations
    sim.run(1200)
    assert checker.group_creations - made <= 6, "one at a time, ever more slowly"
    assert_golden(sim, "crash-loop")
    sim.world.crash_revisions.clear()
    sim.until(lambda: sim.is_true("Ready"), within=4000)


def test_a_mended_spec_leaves_a_crash_loop_at_once() -> None:
    sim = simulation(**TWO_AND_ONE)
    sim.run(0.5)
    sim.world.crash_revisions[sim.status()["updateRevision"]] = 1
    sim.until(lambda: sim.condition("Ready").get("reason") == "CrashLoopHold")
    sim.change_spec(engine=engine_spec(maxModelLen=4096))
    assert sim.until(lambda: sim.is_true("Ready")) < 60


def test_a_changed_spec_rolls_through_all_groups_and_never_serves_with_fewer() -> None:
    sim = serving(**TWO_AND_ONE)
    old = set(sim.groups())
    served: list[int] = []
    sim.checks.append(lambda sim: served.append(len(sim.world.served_pods())))
    sim.change_spec(engine=engine_spec(maxModelLen=4096))
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("RolledOut"))
    sim.until(lambda: not sim.groups("draining"))
    assert not old & set(sim.groups())
    assert min(served) >= 2
    sim.run(10)
    assert_settled(sim)
    status = sim.status()
    assert status["currentRevision"] == status["updateRevision"]
    assert_golden(sim, "rollout")


def test_a_change_midway_and_one_back_restart_no_finished_step() -> None:
    sim = serving(replicas=2)
    original = sim.groups()
    sim.change_spec(engine=engine_spec(maxModelLen=4096))
    sim.until(lambda: len(set(sim.groups("active")) - set(original)) == 1)
    kept = set(sim.groups("active")) & set(original)
    sim.change_spec(engine=engine_spec())
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("RolledOut"))
    assert kept <= set(sim.groups("active")), "a group of the wanted revision stays"
    sim.run(100)
    assert_settled(sim)


def test_a_new_revision_that_crashes_costs_no_group_of_the_old_one() -> None:
    sim = serving(**TWO_AND_ONE)
    old = set(sim.groups())
    sim.change_spec(engine=engine_spec(maxModelLen=4096))
    sim.run(0.5)
    sim.world.crash_revisions[sim.status()["updateRevision"]] = 1
    sim.run(900)
    assert old <= set(sim.groups("active") + sim.groups("standby"))
    assert len(sim.world.served_pods()) == 2
    assert sim.condition("RolledOut")["reason"] == "CrashLoopHold"
    assert not sim.is_true("Ready")


def test_a_rollout_without_spare_accelerators_uses_the_room_of_an_old_standby() -> None:
    sim = Simulation(pool_object(**TWO_AND_ONE), nodes={"node-1": 24}, checks=[RuleChecker()])
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    served: list[int] = []
    sim.checks.append(lambda sim: served.append(len(sim.world.served_pods())))
    sim.change_spec(engine=engine_spec(maxModelLen=4096))
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("RolledOut"))
    assert min(served) >= 2
    sim.run(60)
    assert_settled(sim)
    assert_golden(sim, "rollout-full-nodes")


def test_a_rollout_without_surge_or_standby_takes_down_what_max_unavailable_allows() -> None:
    sim = serving(replicas=2, rollout={"maxSurge": 0, "maxUnavailable": 1})
    served: list[int] = []
    sim.checks.append(lambda sim: served.append(len(sim.world.served_pods())))
    sim.change_spec(engine=engine_spec(maxModelLen=4096))
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("RolledOut"))
    assert min(served) == 1
    sim.run(30)
    assert_settled(sim)


def test_a_paused_rollout_changes_nothing_until_it_goes_on() -> None:
    sim = serving(replicas=2)
    groups = sim.groups()
    sim.change_spec(engine=engine_spec(maxModelLen=4096), rollout={"paused": True})
    sim.run(120)
    assert sim.groups() == groups
    assert "paused" in sim.condition("RolledOut")["message"]
    sim.change_spec(rollout={"paused": False})
    sim.until(lambda: sim.is_true("RolledOut"))


def test_pods_that_fit_on_no_node_are_told_of_and_hold_up_no_promotion() -> None:
    sim = Simulation(pool_object(**TWO_AND_ONE), nodes={"node-1": 16}, checks=[RuleChecker()])
    sim.until(lambda: sim.is_true("Ready"))
    assert sim.condition("CapacityAvailable")["status"] == "False"
    assert "Insufficient nvidia.com/gpu" in sim.condition("CapacityAvailable")["message"]
    waiting = sim.groups("standby")[0]
    sim.world.kill(leader(sim.groups("active")[0]))
    sim.until(lambda: waiting in sim.groups("active"))
    sim.until(lambda: sim.is_true("Ready"))
    assert_golden(sim, "capacity-short")


def test_a_lost_node_takes_its_groups_with_it_and_counts_as_no_crash() -> None:
    sim = Simulation(pool_object(**TWO_AND_ONE), nodes={"a": 8, "b": 8, "c": 8, "d": 24}, checks=[RuleChecker()])
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    sim.world.stop_node("a")
    sim.run(30)
    assert len(sim.groups("active")) == 2, "silence alone is unknown while the kubelet calls the pod ready"
    sim.run(30)
    assert len(sim.world.served_pods()) == 2
    assert not sim.status().get("failures")
    sim.run(60)
    assert_golden(sim, "node-lost")


def test_suspending_drains_everything_and_resuming_brings_it_back() -> None:
    sim = serving(**TWO_AND_ONE)
    sim.change_spec(suspend=True)
    sim.until(lambda: sim.is_true("Ready") and not sim.groups())
    sim.change_spec(suspend=False)
    sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    assert_settled(sim)


def test_a_refused_change_keeps_the_old_groups_served_and_replaced() -> None:
    sim = serving(**TWO_AND_ONE)
    sim.change_spec(engine=engine_spec(image="evil.example/miner:1"))
    sim.until(lambda: sim.is_true("Stalled"))
    sim.world.kill(leader(sim.groups("active")[0]))
    sim.run(60)
    assert len(sim.world.served_pods()) == 2
    assert len(sim.groups("standby")) == 1
    images = {pod["spec"]["containers"][0]["image"] for pod in sim.api.of_kind("Pod")}
    assert images == {"engine-sim:1"}
    sim.change_spec(engine=engine_spec())
    sim.until(lambda: sim.is_true("Ready"))


def test_one_failed_group_is_kept_for_inspection_and_goes_in_time() -> None:
    sim = serving(**TWO_AND_ONE, failure={"retainFailed": "2m"})
    for _ in range(2):
        failed = sim.groups("active")[0]
        sim.world.kill(leader(failed))
        sim.until(lambda: not sim.is_true("Ready"))
        sim.until(lambda: sim.is_true("Ready") and sim.is_true("WarmPoolReady"))
    assert sim.groups("quarantined") == [failed]
    assert ("Pod", leader(failed)) in sim.api.objects
    sim.run(130)
    assert sim.groups("quarantined") == []


def test_a_pool_at_rest_is_written_to_by_nobody() -> None:
    sim = serving(**TWO_AND_ONE)
    sim.run(60)
    writes = len(sim.api.history)
    sim.run(1800)
    assert len(sim.api.history) == writes


def test_an_operator_restart_at_rest_writes_nothing() -> None:
    sim = serving(**TWO_AND_ONE)
    sim.run(60)
    writes = len(sim.api.history)
    sim.restart()
    sim.run(120)
    assert len(sim.api.history) == writes


@pytest.mark.parametrize("kept", [{"suspend": False}, {"replicas": 0}])
def test_nothing_is_done_to_a_pool_that_is_being_deleted(kept: dict[str, Any]) -> None:
    sim = serving(**{**TWO_AND_ONE, **kept} if "replicas" not in kept else {"warmPool": {"size": 1}, **kept})
    sim.api.modify("InferencePool", "pool", lambda pool: pool["metadata"].update(deletionTimestamp="now"))
    groups = sim.groups()
    for pod in list(sim.world.engines):
        sim.world.kill(pod)
    sim.run(60)
    assert sim.groups() == groups
