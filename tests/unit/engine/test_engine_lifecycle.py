from __future__ import annotations

import asyncio

import pytest

from headwater_contracts.admin import EnginePhase
from headwater_engine.clock import LoopClock
from headwater_engine.core.admission import admit
from headwater_engine.core.drain import Drainer
from headwater_engine.core.inflight import EndCause, InFlight, Registry
from headwater_engine.core.lifecycle import Admission, Lifecycle
from headwater_engine.errors import CallerError, Unavailable


def loaded() -> Lifecycle:
    """A ready engine."""
    life = Lifecycle()
    life.loaded()
    return life


def one_stream() -> tuple[LoopClock, Registry, Lifecycle, Drainer, InFlight]:
    """A ready engine with one request in flight, and what drains it."""
    clock, registry, life = LoopClock(), Registry(), loaded()
    request = InFlight("a", lambda: False)
    registry.add(request)
    return clock, registry, life, Drainer(life, registry, clock), request


def test_admission_follows_the_phases() -> None:
    life = Lifecycle()
    assert (life.phase, life.ready, life.admission(0)) == (EnginePhase.LOADING, False, Admission.LOADING)
    life.loaded()
    assert (life.phase, life.ready, life.admission(0)) == (EnginePhase.READY, True, Admission.OPEN)
    life.begin_drain(10, settle=5, timeout=60)
    assert (life.phase, life.ready) == (EnginePhase.DRAINING, False)
    assert [life.admission(now) for now in (10, 14.9, 15, 999)] == [
        Admission.CLOSING,
        Admission.CLOSING,
        Admission.DRAINING,
        Admission.DRAINING,
    ]
    life.fail("no_progress", "silent")
    assert (life.phase, life.ready, life.admission(0)) == (EnginePhase.FAILED, False, Admission.UNHEALTHY)


@pytest.mark.parametrize(
    ("now", "in_flight", "want"), [(12, 0, False), (15, 0, True), (15, 1, False), (99, 1, False), (99, 0, True)]
)
def test_drained_only_when_nothing_more_can_come_and_nothing_is_left(now: float, in_flight: int, want: bool) -> None:
    life = loaded()
    life.begin_drain(10, settle=5, timeout=60)

    assert life.drained(now, in_flight) is want


def test_an_engine_without_a_drain_is_not_drained() -> None:
    assert loaded().drained(0, 0) is False


def test_a_loading_engine_drains_at_once() -> None:
    life = Lifecycle()
    life.begin_drain(0, settle=5, timeout=60)

    assert life.drained(0, 0) is True


def test_a_second_drain_moves_deadlines_closer_only() -> None:
    life = loaded()
    life.begin_drain(0, settle=5, timeout=60)
    life.begin_drain(1, settle=100, timeout=600)
    assert life.drain is not None
    assert (life.drain.settle_until, life.drain.deadline) == (5, 65)

    life.begin_drain(2, settle=0, timeout=10)
    assert (life.drain.settle_until, life.drain.deadline) == (2, 12)


def test_undrain_takes_back_a_drain_but_not_the_end() -> None:
    life = loaded()
    life.begin_drain(0, settle=5, timeout=60)
    assert life.undrain() is True
    assert life.ready

    life.begin_drain(0, settle=5, timeout=60, final=True)
    life.begin_drain(1, settle=5, timeout=60)
    assert life.undrain() is False
    assert life.phase is EnginePhase.DRAINING


def test_the_first_failure_stays() -> None:
    life = loaded()
    life.fail("a", "first")
    life.fail("b", "second")

    assert life.failure is not None
    assert life.failure.message == "first"


@pytest.mark.parametrize(
    ("state", "status", "reason"),
    [
        (Admission.LOADING, 503, "loading"),
        (Admission.DRAINING, 503, "draining"),
        (Admission.UNHEALTHY, 503, "unhealthy"),
    ],
)
def test_refusals_say_why_and_when_to_come_back(state: Admission, status: int, reason: str) -> None:
    with pytest.raises(Unavailable) as caught:
        admit(state, waiting=0, max_waiting=10)

    assert (caught.value.status, caught.value.reason) == (status, reason)
    assert caught.value.retry_after_seconds > 0


def test_the_limit_of_waiting_requests_is_hard() -> None:
    admit(Admission.OPEN, waiting=9, max_waiting=10)
    admit(Admission.CLOSING, waiting=9, max_waiting=10)

    with pytest.raises(Unavailable) as caught:
        admit(Admission.OPEN, waiting=10, max_waiting=10)

    assert (caught.value.status, caught.value.reason) == (429, "too_many_waiting")


async def test_a_request_id_is_taken_while_its_connection_lives() -> None:
    registry, alive = Registry(), [True]
    first = InFlight("a", lambda: not alive[0])
    registry.add(first)
    with pytest.raises(CallerError) as caught:
        registry.add(InFlight("a", lambda: False))
    assert caught.value.status == 409

    alive[0] = False
    second = InFlight("a", lambda: False)
    registry.add(second)
    registry.remove(first)

    assert first.cause is EndCause.CLIENT_GONE
    assert list(registry) == [second]


async def test_an_answered_request_can_not_be_ended() -> None:
    request = InFlight("a", lambda: False)
    request.answered()
    request.end(EndCause.CLIENT_GONE)

    assert request.cause is None


@pytest.mark.looptime
async def test_the_drainer_ends_streams_at_the_deadline_and_not_before() -> None:
    clock, _registry, life, drainer, request = one_stream()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(drainer.run())
        life.begin_drain(clock.now(), settle=5, timeout=60)
        drainer.changed()
        await asyncio.sleep(64.9)
        assert request.cause is None
        await asyncio.sleep(0.2)
        assert request.cause is EndCause.DRAIN_TIMEOUT
        running.cancel()


@pytest.mark.looptime
async def test_an_undrain_disarms_the_deadline() -> None:
    clock, _registry, life, drainer, request = one_stream()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(drainer.run())
        life.begin_drain(clock.now(), settle=5, timeout=60)
        drainer.changed()
        await asyncio.sleep(30)
        life.undrain()
        drainer.changed()
        await asyncio.sleep(3000)
        assert request.cause is None
        running.cancel()


@pytest.mark.looptime
async def test_drained_waits_for_settle_and_for_the_last_stream() -> None:
    clock, registry, life, drainer, request = one_stream()
    life.begin_drain(clock.now(), settle=5, timeout=60)
    begun = clock.now()
    asyncio.get_running_loop().call_later(20, registry.remove, request)

    await drainer.drained()

    assert clock.now() - begun == pytest.approx(20)
