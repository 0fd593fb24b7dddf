"""The queue of keys: nothing is lost, nothing runs twice at a time. Uses asyncio, without waiting for the clock."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError, Work, WorkQueue
from tidegate.kube.leadership import NotLeadingError
from tidegate.wiring.metrics import OperatorMetrics

A, B = ("shop", "a"), ("shop", "b")


async def spin() -> None:
    """Let everything that can run do so."""
    for _ in range(30):
        await asyncio.sleep(0)


@asynccontextmanager
async def moving(work: Work, workers: int = 1, clock: Callable[[], float] = lambda: 0.0) -> AsyncIterator[WorkQueue]:
    """A queue with workers and timers."""
    queue = WorkQueue(work, OperatorMetrics(), clock)
    tasks = [asyncio.create_task(queue.run_worker()) for _ in range(workers)]
    tasks.append(asyncio.create_task(queue.run_timers()))
    yield queue
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_many_wake_ups_are_one() -> None:
    seen: list[Key] = []

    async def work(key: Key) -> None:
        seen.append(key)

    async with moving(work) as queue:
        for key in (A, B, A, A):
            queue.wake(key)
        await spin()
    assert seen == [A, B]


async def test_a_wake_up_during_the_work_runs_it_once_more_and_never_at_the_same_time() -> None:
    release = asyncio.Event()
    running, most, runs = 0, 0, 0

    async def work(key: Key) -> None:
        nonlocal running, most, runs
        running, runs = running + 1, runs + 1
        most = max(most, running)
        await release.wait()
        running -= 1

    async with moving(work, workers=3) as queue:
        queue.wake(A)
        await spin()
        queue.wake(A)
        queue.wake(A)
        await spin()
        release.set()
        await spin()
    assert (most, runs) == (1, 2)


@pytest.mark.parametrize("error", [RetryLaterError("throttled"), ValueError("a fault of ours")])
async def test_one_failing_application_takes_nothing_down(error: Exception) -> None:
    seen: list[Key] = []

    async def work(key: Key) -> None:
        seen.append(key)
        if key == A:
            raise error

    async with moving(work) as queue:
        for _ in range(3):
            queue.wake(A)
            queue.wake(B)
            await spin()
    assert seen == [A, B, A, B, A, B]


async def test_a_worker_that_learns_that_it_does_not_lead_works_on_nothing_more() -> None:
    seen: list[Key] = []

    async def work(key: Key) -> None:
        seen.append(key)
        raise NotLeadingError("lost")

    queue = WorkQueue(work, OperatorMetrics(), lambda: 0.0)
    queue.wake(A)
    queue.wake(B)
    with pytest.raises(NotLeadingError):
        await queue.run_worker()
    assert seen == [A]


async def test_waiting_counts_from_when_there_was_somebody_to_work() -> None:
    metrics, now = OperatorMetrics(), 0.0

    async def work(key: Key) -> None:
        queue.stop()

    queue = WorkQueue(work, metrics, lambda: now)
    queue.wake(A)
    now = 3600.0
    queue.begin()
    await queue.run_worker()
    assert metrics.registry.get_sample_value("tidegate_queue_wait_seconds_sum") == 0.0


async def test_a_timer_wakes_when_its_time_has_come_and_the_earlier_of_two_counts() -> None:
    seen: list[Key] = []
    now = 0.0

    async def work(key: Key) -> None:
        seen.append(key)

    async with moving(work, clock=lambda: now) as queue:
        queue.wake_after(A, 50.0)
        queue.wake_after(A, 10.0)
        await spin()
        assert seen == []
        queue.wake_after(B, 5.0)
        now = 11.0
        await spin()
    assert seen == [B, A]


async def test_times_that_were_replaced_are_not_kept_until_they_would_have_come() -> None:
    seen: list[Key] = []
    now = 0.0

    async def work(key: Key) -> float:
        seen.append(key)
        return 86400.0 if key == A else 172800.0

    async with moving(work, clock=lambda: now) as queue:
        for minute in range(600):
            now = 60.0 * minute
            queue.wake(A)
            queue.wake(B)
            await spin()
        assert (len(seen), len(queue._timers) < 100) == (1200, True)
        now += 86400.0
        timers = asyncio.create_task(queue.run_timers())  # the others sleep by the real clock
        await spin()
        timers.cancel()
    assert seen[1200:] == [A]
