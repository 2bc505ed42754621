"""The prober in virtual time, over an engine control that is a table."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from headwater_contracts.admin import EnginePhase, EngineState, group_token
from headwater_operator import errors
from headwater_operator.adapters.prober import LONGEST_QUIET_SECONDS, MOST_AT_ONCE, Prober

pytestmark = pytest.mark.looptime
TOKEN = b"master"
READY = EngineState(EnginePhase.READY, step=1, running=0, waiting=0, healthy=True, admitting=True)


class LoopClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass
class Engines:
    """By address: a state, or silence."""

    answers: dict[str, EngineState] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    latency: float = 0.0
    asked: list[tuple[float, str]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    out: int = 0
    most_out: int = 0

    async def state(self, ip: str, token: str) -> EngineState:
        self.asked.append((asyncio.get_running_loop().time(), ip))
        self.tokens[ip] = token
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        try:
            await asyncio.sleep(self.latency)
        finally:
            self.out -= 1
        if ip in self.broken:
            raise RecursionError("too deep")
        if ip in self.strangers:
            raise errors.TokenRefused(f"{ip}: HTTP 401")
        if ip not in self.answers:
            raise errors.EngineUnreachable(f"{ip}: refused")
        return self.answers[ip]

    async def drain(self, ip: str, token: str, *, timeout_seconds: float, settle_seconds: float) -> None: ...

    async def undrain(self, ip: str, token: str) -> None: ...


def owner(number: int) -> dict[str, Any]:
    names = {"apiVersion": "headwater.dev/v1alpha1", "kind": "ReplicaGroup", "name": f"g{number}"}
    return {**names, "uid": f"owner-g{number}", "controller": True}


def pod(number: int = 1, *, rank: str = "0", ip: str | None = "auto", phase: str = "Running") -> dict[str, Any]:
    address = f"10.0.{number // 250}.{number % 250}" if ip == "auto" else ip
    return {
        "metadata": {
            "name": f"g{number}-{rank}",
            "namespace": "n",
            "uid": f"uid-{number}-{rank}",
            "labels": {"headwater.dev/pool": "p", "headwater.dev/group": f"g{number}", "headwater.dev/rank": rank},
            "ownerReferences": [owner(number)],
        },
        "status": {"phase": phase, **({"podIP": address} if address else {})},
    }


@dataclass
class Bench:
    prober: Prober
    engines: Engines
    woken: list[float]


@asynccontextmanager
async def bench(groups_gone: set[str] | None = None, **options: Any) -> AsyncIterator[Bench]:
    engines, woken = Engines(**options), []

    def wake(_: tuple[str, str]) -> None:
        woken.append(asyncio.get_running_loop().time())

    gone = groups_gone or set()

    def group_uid(namespace: str, name: str) -> str | None:
        return f"owner-{name}" if namespace == "n" and name not in gone else None

    prober = Prober(engines, LoopClock(), wake, group_uid, master_token=TOKEN, interval_seconds=2.0)
    task = asyncio.create_task(prober.run())
    try:
        yield Bench(prober, engines, woken)
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_leader_is_asked_at_once_and_then_each_interval_with_its_groups_token() -> None:
    async with bench(answers={"10.0.0.1": READY}) as at:
        at.prober.pod_changed(pod(), None)
        await asyncio.sleep(20.5)
        times = [time for time, _ in at.engines.asked]
        gaps = [b - a for a, b in itertools.pairwise(times[1:])]
        assert times[0] == pytest.approx(0, abs=0.01)
        assert gaps == pytest.approx([2.0] * len(gaps), abs=0.01)
        assert len(times) in (10, 11, 12)
        assert at.engines.tokens == {"10.0.0.1": group_token(TOKEN, "n", "g1")}


async def test_silence_of_an_engine_that_never_answered_counts_from_its_first_probe() -> None:
    async with bench(latency=1.0) as at:
        at.prober.pod_changed(pod(), None)
        await asyncio.sleep(20.5)
        got = at.prober.reading("uid-1-0")
        assert got is not None
        assert got.state is None
        assert got.silent_seconds == pytest.approx(20.5, abs=0.01)
        assert at.prober.oldest_answer_seconds(("n", "p")) == pytest.approx(20.5, abs=0.01)


async def test_probes_of_many_engines_spread_over_the_interval() -> None:
    async with bench() as at:
        for number in range(1, 101):
            at.prober.pod_changed(pod(number), None)
        await asyncio.sleep(20)
        slots = [0] * 8
        for time, _ in at.engines.asked:
            if 10.0 <= time < 12.0:
                slots[int((time - 10.0) / 0.25)] += 1
        assert sum(slots) == 100
        assert max(slots) <= 25


@pytest.mark.parametrize(
    "absent",
    [pod(rank="1"), pod(ip=None), pod(phase="Failed"), pod(phase="Succeeded")],
    ids=["worker", "no ip", "failed", "done"],
)
async def test_only_living_leaders_with_an_address_are_asked(absent: dict[str, Any]) -> None:
    async with bench() as at:
        at.prober.pod_changed(absent, None)
        await asyncio.sleep(5)
        assert at.engines.asked == []


async def test_a_pod_that_ended_or_went_is_no_longer_asked() -> None:
    async with bench() as at:
        at.prober.pod_changed(pod(1), None)
        at.prober.pod_changed(pod(2), None)
        await asyncio.sleep(3)
        at.prober.pod_changed(pod(1, phase="Failed"), pod(1))
        at.prober.pod_changed(None, pod(2))
        at.engines.asked.clear()
        await asyncio.sleep(10)
        assert at.engines.asked == []
        assert at.prober.reading("uid-1-0") is None


async def test_an_engine_that_hangs_holds_up_nobody_and_is_not_asked_twice_at_once() -> None:
    async with bench(latency=7.0) as at:
        at.prober.pod_changed(pod(1), None)
        await asyncio.sleep(21)
        assert at.engines.most_out == 1
        assert len(at.engines.asked) <= 3


async def test_not_more_than_so_many_probes_are_out_at_once() -> None:
    async with bench(latency=1.5) as at:
        for number in range(1, 3 * MOST_AT_ONCE):
            at.prober.pod_changed(pod(number), None)
        await asyncio.sleep(10)
        assert at.engines.most_out == MOST_AT_ONCE


async def test_a_pool_is_queued_for_the_first_answer_then_only_for_news_or_after_a_while() -> None:
    async with bench(answers={"10.0.0.1": READY}) as at:
        at.prober.pod_changed(pod(), None)
        await asyncio.sleep(10)
        assert len(at.woken) == 1
        at.engines.answers["10.0.0.1"] = replace(READY, step=99, running=0)
        await asyncio.sleep(4)
        assert len(at.woken) == 1
        at.engines.answers["10.0.0.1"] = replace(READY, healthy=False)
        await asyncio.sleep(2.1)
        assert len(at.woken) == 2
        await asyncio.sleep(LONGEST_QUIET_SECONDS + 2)
        assert len(at.woken) == 3


async def test_silence_is_news_once() -> None:
    async with bench(answers={"10.0.0.1": READY}) as at:
        at.prober.pod_changed(pod(), None)
        await asyncio.sleep(1)
        del at.engines.answers["10.0.0.1"]
        await asyncio.sleep(10)
        assert len(at.woken) == 2
        got = at.prober.reading("uid-1-0")
        assert got is not None
        assert got.state is None
        assert got.error == "10.0.0.1: refused"


async def test_an_engine_that_was_told_something_is_asked_ahead_of_its_turn_and_keeps_its_rate() -> None:
    async with bench(answers={"10.0.0.1": READY}) as at:
        at.prober.pod_changed(pod(), None)
        await asyncio.sleep(4.01)
        before = len(at.engines.asked)
        for _ in range(3):
            at.prober.ask_now("uid-1-0")
        await asyncio.sleep(0.01)
        assert len(at.engines.asked) == before + 1
        at.engines.asked.clear()
        await asyncio.sleep(10)
        assert len(at.engines.asked) == 5


async def test_an_answer_that_breaks_its_reader_costs_one_reading_and_is_logged_once() -> None:
    async with bench(answers={"10.0.0.1": READY, "10.0.0.2": READY}) as at:
        at.prober.pod_changed(pod(1), None)
        at.prober.pod_changed(pod(2), None)
        await asyncio.sleep(1)
        at.engines.broken.add("10.0.0.1")
        with capture_logs() as logs:
            await asyncio.sleep(10)
        at.engines.broken.clear()
        got, other = at.prober.reading("uid-1-0"), at.prober.reading("uid-2-0")
        assert got is not None
        assert (got.state, got.error) == (None, "10.0.0.1: an answer that cannot be read: RecursionError('too deep')")
        assert other is not None
        assert other.state == READY
        assert [entry["event"] for entry in logs] == ["probe failed"]
        await asyncio.sleep(3)
        again = at.prober.reading("uid-1-0")
        assert again is not None
        assert again.state == READY


@pytest.mark.parametrize(
    "feigned",
    [
        pytest.param({"ownerReferences": []}, id="no owner"),
        pytest.param({"ownerReferences": [owner(1) | {"controller": False}]}, id="an owner that is no controller"),
        pytest.param({"ownerReferences": [owner(1) | {"kind": "Job"}]}, id="an owner of another kind"),
        pytest.param({"ownerReferences": [owner(1) | {"apiVersion": "v1"}]}, id="an owner of another API"),
        pytest.param({"ownerReferences": [owner(2)]}, id="another group's"),
        pytest.param({"ownerReferences": [owner(1) | {"uid": "feigned"}]}, id="an owner that never was"),
        pytest.param({"name": "mine"}, id="a name that no leader has"),
    ],
)
async def test_a_pod_that_only_looks_like_a_leader_is_sent_no_token(feigned: dict[str, Any]) -> None:
    async with bench(answers={"10.0.0.1": READY}) as at:
        item = pod()
        at.prober.pod_changed(item | {"metadata": item["metadata"] | feigned}, None)
        await asyncio.sleep(5)
        assert at.engines.tokens == {}


async def test_a_leader_whose_group_is_not_seen_yet_is_asked_once_it_is() -> None:
    unseen = {"g1"}
    async with bench(unseen, answers={"10.0.0.1": READY}) as at:
        at.prober.pod_changed(pod(), None)
        await asyncio.sleep(5)
        assert at.engines.asked == []
        unseen.clear()
        await asyncio.sleep(2.1)
        assert len(at.engines.asked) == 1


async def test_a_refused_token_stands_in_the_reading_and_is_logged_once() -> None:
    with capture_logs() as logs:
        async with bench(strangers={"10.0.0.1"}) as at:
            at.prober.pod_changed(pod(), None)
            await asyncio.sleep(10)
            got = at.prober.reading("uid-1-0")
            assert got is not None
            assert (got.state, got.token_refused) == (None, True)
            at.engines.strangers.clear()
            at.engines.answers["10.0.0.1"] = READY
            await asyncio.sleep(3)
            got = at.prober.reading("uid-1-0")
            assert got is not None
            assert (got.state, got.token_refused) == (READY, False)
    assert [entry["event"] for entry in logs] == ["engine refuses the token"]
