"""``make walks [ARGS=…]``: prints each walk with its modules, the frame, a table, and one line of JSON last."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence

from tests.bench.reporting import since_now
from tests.gate.record import note, of_this_machine
from tests.walks import acts, count, report
from tests.walks.world import World

OK, OVER = 0, 1
DESCRIPTION = f"""
The modules of the product that are called during an act, and not while nothing is to do (tests/walks/count.py): an edit
of the image, a control message, a snapshot, a crash. Operator, API server, S3 server and driver are real processes of
this machine; the kubelet is played. Exit code {OK}, also where a walk is longer than it may be; with --strict {OVER}.
"""


def main(arguments: Sequence[str]) -> int:
    """Do all acts and count; return the exit code."""
    parser = argparse.ArgumentParser(prog="make walks ARGS=…", description=DESCRIPTION)
    parser.add_argument("--quiet", type=float, default=90.0, metavar="SECONDS", help="in which the frame is seen")
    parser.add_argument(
        "--rounds",
        type=int,
        default=2,
        choices=range(1, 10),
        metavar="N",
        help="how often each act is done: what is not called each time is not counted",
    )
    parser.add_argument("--strict", action="store_true", help="fail if a walk is longer than it may be")
    options = parser.parse_args(arguments)
    say = since_now()
    with World(say) as world:
        say(f"quiet for {options.quiet:.0f} s")
        quiet = acts.quiet(world, options.quiet)
        rounds = list[list[count.Act]]()
        for number in range(1, options.rounds + 1):
            rounds.append(_do_all(world, number, say))
            trace = world.trace()
            frames = count.frame(trace, quiet)
            walks = [count.walk(trace, done, frames) for done in zip(*rounds, strict=True)]
            result = {"run": "walks", **of_this_machine(), **report.summary(walks, quiet, frames)}
            # What was done is on record, should the rest be interrupted.
            note(result)
    print(report.text(walks, quiet, frames))
    print(json.dumps(result), flush=True)
    return OVER if options.strict and result["over"] else OK


def _do_all(world: World, number: int, say: Callable[[str], None]) -> list[count.Act]:
    """Do each act once."""
    done = list[count.Act]()
    for act in acts.ACTS:
        begun = act(world, number)
        for each in begun:
            say(f"{each.name}: {each.seconds:.1f} s")
        done += begun
        world.settle()
    return done


if __name__ == "__main__":
    # Asked to end, it unwinds as after Ctrl-C: otherwise its servers would outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
