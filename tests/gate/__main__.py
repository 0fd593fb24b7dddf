"""The command line of the gate: ``make test`` and ``make test-all``. Starts processes, writes into the cache."""

import argparse
import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from devcluster import environment, paths
from devcluster.cluster import Cluster
from tests.gate import durations, junit, promises, report
from tests.gate.base import note_passed
from tests.gate.record import note, of_this_machine
from tests.gate.reports import take
from tests.gate.run import Ended, printed, run
from tests.gate.slices import Slice, files_of, has_own_slice, own_slice
from tests.gate.tiers import CHECK, E2E, EVERYTHING, GATE, TIERS, Request, steps, workers
from tests.gate.tools import is_below, long_tests
from tidegate_testing.examples import FRESH_SEEDS

NAMES = (CHECK, *(tier.name for tier in TIERS))


def main() -> int:
    """Run what was asked for; print the table and a JSON line; return 0 if all passed."""
    options = _parser().parse_args()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Whoever was started in the background ignores it, and so would all tiers: none could be interrupted.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        record = durations.Durations.load()
        request = _request(options, record)
        own = take(request.reports)
    except ValueError as refused:
        printed(f"gate: {refused}")
        return 2
    if request.selection == EVERYTHING:
        os.environ[FRESH_SEEDS] = "1"
    warm = images_are_there(request)
    began = time.monotonic()
    try:
        ended = asyncio.run(_until_interrupted(request))
    except (KeyboardInterrupt, asyncio.CancelledError):
        printed("gate: interrupted; what it started is ended")
        return 130
    finally:
        _remove_clusters(request)
    with own:
        return _conclude(request, record, ended, (time.monotonic() - began) / 60, {"warm": warm})


def images_are_there(request: Request) -> bool:
    """Return whether images were there before: what a run built itself is part of its minutes."""
    return E2E not in request.tiers or (paths.cache() / "images" / "tidegate-spark.json").is_file()


async def _until_interrupted(request: Request) -> list[Ended]:
    task = asyncio.ensure_future(run(steps(request), printed))
    # A terminated gate cleans up as an interrupted one does.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _request(options: argparse.Namespace, record: durations.Durations) -> Request:
    """Build the request from options and environment; raise ValueError for what cannot be asked."""
    selection = EVERYTHING if options.all or options.slice or options.own_slice else GATE
    files: Mapping[str, Sequence[str]] = {}
    folders = {tier.name: tier.folders for tier in TIERS}
    if options.slice:
        seconds = {file: record.seconds(file, EVERYTHING) for file in durations.files() if not has_own_slice(file)}
        files = files_of(Slice.parse(options.slice), seconds, folders)
    if options.own_slice:
        files = own_slice(durations.files(), folders)
    given = os.environ.get(environment.KUBECONFIG) or os.environ.get("TIDEGATE_E2E_CLUSTER")
    reports = Path(os.environ.get("TIDEGATE_REPORTS") or paths.cache() / "gate" / "reports")
    return Request(
        tiers=tuple(options.only or (files if options.own_slice else NAMES)),
        selection=selection,
        workers=workers(options.workers),
        reports=reports,
        files=files,
        arguments=tuple(options.arguments),
        foreign_cluster=bool(given),
    )


def _remove_clusters(request: Request) -> None:
    """Remove what an end-to-end worker leaves behind that was killed: a cluster with all its processes and mounts."""
    if E2E in request.tiers and not request.foreign_cluster:
        for number in range(request.workers):
            if paths.state(f"e2e-gw{number}").exists():
                Cluster(f"e2e-gw{number}").down()


def _conclude(
    request: Request, record: durations.Durations, ended: Sequence[Ended], minutes: float, facts: Mapping[str, object]
) -> int:
    cases = {each.step.name: junit.read(request.reports / f"{each.step.name}.xml") for each in ended}
    lines = [_line(each, cases[each.step.name], record, request) for each in ended]
    whole = request.selection == GATE and not request.arguments
    gate = whole and request.tiers == NAMES
    ran = junit.by_file(case for tier in cases.values() for case in tier)
    problems = _unproven(request, record, lines, ran) if whole else []
    kept, proven = promises.check(request.reports) if gate else (promises.KEPT, [])
    Console(width=100).print(report.table(lines, minutes, "make test" if whole else "tests"))
    for remark in [*report.over_budget(lines), *durations.slower(record, ran, request.selection)]:
        printed(f"slower than usual: {remark}")
    for remark in [*(f"gate: {problem}" for problem in problems), *proven]:
        printed(remark)
    summary = report.summary(lines, minutes, {**_facts(request), **facts})
    (request.reports / "run.json").write_text(json.dumps(summary) + "\n")
    note(summary)
    everything = [case for tier in cases.values() for case in tier]
    for failure in report.failures(everything):
        printed(failure)
    printed(f"{report.count(everything, junit.PASSED)} passed, {report.count(everything, junit.FAILED)} failed")
    printed(json.dumps(summary))
    if not summary["passed"] or problems or kept != promises.KEPT:
        return 1
    if gate:
        note_passed()
    return 0


def _line(each: Ended, cases: Sequence[junit.Case], record: durations.Durations, request: Request) -> report.Line:
    budget = record.budgets.get(each.step.name) if request.selection == GATE else None
    return report.Line(each.step.name, each.code, cases, each.seconds / 60, budget)


def _unproven(
    request: Request, record: durations.Durations, lines: Sequence[report.Line], ran: Mapping[str, float]
) -> list[str]:
    """Return what a run that passed does not show although it should: files of which no test ran."""
    passed = {line.name for line in lines if line.code == 0}
    folders = [folder for tier in TIERS if tier.name in passed for folder in tier.folders]
    unchanged = long_tests()
    return [
        f"no test of {file} ran; if that is meant, run: make durations"
        for file in durations.not_run(record, ran, folders)
        if not is_below(file, unchanged)
    ]


def _facts(request: Request) -> dict[str, object]:
    return {
        "run": "gate" if request.selection == GATE else "everything",
        "selection": request.selection,
        "whole": not request.arguments and not request.files,
        **of_this_machine(),
        "workers": request.workers,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description=__doc__)
    parser.add_argument("--all", action="store_true", help="the tests that are marked long, too, with fresh seeds")
    parser.add_argument("--slice", default="", help="of everything only a part: k/n")
    parser.add_argument(
        "--own-slice", action="store_true", help="only what no other slice has: the compatibility suite"
    )
    parser.add_argument("--only", action="append", choices=NAMES, help="this tier only; may be given several times")
    parser.add_argument("--workers", default=os.environ.get("WORKERS") or "2", help="processes for a tier")
    parser.add_argument("arguments", nargs="*", help="more arguments for pytest, after --")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
