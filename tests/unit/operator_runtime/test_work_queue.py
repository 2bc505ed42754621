"""The work queue in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from headwater_operator.adapters.workqueue import LAST_RETRY_SECONDS, WorkQueue

pytestmark = pytest.mark.looptime


def queue_of(*keys: str) -> WorkQueue[str]:
    queue: WorkQueue[str] = WorkQueue(jitter=lambda: 0.5)
    for key in keys:
        queue.add(key)
    return queue


async def is_empty(queue: WorkQueue[str]) -> bool:
    try:
        await asyncio.wait_for(queue.get(), 0.001)
    except TimeoutError:
        return True
    return False


async def test_a_key_added_twice_is_worked_on_once() -> None:
    queue = queue_of("a", "a")
    assert await queue.get() == "a"
    queue.done("a")
    assert await is_empty(queue)


async def test_keys_come_in_the_order_in_which_they_were_added() -> None:
    queue = queue_of("a", "b", "c")
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


async def test_a_key_that_is_running_is_not_given_to_a_second_worker_and_comes_again_when_done() -> None:
    queue = queue_of("a")
    await queue.get()
    queue.add("a")
    assert await is_empty(queue)
    queue.done("a")
    assert await queue.get() == "a"


async def test_a_waiting_worker_is_woken_by_a_new_key() -> None:
    queue = queue_of()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add("a")
    assert await worker == "a"


async def test_each_of_several_waiting_workers_gets_a_key_of_its_own() -> None:
    queue = queue_of()
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(1)
    queue.add("a")
    queue.add("b")
    assert sorted(await asyncio.gather(*workers)) == ["a", "b"]


async def test_a_worker_cancelled_just_as_it_is_woken_leaves_the_key_to_another() -> None:
    queue = queue_of()
    lost = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    stays = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add("a")
    lost.cancel()
    assert await asyncio.wait_for(stays, 1) == "a"
    assert lost.cancelled()


async def test_a_delayed_key_comes_when_its_time_has_come() -> None:
    queue, loop = queue_of(), asyncio.get_running_loop()
    began = loop.time()
    queue.add_after("a", 30)
    await queue.get()
    assert loop.time() - began == pytest.approx(30)


async def test_of_two_delays_the_earlier_counts_and_there_is_one_run() -> None:
    queue, loop = queue_of(), asyncio.get_running_loop()
    began = loop.time()
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    await queue.get()
    queue.done("a")
    assert loop.time() - began == pytest.approx(10)
    await asyncio.sleep(60)
    assert await is_empty(queue)


async def test_an_event_does_not_wait_for_a_delay() -> None:
    queue, loop = queue_of(), asyncio.get_running_loop()
    began = loop.time()
    queue.add_after("a", 30)
    queue.add("a")
    await queue.get()
    assert loop.time() == began


async def test_retries_come_later_each_time_up_to_a_cap_and_begin_anew_after_a_success() -> None:
    queue = queue_of()
    got = [queue.retry("a") for _ in range(12)]
    assert got[:4] == pytest.approx([0.2, 0.4, 0.8, 1.6])
    assert got[-1] == LAST_RETRY_SECONDS
    queue.succeeded("a")
    assert queue.retry("a") == pytest.approx(0.2)


async def test_a_retry_waits_at_least_as_long_as_the_server_asked() -> None:
    queue = queue_of()
    assert queue.retry("a", at_least_seconds=7) == 7


async def test_the_oldest_age_counts_queued_and_running_keys() -> None:
    queue = queue_of()
    assert queue.oldest_age_seconds() == 0
    queue.add("a")
    await asyncio.sleep(5)
    await queue.get()
    queue.add("b")
    await asyncio.sleep(2)
    assert queue.oldest_age_seconds() == pytest.approx(7)
    queue.done("a")
    assert queue.oldest_age_seconds() == pytest.approx(2)
