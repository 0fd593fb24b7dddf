"""What a part that fails does to the others. Uses asyncio; no I/O."""

import asyncio
from typing import Any

import pytest

from tidegate.leadership import NotLeadingError
from tidegate.main import Operator


def operator_around(kopf: asyncio.Task[None]) -> Operator:
    unused: Any = None
    parts = (unused, unused, unused, unused, unused, unused, unused)
    return Operator(*parts, asyncio.Event(), kopf=kopf)


@pytest.mark.parametrize("error", [NotLeadingError("lost"), ValueError("a fault of ours")])
async def test_kopf_may_end_in_order_however_many_parts_fail(error: Exception) -> None:
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
        raise error

    task = asyncio.create_task(kopf())
    await asyncio.sleep(0)
    operator = operator_around(task)
    for number in range(3):
        operator.supervise(fail(), f"worker {number}")
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (operator.failed, ended_in_order) == (True, True)
