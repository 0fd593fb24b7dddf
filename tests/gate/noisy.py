"""Run tests several times beside busy loops: ``python -m tests.gate.noisy [--base COMMIT | TEST…]``.

What passes on a quiet machine alone passes by luck. Without tests by name, those that a change can break are run
(tests/gate/changed.py). Prints a table and, as its last line, JSON; a failure in any round fails.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.gate import junit, tiers
from tests.gate.base import BASE_VARIABLE, ROOT, UnknownBaseError
from tests.gate.changed import NO_TESTS_FOUND, TIERS, Selection, choose_tests, command, describe, prepare, tier_of
from tests.gate.record import note, of_this_machine
from tests.gate.tools import CHANGED_VARIABLE

ROUNDS, LOOPS = 3, 2
BUSY_SECONDS = 6 * 3600
"""A loop ends by itself after this time, or when the process that started it is gone."""
LOOP = f"""
import os, time
parent, end = os.getppid(), time.monotonic() + {BUSY_SECONDS}
while os.getppid() == parent and time.monotonic() < end:
    for _ in range(1_000_000):
        pass
"""


@dataclass(frozen=True)
class Round:
    """What one run of a tier's tests came to."""

    tier: str
    number: int
    tests: int
    failed: tuple[str, ...]
    seconds: float
    code: int

    @property
    def passed(self) -> bool:
        return self.code in (0, NO_TESTS_FOUND) and not self.failed


@contextmanager
def noise(loops: int = LOOPS, niceness: int = 0) -> Iterator[list[int]]:
    """Keep the machine busy; each loop is ended by its id."""
    command = ["nice", f"--adjustment={niceness}", sys.executable, "-c", LOOP]
    running = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield [process.pid for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def results(report: Path) -> tuple[int, tuple[str, ...]]:
    """Return how many tests a JUnit file has, and which of them failed."""
    cases = junit.read(report)
    return len(cases), tuple(f"{case.file}::{case.name}" for case in cases if case.outcome == junit.FAILED)


def run_tier(tier: str, number: int, tests: Sequence[str], changed: Sequence[str]) -> Round:
    """Run tests of a tier once."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {**os.environ, CHANGED_VARIABLE: json.dumps(sorted(changed))}
        began = time.monotonic()
        line = command(tier, tests, [f"--junitxml={report}"])
        code = subprocess.run(line, cwd=ROOT, env=environment, check=False).returncode
        return Round(tier, number, *results(report), round(time.monotonic() - began, 1), code)


def run_rounds(
    tests: dict[str, list[str]], changed: Sequence[str], run: Callable[..., Round] = run_tier, rounds: int = ROUNDS
) -> Iterator[Round]:
    """Run each tier's tests several times, all of them whatever fails: how often one fails is what is asked."""
    return (run(tier, number, tests[tier], changed) for number in range(1, rounds + 1) for tier in tests)


def summarize(rounds: Sequence[Round], facts: Mapping[str, object]) -> tuple[list[str], dict[str, object]]:
    """Return a table with what failed and how often below it, and the same as one JSON object."""
    lines = [f"{'round':>5}  {'tier':<12}{'tests':>6}{'failed':>8}{'minutes':>9}"]
    lines += [f"{r.number:>5}  {r.tier:<12}{r.tests:>6}{len(r.failed):>8}{r.seconds / 60:>9.1f}" for r in rounds]
    names = sorted({name for each in rounds for name in each.failed})
    for name in names:
        lines.append(f"failed {sum(name in each.failed for each in rounds)} times: {name}")
    summary = {
        "run": "noisy",
        **facts,
        "passed": bool(rounds) and all(each.passed for each in rounds),
        "rounds": [{**asdict(each), "failed": list(each.failed)} for each in rounds],
    }
    return lines, summary


def by_tier(selection: Selection, named: Sequence[str]) -> dict[str, list[str]]:
    """Return what to run of each tier; no tests of a tier: all of it.

    Raises:
        ValueError: a named test is in no tier.
    """
    if named:
        nowhere = [test for test in named if tier_of(test.partition("::")[0] + "/") is None]
        if nowhere:
            raise ValueError(f"{', '.join(nowhere)}: tests are in {', '.join(f for fs in TIERS.values() for f in fs)}")
        placed = [(tier_of(test.partition("::")[0] + "/"), test) for test in named]
        return {tier: found for tier in TIERS if (found := [test for its, test in placed if its == tier])}
    if selection.everything:
        return {tier: [] for tier in TIERS}
    return {tier: found for tier in TIERS if (found := selection.of_tier(tier))}


def main(argv: Sequence[str] | None = None) -> int:
    """Run tests beside busy loops, several times."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.noisy", description=main.__doc__)
    parser.add_argument("--base", help="without tests by name: compare with where this checkout left it")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each tier's tests run")
    parser.add_argument("--loops", type=int, default=LOOPS, help="busy loops beside them")
    parser.add_argument("--nice", type=int, default=0, choices=range(20), metavar="0…19", help="niceness of the loops")
    parser.add_argument("tests", nargs="*", help="files, folders or ids; default: what a change can break")
    options = parser.parse_args(argv)
    if options.base:
        os.environ[BASE_VARIABLE] = options.base
    try:
        tiers.workers(os.environ.get("WORKERS") or "2")
        selection = Selection() if options.tests else choose_tests(options.base)
        tests = by_tier(selection, options.tests)
    except (UnknownBaseError, ValueError) as error:
        print(f"test-noisy: {error}", file=sys.stderr)
        return 2
    print("\n".join(options.tests or describe(selection)), flush=True)
    for tier in tests:
        prepare(tier)
    # Whoever names a file wants all of it.
    changed = [test.partition("::")[0] for test in options.tests] or sorted(selection.changed)
    facts = {**of_this_machine(), "tests": options.tests, "loops": options.loops, "nice": options.nice}
    rounds: list[Round] = []
    with noise(options.loops, options.nice):
        for each in run_rounds(tests, changed, rounds=options.rounds):
            rounds.append(each)
            # What has run is on record, should the rest be interrupted.
            note(summarize(rounds, facts)[1])
    lines, summary = summarize(rounds, facts)
    print("\n".join([*lines, json.dumps(summary)]))
    return 0 if summary["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
