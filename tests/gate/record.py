"""What a run came to, kept: ``make record`` adds the last run's line of JSON to ``tests/runs.jsonl``.

Figures in the docs and claims about the gate are lines of that file, or are not made. Reads and writes files.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from devcluster import paths
from tests.gate.base import ROOT, git_in

RUNS = ROOT / "tests" / "runs.jsonl"


def last_run() -> Path:
    """Return the file that holds the result of the run that ended last on this machine."""
    return paths.cache() / "gate" / "last.json"


def of_this_machine() -> dict[str, object]:
    """Return what tells one run from another: commit, time, machine."""
    return {
        "commit": git_in(ROOT)("rev-parse", "--short", "HEAD"),
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }


def note(result: Mapping[str, object]) -> None:
    """Note what a run came to, for ``make record``."""
    last_run().parent.mkdir(parents=True, exist_ok=True)
    last_run().write_text(json.dumps(result) + "\n")


def record(remark: str, runs: Path = RUNS) -> str:
    """Add the last run's result to the file, with a remark if there is one, and return the line.

    Raises:
        ValueError: there is no run, or its result is the last line already.
    """
    if not last_run().is_file():
        raise ValueError("no run has ended on this machine; first: make test, test-noisy, coverage or walks")
    result = json.loads(last_run().read_text())
    line = json.dumps({**result, "remark": remark} if remark else result)
    written = runs.read_text().splitlines() if runs.is_file() else []
    if written and json.loads(written[-1]) == json.loads(line):
        raise ValueError(f"{runs.name} holds the last run already")
    runs.write_text("\n".join([*written, line]) + "\n")
    return line


def main(argv: Sequence[str] | None = None) -> int:
    """Add the result of the last run (gate, slice, noisy, coverage, walks) to tests/runs.jsonl."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.record", description=main.__doc__)
    parser.add_argument("--remark", default="", help="what the figures do not say: cold, what ran beside it")
    options = parser.parse_args(argv)
    try:
        print(record(options.remark))
    except ValueError as refused:
        print(f"record: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
