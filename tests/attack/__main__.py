"""``make attack N=200 [ARGS=…]``: prints what happens, a table, and one line of JSON last."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence

from tests.attack.report import READY_GOAL, Result, summary, table
from tests.attack.run import LAYOUTS, Settings, run
from tests.bench.report import machine
from tests.bench.reporting import since_now

OK, NOT_HELD, PROVES_NOTHING = 0, 1, 2
DESCRIPTION = f"""
Snapshots of an application that keeps two batches and whose maintenance runs every half second, one after the other;
then each one's state is read by Spark's state reader and compared with what the input says, and some are resumed and
their next batches compared. Needs no cluster. Exit code {OK}: at least {READY_GOAL:.0%} became ready, and all of these
are right; {NOT_HELD}: not so; {PROVES_NOTHING}: the run proves nothing.
"""


def main(arguments: Sequence[str]) -> int:
    """Run an attack as the arguments say; return the exit code."""
    options = _parser().parse_args(arguments)
    settings = Settings(
        snapshots=options.snapshots,
        resume=options.resume,
        rows=options.rows,
        keys=options.keys,
        layout=options.layout,
        retained=options.retain,
        maintenance=options.maintenance,
    )
    say = since_now()
    result = run(settings, say)
    print(table(result))
    print(json.dumps({**summary(result, vars(settings)), "machine": machine()}), flush=True)
    return exit_code(result)


def exit_code(result: Result) -> int:
    """Return how the command ends; pure."""
    if not result.held:
        return NOT_HELD
    return PROVES_NOTHING if result.proves_nothing else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make attack ARGS=…", description=DESCRIPTION, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--snapshots", type=_at_least_one, default=200, help="how many; N=… of make attack")
    add("--resume", type=int, default=20, help="how many of them are resumed")
    add("--layout", choices=tuple(LAYOUTS), default="rocksdb", help="how Spark keeps the state")
    add("--retain", type=_at_least_one, default=2, help="batches that Spark keeps")
    add("--maintenance", default="500ms", help="time between two of Spark's cleanings of state")
    add("--rows", type=_at_least_one, default=100, help="of a batch")
    add("--keys", type=_at_least_one, default=500, help="each with a state of its own")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


if __name__ == "__main__":
    # Asked to end, it unwinds as after Ctrl-C: otherwise its servers would outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
