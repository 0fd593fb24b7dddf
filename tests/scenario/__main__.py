"""``python -m tests.scenario``: run schedules, or one of them with its trace."""

import argparse
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.scenario.coverage import report
from tests.scenario.schedule import Result, run
from tests.scenario.telling import quiet, show_log

BLOCK = 50
"""Schedules that a process runs before it tells of them."""


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="make scenario", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--seed", type=int, help="run this one and tell what happens")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first failure")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        return tell(asked.seed)
    return run_many(range(asked.first, asked.first + asked.count), asked.processes, asked.keep_going)


def tell(seed: int) -> int:
    """Run one schedule and print everything that happens in it."""

    def note(at: float, who: str, text: str) -> None:
        print(f"{at:9.2f}  {who:18}  {text}")

    show_log(note)
    result = run(seed, note)
    print(f"\nseed {seed}: " + ("; ".join(result.violations) if result.violations else "holds"))
    return 1 if result.violations else 0


def run_many(seeds: range, processes: int, keep_going: bool = False) -> int:
    """Run schedules in several processes, with progress; print failing seeds and what was covered."""
    began, total, failed = time.monotonic(), Result(-1), []
    done = 0
    for results in _in_processes(seeds, processes):
        for result in results:
            done += 1
            _add(total, result)
            if result.violations:
                failed.append(result)
                print(f"\nseed {result.seed}: {result.violations[0]}\n  make scenario SEED={result.seed}", flush=True)
        pace = done / (time.monotonic() - began)
        print(f"\r{done} of {len(seeds)} schedules, {pace:.0f} a second, {len(failed)} failed", end="", flush=True)
        if failed and not keep_going:
            break
    print("\n" + report(total))
    print(f"failing seeds: {' '.join(str(result.seed) for result in failed) or 'none'}")
    return 1 if failed else 0


def _in_processes(seeds: range, processes: int) -> Iterator[list[Result]]:
    blocks = [seeds[at : at + BLOCK] for at in range(0, len(seeds), BLOCK)]
    if processes == 1:
        yield from map(run_block, blocks)
        return
    with ProcessPoolExecutor(processes) as pool:
        try:
            yield from pool.map(run_block, blocks)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run_block(seeds: Iterable[int]) -> list[Result]:
    """Run some schedules in this process."""
    quiet()
    gc.collect()
    gc.freeze()  # what is imported stays; the collector need not look at it again for each schedule
    return [run(seed) for seed in seeds]


def _add(total: Result, one: Result) -> None:
    for name in ("crashed", "passed", "happened"):
        known: Counter[object] = getattr(total, name)
        known.update(getattr(one, name))
    total.batches += one.batches
    total.seconds += one.seconds


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets follows from it, and a schedule must run the same way in each process.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.scenario", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main(sys.argv[1:]))
