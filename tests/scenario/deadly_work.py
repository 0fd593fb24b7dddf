"""Work whose process gets a signal, for tests of what becomes of it: processes import what they run by its name."""

import os
import signal

from tests.scenario.schedule import Result
from tests.scenario.workers import BLOCK

DEADLY = 2 * BLOCK + 1


def die_of_one(seeds: range) -> list[Result]:
    """Return empty results, or end the process if one of the seeds is deadly."""
    if DEADLY in seeds:
        os.kill(os.getpid(), signal.SIGKILL)
    return [Result(seed) for seed in seeds]


def be_interrupted(seeds: range) -> list[Result]:
    """Return empty results, in a process that a terminal interrupts as it does the first one."""
    os.kill(os.getpid(), signal.SIGINT)
    return [Result(seed) for seed in seeds]
