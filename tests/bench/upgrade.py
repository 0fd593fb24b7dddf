"""How long an application commits nothing when it is upgraded, beside a driver pod made again by hand. Needs root.

A development cluster with the operator as the chart ships it, and one small application at a time, each with a driver
pod of its own. Upgrades and pods made by hand take turns, so that whatever else the machine does falls on both.
"""

import copy
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.bench.floor import bare
from tests.bench.options import bench_options
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_testing.commit_log import Batch, CommitWatch
from tidegate_testing.live_cluster import APPS, LiveCluster, live_cluster, operator_replicas, scale_operator
from tidegate_testing.waiting import wait_for

SCRIPTS = Path(__file__).parents[1] / "e2e" / "scripts"
SCRIPT, QUERY = "counting.py", "counting"
MODES = UPGRADE, BY_HAND = "upgrade", "by_hand"
WARM_SECONDS = 15.0
"""How long batches are committed before; the operator's going takes its place where it goes."""
LIMIT_SECONDS = 300.0
STABLE_AT_ONCE: Mapping[str, Any] = {"upgrade": {"stableBatches": 1}}
"""The first version is stable with its first batch, so that it can be upgraded."""


@dataclass(frozen=True)
class Trial:
    """From the last batch of the old driver to the first one of the new, in seconds."""

    mode: str
    gap: float


def main(arguments: Sequence[str]) -> int:
    """Upgrade an application; its last batch to the first of the new version, over a driver pod made again by hand."""
    parser = bench_options("upgrade", main.__doc__, on_cluster=True)
    parser.add_argument("--trials", type=int, default=5, help="trials of each mode")
    options = parser.parse_args(arguments)
    files = {path.name: path.read_text() for path in SCRIPTS.glob("*.py")}
    bucket = f"upgrade-{int(time.time())}"
    with live_cluster(options.cluster, bucket=bucket, namespace="bench", files=files, say=say) as live:
        trials = _all(live, options.trials)
    print_report("upgrade", results(trials), {"trials": options.trials, "samples": samples(trials)})
    return 0


def results(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the medians of both modes and their ratio; pure."""
    gaps = {mode: statistics.median(t.gap for t in trials if t.mode == mode) for mode in (UPGRADE, BY_HAND)}
    found = {"gap_ratio": gaps[UPGRADE] / gaps[BY_HAND]}
    return found | {f"gap_seconds_{mode}": gap for mode, gap in gaps.items()}


def samples(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Return every gap by mode, in the order in which they were measured; pure."""
    return {mode: [round(trial.gap, 2) for trial in trials if trial.mode == mode] for mode in (UPGRADE, BY_HAND)}


def gap_at(commits: Sequence[Batch], started: float) -> float:
    """Return the time between the last commit before ``started`` and the first one after it, 0 if there is none; pure.

    ``started`` is when the new driver's container was: no other one runs then.
    """
    before, after = ([c.time for c in commits if (c.time > started) is later] for later in (False, True))
    return min(after) - max(before) if before and after else 0.0


def of_the_next_epoch(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a driver pod's body with the next epoch in its configuration; pure.

    An epoch belongs to one pod: the storage's fence turns away another one.
    """
    body = copy.deepcopy(dict(pod))
    variables = [variable for container in body["spec"]["containers"] for variable in container.get("env", [])]
    (given,) = [variable for variable in variables if variable["name"] == CONFIG_VARIABLE]
    config = json.loads(given["value"])
    given["value"] = json.dumps({**config, "epoch": config["epoch"] + 1})
    return body


# --- the run ---------------------------------------------------------------------------------------------------------


def _all(live: LiveCluster, rounds: int) -> list[Trial]:
    trials: list[Trial] = []
    say("one upgrade that does not count, for caches")
    _trial(live, "warm-up", UPGRADE)
    for number, mode in enumerate(turns(MODES, rounds), 1):
        trials.append(_trial(live, f"trial-{number}", mode))
        say(f"{number}: {mode}: gap {trials[-1].gap:.1f} s")
    return trials


def _trial(live: LiveCluster, app: str, mode: str) -> Trial:
    live.tools.apply(live.app(app, SCRIPT, [], STABLE_AT_ONCE))
    log = live.commit_log(app, QUERY)
    log.await_commit_after(0.0, LIMIT_SECONDS)
    wait_for(f"a stable version of {app}", lambda: _status(live, app).get("lastStable"), LIMIT_SECONDS)
    replicas = operator_replicas(live)
    ready = time.monotonic() + WARM_SECONDS
    try:
        if mode == BY_HAND:
            scale_operator(live, 0)
        time.sleep(max(0.0, ready - time.monotonic()))
        with CommitWatch(log, 0.05) as watch:
            before = _driver(live, app)
            (_upgrade if mode == UPGRADE else _make_again)(live, app, before)
            started = wait_for("the new driver", lambda: _start_of_another(live, app, before), LIMIT_SECONDS, 0.2)
            gap = wait_for("its first batch", lambda: gap_at(watch.commits(), started), LIMIT_SECONDS, 0.1)
    finally:
        if mode == BY_HAND:
            scale_operator(live, replicas)
    live.delete_app(app)
    return Trial(mode, gap)


def _upgrade(live: LiveCluster, app: str, before: Mapping[str, Any]) -> None:
    """Change the spec as little as can be."""
    del before
    change = '{"spec":{"application":{"args":["another version"]}}}'
    live.tools.ctl("patch", "sapp", app, "-n", live.namespace, "--type=merge", "-p", change)


def _make_again(live: LiveCluster, app: str, before: Mapping[str, Any]) -> None:
    """Delete the driver's pod and create it again as the next epoch, as a person would who has saved it before."""
    name = f"{app}-driver"
    body = of_the_next_epoch(bare(before, name))
    body["metadata"] |= {"namespace": live.namespace, "ownerReferences": before["metadata"]["ownerReferences"]}
    body |= {"apiVersion": "v1", "kind": "Pod"}
    live.tools.ctl("delete", "pod", name, "-n", live.namespace, "--wait", timeout=LIMIT_SECONDS)
    live.tools.apply(body)


def _start_of_another(live: LiveCluster, app: str, before: Mapping[str, Any]) -> float:
    """Return when the container of another driver pod than ``before`` started, 0 if there is none yet."""
    pod = live.pod(f"{app}-driver")
    if pod is None or pod["metadata"]["uid"] == before["metadata"]["uid"]:
        return 0.0
    for status in pod["status"].get("containerStatuses", []):
        if "running" in status["state"]:
            return datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()
    return 0.0


def _driver(live: LiveCluster, app: str) -> dict[str, Any]:
    pod = live.pod(f"{app}-driver")
    assert pod is not None, f"{app} has no driver pod"
    return pod


def _status(live: LiveCluster, app: str) -> dict[str, Any]:
    found = live.get(APPS.format(live.namespace, app))
    status: dict[str, Any] = (found or {}).get("status", {})
    return status
