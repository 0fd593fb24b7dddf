"""How long an application is without a committed batch when its driver is killed, beside a cold start. Needs root.

A development cluster with the operator as the chart ships it, and one small application at a time. Each trial has a pod
of its own, so that the kubelet restarts it at once: cold start first, then the kill. With the operator and without it,
trials take turns, so that whatever else the machine does falls on both.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.options import bench_options
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate_testing.live_cluster import LiveCluster, live_cluster, operator_replicas, scale_operator
from tidegate_testing.pod_processes import Choice, find, is_jvm, runs_script
from tidegate_testing.waiting import wait_for

SCRIPTS = Path(__file__).parents[1] / "e2e" / "scripts"
SCRIPT, QUERY = "counting.py", "counting"
MODES = UP, DOWN = "operator_up", "operator_down"
VICTIMS: Mapping[str, Choice] = {"jvm": is_jvm, "python": runs_script}
WARM_SECONDS = 15.0
"""How long batches are committed before the kill; the operator's going takes its place where it goes."""
LIMIT_SECONDS = 300.0
DEAD_SECONDS = 1.0
"""No JVM starts in this time: a commit so soon after the kill was still on its way to the store."""


@dataclass(frozen=True)
class Trial:
    """One pod's cold start and the gap after its driver was killed, in seconds."""

    mode: str
    cold: float
    gap: float


def main(arguments: Sequence[str]) -> int:
    """Kill a driver; time to the next committed batch, over a cold start's, with the operator running and stopped."""
    parser = bench_options("recovery", main.__doc__, on_cluster=True)
    parser.add_argument("--trials", type=int, default=5, help="trials of each mode")
    parser.add_argument("--victim", choices=sorted(VICTIMS), default="jvm", help="which of the driver's processes dies")
    options = parser.parse_args(arguments)
    files = {path.name: path.read_text() for path in SCRIPTS.glob("*.py")}
    bucket = f"recovery-{int(time.time())}"
    with live_cluster(options.cluster, bucket=bucket, namespace="bench", files=files, say=say) as live:
        trials = _all(live, options.trials, VICTIMS[options.victim])
    parameters = {"trials": options.trials, "victim": options.victim, "samples": samples(trials)}
    print_report("recovery", results(trials), parameters)
    return 0


def results(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the medians of both modes and their ratios; pure."""
    found: dict[str, float] = {}
    for mode in (UP, DOWN):
        cold = statistics.median(trial.cold for trial in trials if trial.mode == mode)
        gap = statistics.median(trial.gap for trial in trials if trial.mode == mode)
        found |= {f"gap_ratio_{mode}": gap / cold, f"gap_seconds_{mode}": gap, f"cold_start_seconds_{mode}": cold}
    return found


def samples(trials: Sequence[Trial]) -> dict[str, list[dict[str, float]]]:
    """Return every trial by mode, in the order in which they were made; pure."""
    return {
        mode: [
            {"cold_start_seconds": round(trial.cold, 2), "gap_seconds": round(trial.gap, 2)}
            for trial in trials
            if trial.mode == mode
        ]
        for mode in (UP, DOWN)
    }


def _all(live: LiveCluster, rounds: int, victim: Choice) -> list[Trial]:
    trials: list[Trial] = []
    say("one start that does not count, for caches")
    _cold_start(live, "warm-up")
    live.delete_app("warm-up")
    for number, mode in enumerate(turns(MODES, rounds), 1):
        trials.append(_trial(live, f"trial-{number}", mode, victim))
        say(f"{number}: {mode}: cold start {trials[-1].cold:.1f} s, gap {trials[-1].gap:.1f} s")
    return trials


def _trial(live: LiveCluster, app: str, mode: str, victim: Choice) -> Trial:
    cold = _cold_start(live, app)
    replicas = operator_replicas(live)
    killable = time.monotonic() + WARM_SECONDS
    try:
        if mode == DOWN:
            scale_operator(live, 0)
        time.sleep(max(0.0, killable - time.monotonic()))
        gap = _gap(live, app, victim)
    finally:
        if mode == DOWN:
            scale_operator(live, replicas)
    live.delete_app(app)
    return Trial(mode, cold, gap)


def _cold_start(live: LiveCluster, app: str) -> float:
    """Apply an application; return the seconds from its pod's creation to its first committed batch."""
    live.tools.apply(live.app(app, SCRIPT, []))
    wait_for(f"the driver pod of {app}", lambda: live.pod(f"{app}-driver"), LIMIT_SECONDS, 0.02)
    created = time.time()
    first = live.commit_log(app, QUERY).await_commit_after(0.0, LIMIT_SECONDS)
    # No task of the batch ran elsewhere: a driver in client mode has no executor of its own.
    return first.time - created


def _gap(live: LiveCluster, app: str, victim: Choice) -> float:
    """Kill the driver; return the seconds to the next committed batch."""
    pod = live.pod(f"{app}-driver")
    assert pod is not None, f"{app} has no driver pod"
    (status,) = pod["status"]["containerStatuses"]
    assert status["restartCount"] == 0, f"{app} was restarted before it was killed"
    process = find(live.cluster, pod, "driver", victim)
    killed = time.time()
    process.kill()
    commit = live.commit_log(app, QUERY).await_commit_after(killed + DEAD_SECONDS, LIMIT_SECONDS)
    return commit.time - killed
