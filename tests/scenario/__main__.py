"""``python -m tests.scenario``: run schedules, or one of them with its trace."""

import argparse
import os
import sys
from functools import partial

from tests.scenario.courses import MIXED, NAMES, load
from tests.scenario.coverage import add, report
from tests.scenario.ranges import Progress
from tests.scenario.reporting import Reporting, show_log
from tests.scenario.schedule import Result, run_course
from tests.scenario.workers import Lost, run_all, run_block
from tidegate_testing.asked_to_end import stop_on_signal


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="make scenario", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--seed", type=int, help="run this one and tell what happens")
    named = f"what happens: {', '.join(NAMES)}"
    parser.add_argument("--course", choices=NAMES, default=MIXED, metavar="NAME", help=named)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first failure")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        return show(asked.seed, asked.course)
    return run_many(range(asked.first, asked.first + asked.count), asked.processes, asked.keep_going, asked.course)


def show(seed: int, course: str = MIXED) -> int:
    """Run one schedule and print everything that happens in it."""

    def note(at: float, who: str, text: str) -> None:
        print(f"{at:9.2f}  {who:18}  {text}")

    show_log(note)
    result = run_course(seed, load(course), note)
    print(f"\nseed {seed}: " + ("; ".join(result.violations) if result.violations else "holds"))
    return 1 if result.violations else 0


def run_many(seeds: range, processes: int, keep_going: bool = False, course: str = MIXED) -> int:
    """Run schedules of a course in several processes, with progress; print failing seeds, and how far it has got.

    Of the mix of all misfortunes it prints what was covered, too. The first SIGTERM or SIGINT has it end when what is
    under way was run.
    """
    options = "" if course == MIXED else f"--course {course} "
    total, progress, lost = Result(-1), Progress(seeds, options), list[Lost]()
    with Reporting(len(seeds)) as reporting, stop_on_signal() as stop:
        for news in run_all(seeds, processes, partial(run_block, name=course), stop):
            if isinstance(news, Lost):
                lost.append(news)
                reporting.say(f"{news}")
                continue
            progress.note(news)
            for result in news:
                add(total, result)
                if result.violations:
                    again = f"make scenario SEED={result.seed}" + (f" ARGS='{options.strip()}'" if options else "")
                    reporting.say(f"seed {result.seed}: {result.violations[0]}\n  {again}")
            reporting.advance(len(news), len(progress.failing))
            if progress.failing and not keep_going:
                break
    if course == MIXED:
        print(report(total))
    for each in lost:
        print(each)
    print(f"failing seeds: {' '.join(map(str, progress.failing)) or 'none'}")
    print(f"{1000 * total.processor_seconds / max(1, progress.count):.1f} ms of processor time for each schedule")
    print(progress)
    if progress.failing or lost:
        return 1
    return 128 + stop.number if stop else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
