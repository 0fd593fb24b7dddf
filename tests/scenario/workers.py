"""Schedules in several processes: in blocks, with bounded memory, and with a name for what a lost process was doing."""

import gc
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from tests.scenario.courses import MIXED, load
from tests.scenario.reporting import quiet
from tests.scenario.schedule import Course, Result, run_course
from tidegate_testing.asked_to_end import Stop

BLOCK = 50
"""Schedules that a process runs before it tells of them."""
LIFE = 40
"""Blocks after which a process makes room for a new one, so that no memory piles up."""
Work = Callable[[range], list[Result]]


@dataclass(frozen=True)
class Lost:
    """A process ended without a word (killed, or out of memory) while these seeds were being run."""

    blocks: tuple[range, ...]

    def __str__(self) -> str:
        """Return what to say of it."""
        seeds = ", ".join(f"{block.start} to {block.stop - 1}" for block in self.blocks)
        return f"a process ended without a word while it ran one of the blocks of seeds {seeds}"


def run_block(seeds: range, name: str = MIXED) -> list[Result]:
    """Run some schedules of a course in this process."""
    quiet(for_good=True)
    course = load(name)
    gc.collect()
    gc.freeze()  # what is imported stays; the collector need not look at it again for each schedule
    gc.set_threshold(20_000, 20, 20)
    results = [_timed(seed, course) for seed in seeds]
    gc.unfreeze()
    return results


def _timed(seed: int, course: Course) -> Result:
    began = time.process_time()
    result = run_course(seed, course)
    result.processor_seconds = time.process_time() - began
    return result


def run_all(
    seeds: range, processes: int, work: Work = run_block, stop: Stop | None = None
) -> Iterator[list[Result] | Lost]:
    """Run schedules; yield results block by block, in the order in which they are ready.

    What was under way in a process that is lost is not run again; everything else is.

    Args:
        seeds: of the schedules.
        processes: how many run side by side; with 1 it is this very process.
        work: runs one block.
        stop: once it is true, no further block is begun.
    """
    blocks = [seeds[at : at + BLOCK] for at in range(0, len(seeds), BLOCK)]
    stop = Stop() if stop is None else stop
    if processes == 1:
        for block in blocks:
            if stop:
                return
            yield work(block)
        return
    blocks.reverse()
    while blocks and not stop:
        yield from _run_until_lost(blocks, processes, work, stop)


def _leave_interrupts() -> None:
    # A terminal sends them to all processes; it is the first one that ends the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_until_lost(blocks: list[range], processes: int, work: Work, stop: Stop) -> Iterator[list[Result] | Lost]:
    # Only what is being run is handed over: so a pool that breaks leaves no doubt about what it was doing.
    under_way: dict[Future[list[Result]], range] = {}
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), _leave_interrupts, max_tasks_per_child=LIFE
    )
    try:
        while under_way or (blocks and not stop):
            while blocks and not stop and len(under_way) < processes:
                block = blocks.pop()
                under_way[pool.submit(work, block)] = block
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            lost = [each for each in done if isinstance(each.exception(), BrokenProcessPool)]
            for each in done - set(lost):
                del under_way[each]
                yield each.result()
            if lost and stop:
                return  # the signal was for all processes: these seeds are missing from what was run, and no more
            if lost:
                yield Lost(tuple(sorted(under_way.values(), key=lambda block: block.start)))
                return
    finally:
        # One that waits for nothing is ended whole: Python writes an error where both go at once.
        pool.shutdown(wait=not under_way, cancel_futures=True)
