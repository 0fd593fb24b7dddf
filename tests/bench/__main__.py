"""``python -m tests.bench NAME``: run one benchmark. Its last line on standard output is one JSON object."""

import signal
import sys

from tests.bench import catalog, control, hostile, recovery, rescale, snapshot, submit, throughput, upgrade

BENCHES = {
    "submit": submit.main,
    "fleet": submit.fleet,
    "recovery": recovery.main,
    "snapshot": snapshot.main,
    "upgrade": upgrade.main,
    "rescale": rescale.main,
    "control": control.main,
    "throughput": throughput.main,
    "hostile": hostile.main,
    "catalog": catalog.main,
}


def main(arguments: list[str]) -> int:
    """Run the benchmark that the first argument names; return the exit code."""
    if not arguments or arguments[0] not in BENCHES:
        names = "\n".join(f"  {name:10} {(bench.__doc__ or '').splitlines()[0]}" for name, bench in BENCHES.items())
        print(f"usage: make bench NAME=… [ARGS=--help]\n{names}", file=sys.stderr)
        return 2
    return BENCHES[arguments[0]](arguments[1:])


if __name__ == "__main__":
    # Asked to end, it unwinds as after Ctrl-C: otherwise its servers would outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
