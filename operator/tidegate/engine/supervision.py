"""Restarts a part of the process that fails, and ends the process after too many failures. Reads a clock, sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from tidegate.kube.history import RestoredError
from tidegate.kube.leadership import NotLeadingError

MOST_FAILURES = 6
"""In a row, each followed by another start of the part: about two minutes of pauses. With one more the process ends."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
LIVED = 300.0
"""Seconds after which a part that fails was a working one: its failures are counted again."""
log = structlog.get_logger()


async def keep_running(
    run: Callable[[], Awaitable[None]],
    name: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Run a part until it ends by itself; start it again with exponential back-off if it fails.

    One part that meets something nobody has thought of must not take the others with it, least of all in a loop.

    Args:
        run: begins the part.
        name: of the part, for the log.
        clock: seconds, monotonic.
        sleep: waits for so many seconds.

    Raises:
        NotLeadingError: the part says so; there is nothing to be started again.
        RestoredError: likewise.
        Exception: what the part failed with, after so many failures in a row.
    """
    failures = 0
    while True:
        began = clock()
        try:
            await run()
        except (NotLeadingError, RestoredError):
            raise
        except Exception as error:
            failures = 1 if clock() - began >= LIVED else failures + 1
            if failures > MOST_FAILURES:
                raise
            pause = min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)
            log.error("part failed, and is started again", part=name, again_after=pause, exc_info=error)
            await sleep(pause)
        else:
            return
