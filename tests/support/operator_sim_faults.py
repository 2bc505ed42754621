"""Seeded mischief on a simulation: everything that may happen to a pool, at random times."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headwater_operator import errors
from support.operator_sim import SimCrashError, Simulation


@dataclass
class Mischief:
    """Does something bad now and then. The same seed does the same."""

    sim: Simulation
    random: random.Random
    crash_share: float = 0.02
    """Share of writes around which the operator's process dies, or the answer is lost."""

    def __post_init__(self) -> None:
        self.sim.faulty = True
        self.sim.api.before_write = self._before
        self.sim.api.after_write = self._after

    def stop(self) -> None:
        """Peace: no more faults; nodes come back."""
        self.sim.api.before_write = lambda verb, kind, name: None
        self.sim.api.after_write = lambda verb, kind, name: None
        self.sim.world.crash_revisions.clear()
        for node in self.sim.world.nodes:
            self.sim.world.start_node(node)

    def _before(self, verb: str, kind: str, name: str) -> None:
        if self.random.random() < self.crash_share / 2:
            raise SimCrashError
        if self.random.random() < self.crash_share:
            raise errors.Failed("the API server is busy")

    def _after(self, verb: str, kind: str, name: str) -> None:
        chance = self.random.random()
        if chance < self.crash_share / 2:
            raise SimCrashError
        if chance < self.crash_share:
            raise errors.OutcomeUnknown("the answer was lost")

    def step(self) -> str | None:
        """At most one piece of mischief; its name if there was one."""
        choices = (
            self.kill_engine,
            self.fail_engine,
            self.delete_pod,
            self.delete_group,
            self.change_counts,
            self.change_template,
            self.send_streams,
            self.send_streams,
            self.stop_or_start_node,
            self.restart_operator,
        )
        if self.random.random() > 0.15:
            return None
        chosen = self.random.choice(choices)
        chosen()
        return chosen.__name__

    def _engine(self) -> str | None:
        pods = sorted(self.sim.world.engines)
        return self.random.choice(pods) if pods else None

    def kill_engine(self) -> None:
        pod = self._engine()
        if pod is not None:
            self.sim.world.kill(pod, self.random.choice((1, 137, 139)))

    def fail_engine(self) -> None:
        pod = self._engine()
        if pod is not None:
            self.sim.world.fail(pod)

    def delete_pod(self) -> None:
        pod = self._engine()
        if pod is not None:
            self._by_hand("Pod", pod)

    def delete_group(self) -> None:
        groups = self.sim.groups()
        if groups:
            self.sim.by_hand = self.random.choice(groups)
            self._by_hand("ReplicaGroup", self.sim.by_hand)

    def _by_hand(self, kind: str, name: str) -> None:
        self.sim.world.faults_at.append(self.sim.api.now)
        with self.sim.api.by_others():
            self.sim.api.delete(kind, name)

    def change_counts(self) -> None:
        self.sim.change_spec(replicas=self.random.randint(0, 3), warmPool={"size": self.random.randint(0, 2)})

    def change_template(self) -> None:
        engine = {"backend": "sim", "tensorParallelSize": 8, "maxModelLen": self.random.choice((1024, 2048, 4096))}
        self.sim.change_spec(engine=engine)

    def send_streams(self) -> None:
        """Requests reach what the Service leads to."""
        for pod in self.sim.world.served_pods():
            lengths = [self.random.choice((1, 5, 20, 200)) for _ in range(self.random.randint(1, 3))]
            self.sim.world.engines[pod].streams.extend(self.sim.api.now + length for length in lengths)

    def stop_or_start_node(self) -> None:
        node = self.random.choice(sorted(self.sim.world.nodes))
        if self.sim.world.nodes[node].up:
            self.sim.world.stop_node(node)
        else:
            self.sim.world.start_node(node)

    def restart_operator(self) -> None:
        self.sim.restart()
