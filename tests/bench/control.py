"""What control messages cost a pipeline in Python, and how soon they are in force, few or many of them.

Drivers with a Spark of their own in local mode, a real S3 server and a real Kafka broker, all on this machine. Whatever
is compared takes turns within the run, and differs in what is asked about alone.
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench import control_results as figures
from tests.bench.control_apps import (
    HEAP_MIB,
    INBOX,
    LIMIT_SECONDS,
    SCRIPT,
    AgentSender,
    InboxSender,
    Judging,
    Sender,
    Topic,
    start_kafka,
)
from tests.bench.control_results import KINDS, LOGS, LONG, Burst, Latency, Window
from tests.bench.options import bench_options
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate_spark.contract.control_protocol import CONTROL_COMMAND, RELOAD_CONFIG
from tidegate_testing.commit_log import CommitWatch
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.local_apps import LocalApps
from tidegate_testing.waiting import wait_for

WARM_BATCHES = 3
"""Of each window: what a query needs to begin is not counted."""
AGE_BATCHES = 20
"""Of a driver before its batches are counted: about as many as pass while the long log is filled."""
FEW_MESSAGES = 10
TICKS = 20
"""Of a burst, in a second."""
REPLY_SECONDS = 60.0
PACE = 2.5
"""Messages in a second, on each channel, whose latency is measured."""

Part = tuple[dict[str, float], Any]
"""Figures, and what they are made of."""


def main(arguments: Sequence[str]) -> int:
    """Tell a pipeline things; its throughput, how soon messages are in force, a long log, bursts."""
    parser = bench_options("control", main.__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parser.add_argument("--pairs", type=int, default=10, help="of windows: throughput and long-log")
    parser.add_argument("--batches", type=int, default=24, help="counted in a window")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a batch: throughput and long-log")
    parser.add_argument("--messages", type=int, default=10_000, help="in the long log")
    parser.add_argument("--interval", type=float, default=1.0, help="of the trigger, in seconds: latency and bursts")
    parser.add_argument("--trigger-rows", type=int, default=100_000, help="of a batch there")
    parser.add_argument("--timed", type=int, default=400, help="messages on each channel whose latency is measured")
    parser.add_argument("--rate", type=int, default=1000, help="messages of a burst in a second")
    parser.add_argument("--seconds", type=int, default=30, help="of a burst")
    options = parser.parse_args(arguments)
    found: dict[str, float] = {}
    samples: dict[str, Any] = {}
    with LocalApps() as apps:
        has_broker = False
        for part in (part for part in PARTS if part in options.only):
            if part in OF_BROKER and not has_broker:
                start_kafka(apps)
                has_broker = True
            more, samples[part] = PARTS[part](apps, options)
            found |= more
            say(f"{part}: {json.dumps(more)}")
    print_report("control", found, {**vars(options), "samples": samples})
    return 0


# --- throughput ------------------------------------------------------------------------------------------------------


def _throughput(apps: LocalApps, options: argparse.Namespace) -> Part:
    """Run one process in which the pipeline runs with and without, by turns.

    One JVM for both: two compile the same code differently, by more than what is asked about. The first round does not
    count.
    """
    kinds = turns(KINDS, options.pairs + 1)
    arguments = (str(options.rows), "alternate", str(WARM_BATCHES), str(options.batches), *kinds)
    driver = apps.start("throughput", SCRIPT, arguments, driver_heap_mib=HEAP_MIB)
    wait_for("an agent", driver.report, LIMIT_SECONDS, 0.1)
    driver.command(
        "POST", CONTROL_COMMAND, {"messages": [{"id": "m", "type": RELOAD_CONFIG, "payload": '{"limit": 50}'}]}
    )
    logs = {kind: apps.commit_log("throughput", kind) for kind in KINDS}
    windows: list[Window] = []
    for number, kind in enumerate(kinds):
        said = _await_window(driver, number)
        times = logs[kind].committed()
        seconds = times[said["last"]] - times[said["first"]]
        windows.append(Window(kind, seconds, said["last"] - said["first"], said["first"] + 1))
        counts = "" if number >= len(KINDS) else ", does not count"
        say(f"throughput {number + 1} of {len(kinds)}: {kind}: {windows[-1].batch_seconds:.3f} s a batch{counts}")
    driver.kill()
    counted = windows[len(KINDS) :]
    return figures.throughput(counted, options.rows), figures.samples(counted)


def _await_window(driver: DriverProcess, number: int) -> dict[str, Any]:
    """Return what the script says of its window of this number, once it is over."""

    def probe() -> str:
        said = [line.partition(" ")[2] for line in driver.output.splitlines() if line.startswith("window ")]
        if len(said) <= number and driver.ended():
            raise RuntimeError(f"the driver ended: {driver.output[-3000:]}")
        return said[number] if len(said) > number else ""

    found: dict[str, Any] = json.loads(wait_for(f"window {number}", probe, 2 * LIMIT_SECONDS, 0.5))
    return found


# --- long logs -------------------------------------------------------------------------------------------------------


def _long_log(apps: LocalApps, options: argparse.Namespace) -> Part:
    """Run drivers that took in many messages, and such that took in few, by turns.

    Each is a new one of a new application: a process that starts with a long log reads its end alone, so it has to be
    one that lived through all of it.
    """
    windows: list[Window] = []
    for number, kind in enumerate(turns(LOGS, options.pairs)):
        app = Judging(apps, f"{kind}-{number}", options.rows)
        app.fill(options.messages if kind == LONG else FEW_MESSAGES)
        first = max(AGE_BATCHES, *app.log.committed()) + 1
        began = app.until_batch(first)
        seconds = app.until_batch(first + options.batches) - began
        app.driver.kill()
        windows.append(Window(kind, seconds, options.batches, first + 1))
        say(f"long-log {number + 1} of {2 * options.pairs}: {kind}: {windows[-1].batch_seconds:.3f} s a batch")
    return figures.long_log(windows), figures.samples(windows)


# --- latency ---------------------------------------------------------------------------------------------------------


def _latency(apps: LocalApps, options: argparse.Namespace) -> Part:
    """Send messages at random moments, and see from when on tasks find them in force.

    Those of ``storage`` are given to the driver's agent, as ControlMessages are; the others are written to a topic.
    """
    topic = Topic(apps)
    app = Judging(apps, "latency", options.trigger_rows, options.interval, channel=topic.channel)
    senders: list[Sender] = [AgentSender(app.driver), topic.sender()]
    app.until_connected()
    app.until_batch(AGE_BATCHES)
    sent: dict[str, dict[int, float]] = {sender.key: {} for sender in senders}
    duration = options.timed / PACE
    plan = sorted(
        (moment, turn) for turn in range(len(senders)) for moment in figures.moments(options.timed, duration, turn)
    )
    say(f"latency: {options.timed} messages on each channel, {duration:.0f} s")
    with CommitWatch(app.log, 0.2) as watch:
        began = time.time()
        for place, (moment, turn) in enumerate(plan):
            _sleep_until(began + moment)
            at = senders[turn].send()
            sent[senders[turn].key][senders[turn].number] = at
            if place % 50 == 0:
                app.in_force(senders[0])
        found = {sender.key: _await_all(app, sender) for sender in senders}
        app.until_batch(max(each.batch for ones in found.values() for each in ones.values()))
        commits = {batch.number: batch.time for batch in watch.commits()}
    measured = [each for key in sent for each in figures.latencies(key, sent[key], found[key], commits)]
    batch_seconds = _batch_seconds(app)
    app.driver.kill()
    return figures.latency(measured, options.interval, batch_seconds), _latency_samples(measured)


def _await_all(app: Judging, sender: Sender) -> Mapping[int, figures.InForce]:
    sender.finish()

    def probe() -> Mapping[int, figures.InForce]:
        found = app.in_force(sender)
        assert len(found) == sender.number, f"{len(found)} of {sender.number}"
        return found

    found = wait_for(f"all of {sender.key} in force", probe, LIMIT_SECONDS, 0.5)
    sender.finish()
    return found


def _batch_seconds(app: Judging) -> float:
    """Return the median time between a batch's two entries in Spark's logs, of the newest batches."""
    planned, committed = app.log.planned(), app.log.committed()
    return statistics.median(committed[batch] - planned[batch] for batch in planned.keys() & committed.keys())


def _latency_samples(measured: Sequence[Latency]) -> dict[str, list[float]]:
    return {
        channel: [round(each.used, 3) for each in measured if each.channel == channel] for channel in figures.CHANNELS
    }


# --- bursts ----------------------------------------------------------------------------------------------------------


def _bursts(apps: LocalApps, options: argparse.Namespace) -> Part:
    """Send many messages in a short time, to an application with an inbox by the library's writer, and to a topic."""
    found, replied = [], {}
    for key in figures.CHANNELS:
        burst, reported = _burst_on(apps, key, options)
        found.append(burst)
        replied[f"burst_replied_{key}"] = reported / burst.sent
    return figures.bursts(found) | replied, figures.samples(found)


