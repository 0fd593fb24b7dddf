"""What a part that fails does to the others. Uses asyncio; no I/O."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tidegate.engine.supervision import LIVED, MOST_FAILURES, keep_running
from tidegate.kube.history import RestoredError
from tidegate.kube.leadership import NotLeadingError
from tidegate.wiring.running_operator import Operator


def operator_around(kopf: asyncio.Task[None]) -> Operator:
    unused: Any = None
    parts = (unused, unused, unused, unused, unused, unused, unused)
    return Operator(*parts, asyncio.Event(), kopf=kopf)


async def test_kopf_may_end_in_order_however_many_parts_fail() -> None:
    """Several workers find out at once that the process does not lead; another cancellation would disturb the first."""
    ended_in_order = False

    async def kopf() -> None:
        nonlocal ended_in_order
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            ended_in_order = True

    async def fail() -> None:
        raise NotLeadingError("lost")

    task = asyncio.create_task(kopf())
    await asyncio.sleep(0)
    operator = operator_around(task)
    for number in range(3):
        operator.supervise(fail, f"worker {number}")
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (operator.failed, ended_in_order) == (True, True)


@pytest.mark.parametrize("error", [NotLeadingError("lost"), RestoredError("older than before")])
async def test_what_another_process_has_to_begin_anew_is_not_started_again(error: Exception) -> None:
    async def fail() -> None:
        raise error

    task = asyncio.create_task(asyncio.sleep(3600))
    operator = operator_around(task)
    operator.supervise(fail, "pods")
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert operator.failed


class Part:
    """Fails as often as it is told to, each time after so many seconds; then it ends."""

    def __init__(self, lives: Sequence[float]) -> None:
        self.now, self.left, self.pauses = 0.0, list(lives), list[float]()

    async def run(self) -> None:
        if self.left:
            self.now += self.left.pop(0)
            raise ValueError("somebody has stored what nobody has thought of")

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def kept_running(self) -> None:
        await keep_running(self.run, "part", lambda: self.now, self.sleep)


async def test_a_part_that_fails_is_started_again_with_longer_and_longer_pauses() -> None:
    part = Part([0.0] * MOST_FAILURES)
    await part.kept_running()
    assert part.pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0]


async def test_a_part_that_keeps_failing_is_given_up() -> None:
    part = Part([0.0] * (MOST_FAILURES + 1))
    with pytest.raises(ValueError, match="nobody has thought of"):
        await part.kept_running()


async def test_the_failures_of_a_part_that_worked_for_a_while_are_counted_anew() -> None:
    part = Part([LIVED] * 50)
    await part.kept_running()
    assert part.pauses == [2.0] * 50


async def test_a_part_that_must_not_go_on_is_not_started_again() -> None:
    async def run() -> None:
        raise NotLeadingError("lost")

    with pytest.raises(NotLeadingError):
        await keep_running(run, "part")
