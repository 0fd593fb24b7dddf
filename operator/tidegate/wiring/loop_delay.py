"""Measures the delay of the event loop. Reads a clock, sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from tidegate.wiring.metrics import OperatorMetrics

EVERY = 0.25
"""Seconds between two looks: what holds the loop up for less than this is seen in part."""
LONG = 1.0
"""Seconds from which on a delay stands in the log, too: a lease is lost after some of these."""
log = structlog.get_logger()


async def measure_delay(
    metrics: OperatorMetrics,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Measure for ever by how much the loop wakes somebody too late.

    Args:
        metrics: take in each delay.
        clock: seconds, monotonic.
        sleep: waits for so many seconds, or longer if the loop is held up.
    """
    while True:
        began = clock()
        await sleep(EVERY)
        late = max(0.0, clock() - began - EVERY)
        metrics.observe_loop_delay(late)
        if late >= LONG:
            log.warning("the event loop was held up", seconds=round(late, 3))