def _burst_on(apps: LocalApps, key: str, options: argparse.Namespace) -> tuple[Burst, int]:
    """Return what came of a burst on one channel, and how many messages were told of."""
    topic = Topic(apps) if key == figures.KAFKA else None
    name = f"burst-{key}"
    channel = topic.channel if topic is not None else INBOX
    app = Judging(apps, name, options.trigger_rows, options.interval, channel=channel)
    app.until_connected()
    app.until_batch(AGE_BATCHES)
    inbox = InboxSender(apps, name)
    burst = _burst(app, topic.sender() if topic is not None else inbox, options)
    say(f"burst: {key}: replies")
    replies = topic.replies if topic is not None else inbox.replies
    end = time.monotonic() + REPLY_SECONDS
    while (reported := replies()) < burst.sent and time.monotonic() < end:
        time.sleep(1)
    app.driver.kill()
    return burst, reported


def _burst(app: Judging, sender: Sender, options: argparse.Namespace) -> Burst:
    before, began = _logged(app), time.time()
    at = began
    for tick in range(options.seconds * TICKS):
        _sleep_until(began + tick / TICKS)
        at = sender.send(options.rate // TICKS)
        if tick % TICKS == 0:
            app.in_force(sender)
    rate = sender.number / (at - began + 1 / TICKS)
    say(f"burst: {sender.key}: {sender.number} messages, {rate:.0f} in a second")
    try:
        lag = _await_all(app, sender)[sender.number].time - at
    except AssertionError as never:
        say(f"burst: {never}")
        lag = LIMIT_SECONDS
    burst = Burst(sender.key, sender.number, rate, options.rate, _logged(app) - before, lag)
    say(f"burst: {sender.key}: in force {lag:.2f} s after the last, {burst.logged} in the log")
    return burst


def _logged(app: Judging) -> int:
    """Return how many messages of the channel are in the log."""
    reported = app.control()
    return reported.channel.received if reported.channel is not None else 0


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


PARTS = {"throughput": _throughput, "long-log": _long_log, "latency": _latency, "burst": _bursts}
OF_BROKER = ("latency", "burst")
"""Those beside which a broker runs: it is not there before."""
