"""What holds the event loop up is seen from outside. With a clock of its own."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from tidegate.wiring.loop_delay import EVERY, LONG, measure_delay
from tidegate.wiring.metrics import OperatorMetrics

NAME = "tidegate_event_loop_delay_seconds"


class Loop:
    """A loop that wakes late by these seconds, one after the other, and then no more."""

    def __init__(self, *late: float) -> None:
        self.now, self.late = 1000.0, list(late)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if not self.late:
            raise asyncio.CancelledError
        self.now += seconds + self.late.pop(0)


async def measured(*late: float) -> tuple[OperatorMetrics, list[Any]]:
    metrics, loop = OperatorMetrics(), Loop(*late)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await measure_delay(metrics, loop.clock, loop.sleep)
    return metrics, list(logs)


async def test_each_delay_is_in_the_metric_and_a_long_one_in_the_log() -> None:
    metrics, logs = await measured(0.0, 0.3, LONG + 1.5)
    value = metrics.registry.get_sample_value
    assert value(f"{NAME}_count") == 3
    assert value(f"{NAME}_sum") == pytest.approx(0.3 + LONG + 1.5)
    assert [(each["event"], each["seconds"]) for each in logs] == [("the event loop was held up", LONG + 1.5)]


async def test_a_loop_that_is_never_held_up_has_no_delay() -> None:
    metrics, logs = await measured(0.0, -EVERY / 100)
    assert (metrics.registry.get_sample_value(f"{NAME}_sum"), logs) == (0.0, [])
