"""``make chaos N=50 [ARGS=…]``: prints what happens, a table, and one line of JSON last."""

import argparse
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.report import machine
from tests.bench.reporting import since_now
from tests.chaos.faults import Kind, plan
from tests.chaos.report import lines, summary, table
from tests.chaos.run import SCRIPTS, Result, Settings, parameters, run
from tidegate_testing.live_cluster import live_cluster

OK, WRONG, INCOMPLETE, BLIND = 0, 1, 2, 3
DESCRIPTION = f"""
Faults on a real cluster while records flow and the application is rescaled, then an account of every record: in the
application's state, and in its output deduplicated by id. Exit code {OK}: none lost, none wrong, every fault survived;
{WRONG}: some record is lost or wrong (also when that was planted and found); {INCOMPLETE}: a fault was not survived, or
the run proves nothing; {BLIND}: what was planted was not found. The first SIGTERM or SIGINT while faults are injected
has it end after the present one, with its account, and say how to go on (exit code 128 and the signal's number).
"""


def main(arguments: Sequence[str]) -> int:
    """Run chaos as the arguments say; return the exit code."""
    options = _parser().parse_args(arguments)
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    faults = plan(options.faults, seed, options.only or tuple(Kind))[max(0, options.first - 1) :]
    settings = Settings(
        rate=options.rate,
        keys=options.keys,
        outage=options.outage,
        limit=options.limit,
        minutes=options.minutes,
        plant=options.plant,
        executors=options.executors,
    )
    say = since_now()
    which = f"{len(faults)} faults" if options.first <= 1 else f"faults {options.first} to {options.faults}"
    say(f"seed {seed}, {which}; the same again: --seed {seed}")
    for fault in faults:
        print(f"  {fault}")
    if options.dry_run:
        return OK
    bucket = f"chaos-{seed}-{int(time.time())}"
    scripts = {path.name: path.read_text() for path in Path(SCRIPTS).glob("*.py")}
    with live_cluster(options.name, bucket=bucket, namespace="chaos", files=scripts, say=say) as live:
        result = run(live, faults, settings, say)
    _show(result)
    numbers = {"seed": seed, "of": options.faults, "first": options.first, "last": last_of(result, options.first)}
    if numbers["last"] < options.faults:
        print(to_go_on(seed, options.faults, numbers["last"] + 1, options.only))
    shown = summary(result.outcomes, result.verdict, result.rescaled, parameters(settings, **numbers))
    print(json.dumps({**shown, "problems": list(result.problems), "machine": machine()}), flush=True)
    return exit_code(result, options.plant)


def _show(result: Result) -> None:
    print(table(lines(result.outcomes, result.verdict)))
    print(result.verdict.report())
    print(result.rescaled)
    print(f"{result.seconds / 60:.1f} minutes")
    for problem in result.problems:
        print(f"problem: {problem}")


def last_of(result: Result, first: int) -> int:
    """Return the number of the last fault that was survived, the one before the first if none was; pure."""
    return max((each.fault.number for each in result.outcomes if each.recovered is not None), default=first - 1)


def to_go_on(seed: int, faults: int, first: int, only: Sequence[Kind] | None) -> str:
    """Return how the rest of a plan is run; pure."""
    kinds = f" --only {' '.join(only)}" if only else ""
    return f"to go on: make chaos N={faults} ARGS='--seed {seed} --first {first}{kinds}'"


def exit_code(result: Result, plant: str) -> int:
    """Return how the command ends; pure."""
    kind = {"loss": "lost", "duplicate": "doubled"}.get(plant)
    if kind and not result.verdict.amount(kind):
        return BLIND
    if not result.verdict.ok:
        return WRONG
    if result.problems:
        return INCOMPLETE
    return 128 + result.signal if result.signal else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make chaos ARGS=…", description=DESCRIPTION, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--faults", type=int, default=10, help="how many; N=… of make chaos")
    add("--seed", type=int, help="of the order and timing of the faults; printed, random if not given")
    add("--first", type=int, default=1, help="number of the fault to start from: what is before it has been run")
    add("--only", type=Kind, nargs="+", metavar="KIND", help=f"only faults of these kinds: {', '.join(Kind)}")
    add("--plant", choices=("none", "loss", "duplicate"), default="none", help="have the application make that mistake")
    add("--name", default="chaos", help="development cluster; started and taken down, unless it runs already")
    add("--rate", type=float, default=100.0, help="records per second")
    add("--keys", type=int, default=40, help="keys, each with a state of its own")
    add("--executors", type=int, default=2, help="executors of the application at first; one more at most")
    add(
        "--outage",
        type=float,
        default=30.0,
        help="seconds that S3, Kafka and the catalog stay away, and a quota is in force",
    )
    add("--limit", type=float, default=300.0, help="most seconds until batches are committed again after a fault")
    add("--minutes", type=float, default=120.0, help="no fault is begun after so many minutes")
    add("--dry-run", action="store_true", help="print the order of the faults, and do nothing")
    return parser


if __name__ == "__main__":
    # Asked to end, it unwinds as after Ctrl-C: otherwise its servers would outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
