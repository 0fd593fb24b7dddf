"""One run of chaos: application and load, one fault after the other, then the account. Starts servers, breaks them."""

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster import kafka
from devcluster.control import ComponentError
from tests.chaos.checker import Verdict, check
from tests.chaos.faults import FORGETTING, HARMLESS, OUTAGES, Change, Fault, Kind, Rescale
from tests.chaos.injection import Injector
from tests.chaos.load import Load, ends_of, read_topic
from tests.chaos.records import decode_output, decode_record
from tests.chaos.report import Outcome, Rescaled
from tests.chaos.rescaling import Rescaler
from tests.chaos.shots import Shot, TargetGoneError
from tests.chaos.snapshots import damaged
from tests.chaos.state import read_state
from tidegate_testing.asked_to_end import Stop, stop_on_signal
from tidegate_testing.commit_log import CommitWatch, LineageLogs, await_running, longest_gap
from tidegate_testing.live_cluster import APPS, LiveCluster
from tidegate_testing.waiting import wait_for

APP = QUERY = "accounts"
SCRIPT = "accounting.py"
SCRIPTS = Path(__file__).parent / "scripts"
PARTITIONS = 4
FIRST_COMMIT_SECONDS = 600.0
COMMITS_THAT_PROVE = 2
"""So many commits after a fault mean that batches are committed again: one could still be of before."""
LONGEST_PAUSE = 4.0
IN_A_REPARTITION = 12.0
"""About as long as its pod is at work, in seconds."""
SHOTS = 5
"""So often a fault is aimed again whose target went away meanwhile."""
DRAIN_SECONDS = 240.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How a run is to be."""

    rate: float
    keys: int
    outage: float
    """How long S3, Kafka and the catalog stay away, and a quota is in force, in seconds."""
    limit: float
    """The longest that is waited for batches to be committed again after a fault, in seconds."""
    minutes: float
    """The longest that faults are injected for."""
    plant: str
    executors: int


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    outcomes: tuple[Outcome, ...]
    verdict: Verdict
    seconds: float
    problems: tuple[str, ...]
    """What else is wrong with the run or the application, each in a sentence."""
    rescaled: Rescaled = field(default_factory=Rescaled)
    signal: int = 0
    """By which it was asked to end before all faults had happened; 0: by none."""


def run(live: LiveCluster, plan: list[Fault], settings: Settings, say: Say) -> Result:
    """Run the plan and account for everything; the application is gone afterwards.

    The first SIGTERM or SIGINT while faults are injected has it end after the present one, with its account.

    Raises:
        AssertionError: the application did not start, or what is needed for the account could not be had.
    """
    began = time.monotonic()
    records, accounts = f"records-{live.bucket}", f"accounts-{live.bucket}"
    for topic in (records, accounts):
        kafka.create_topic(live.site.kafka_host, topic, PARTITIONS)
    log = live.lineage_logs(APP, QUERY)
    rescaler = Rescaler(Resource(live), settings.executors, say)
    with Load(live.site.kafka_host, records, keys=settings.keys, rate=settings.rate) as load, CommitWatch(log) as watch:
        _start(live, settings, {"records": records, "accounts": accounts}, log)
        say("batches are committed; faults begin")
        runner = _Runner(live, settings, watch, rescaler, say)
        with stop_on_signal() as stop:
            outcomes = runner.all(plan, began + 60 * settings.minutes, stop)
        problems = _settle(live, rescaler, say)  # under load: without input no version is stable
        say(f"load ends: {load.sent:,} records sent")
        load.stop()
        problems += [*_of_load(load), *_of_plan(outcomes, plan, stop), *rescaler.problems, *runner.problems]
        problems += _drain(live, log, records, say)
        problems += _of_watch(watch)
        problems += _of_snapshots(live, log)
    say("the application is deleted, its storage stays")
    problems += _delete(live)
    problems += _of_checkpoint(log)
    verdict, missing = _account(live, log, load, records, accounts)
    seconds = time.monotonic() - began
    return Result(tuple(outcomes), verdict, seconds, (*problems, *missing), rescaler.rescaled, stop.number)


class Resource:
    """The application's resource in the API."""

    def __init__(self, live: LiveCluster) -> None:
        """Look at and change the one of the run."""
        self._live, self._path = live, APPS.format(live.namespace, APP)

    def get(self) -> dict[str, Any]:
        """Return it; raise OSError if the API server does not answer."""
        found: dict[str, Any] = self._live.api.get(self._path)
        return found

    def patch(self, spec: Mapping[str, Any]) -> None:
        """Merge ``spec`` into its spec; raise OSError likewise."""
        self._live.api.merge(self._path, {"spec": spec})


def _start(live: LiveCluster, settings: Settings, topics: Mapping[str, str], log: LineageLogs) -> None:
    """Start the application again and wait until it commits batches."""
    live.delete_app(APP)
    arguments = [f"--{name}={topic}" for name, topic in topics.items()]
    arguments += [f"--brokers={live.site.kafka_pods}", f"--plant={settings.plant}"]
    spec = {
        "driver": {"resources": {"requests": {"cpu": "200m", "memory": "1500Mi"}}},
        "executor": {"instances": settings.executors, "resources": {"requests": {"cpu": "200m", "memory": "1400Mi"}}},
        "state": {
            "partitions": PARTITIONS,
            "repartition": {"resources": {"requests": {"cpu": "200m", "memory": "1500Mi"}}},
        },
        # Every kill of a driver is a failure of the application's, and this many in an hour are what is wanted here.
        "restart": {"maxFailures": 100},
        # So that there is a catalog, another one every time, and files that only it and the manifests keep.
        "snapshots": {"intervalSeconds": 120, "retention": {"maxCount": 3}},
    }
    live.tools.apply(live.app(APP, SCRIPT, arguments, spec))
    wait_for("the first commits", lambda: len(log.committed()) >= COMMITS_THAT_PROVE, FIRST_COMMIT_SECONDS)


class _Runner:
    """Injects the faults of a plan, each after the one before it was survived."""

    def __init__(self, live: LiveCluster, settings: Settings, watch: CommitWatch, rescaler: Rescaler, say: Say) -> None:
        self._live, self._settings, self._watch, self._rescaler, self._say = live, settings, watch, rescaler, say
        self._injector = Injector(live, APP)
        self.problems: list[str] = []
        """What stopped batches that should not have, each in a sentence."""

    def all(self, plan: list[Fault], deadline: float, stop: Stop) -> list[Outcome]:
        """Return what became of each fault; ends early when asked, at the deadline, or when one was not survived."""
        outcomes: list[Outcome] = []
        for fault in plan:
            if stop:
                self._say(f"asked to end after {len(outcomes)} of {len(plan)} faults")
                break
            self._injector.note()
            if time.monotonic() > deadline:
                self._say(f"time is up after {len(outcomes)} of {len(plan)} faults")
                break
            try:
                outcomes.append(self._one(fault))
            except (AssertionError, OSError, ComponentError) as failed:
                self._say(f"{fault}: could not be injected: {failed}\n{self._live.diagnosis(APP)}")
                break
            self._say(_line(outcomes[-1]))
            if outcomes[-1].recovered is None:
                self._say(self._live.diagnosis(APP))
                break
        return outcomes

    def _one(self, fault: Fault) -> Outcome:
        if fault.change is not None and not _repartitions_by_itself(fault):
            self._rescaler.change(fault.change)
        for _ in range(SHOTS - 1):
            with contextlib.suppress(TargetGoneError):
                return self._shoot(fault)
        return self._shoot(fault)

    def _shoot(self, fault: Fault) -> Outcome:
        if fault.kind is Kind.REPARTITION_POD:
            self._rescaler.change(Change(Rescale.PARTITIONS, fault.moment))
        shot = self._injector.aim(fault)
        self._await_moment(fault)
        running = self._watch.log.running()
        before = self._watch.commits()
        fired = time.time()
        shot.fire()
        inside = running is not None and self._watch.log.committed().get(running.number, fired) >= fired
        if fault.kind in OUTAGES:
            time.sleep(self._settings.outage)
        if fault.kind in HARMLESS and not self._rescaler.under_way and self._watch.commits()[-1].time < fired:
            self.problems.append(f"{fault}: no batch was committed meanwhile")
        if fault.kind in FORGETTING:
            self._rescaler.forget()
        shot.heal()
        recovered = self._recovered(shot, time.time())
        gap = longest_gap(self._watch.commits(), fired, recovered or time.time())
        if recovered is None:
            gap = max(gap, time.time() - (before[-1].time if before else fired))
        since = before[-2].time if len(before) > 1 else 0.0
        return Outcome(fault, shot.target, fired, inside, since, recovered, gap)

    def _await_moment(self, fault: Fault) -> None:
        if not fault.inside:
            time.sleep(fault.moment * (IN_A_REPARTITION if fault.kind is Kind.REPARTITION_POD else LONGEST_PAUSE))
            return
        commits = [batch.time for batch in self._watch.commits()[-6:]]
        usual = (commits[-1] - commits[0]) / (len(commits) - 1) if len(commits) > 1 else 1.0
        batch = await_running(self._watch.log, self._settings.limit)
        # Half of the usual time between two commits is about what a batch takes; the rest is waiting for the trigger.
        time.sleep(max(0.0, batch.time + min(usual, 2.0) / 2 * fault.moment - time.time()))

    def _recovered(self, shot: Shot, healed: float) -> float | None:
        """Wait until the fault is past and batches are committed again; return when they were."""
        deadline = time.monotonic() + self._settings.limit
        past = healed
        while not _quietly(shot.past):
            if time.monotonic() > deadline:
                return None
            time.sleep(0.2)
            past = time.time()
        while time.monotonic() <= deadline:
            since = [batch for batch in self._watch.commits() if batch.time > past]
            if len(since) >= COMMITS_THAT_PROVE:
                return since[COMMITS_THAT_PROVE - 1].time
            time.sleep(0.1)
        return None


def _repartitions_by_itself(fault: Fault) -> bool:
    """Return whether a fault has the state divided for itself, and the change before it is to do that, too."""
    change = fault.change
    return fault.kind is Kind.REPARTITION_POD and change is not None and change.what is Rescale.PARTITIONS


def _quietly(probe: Callable[[], bool]) -> bool:
    try:
        return probe()
    except OSError:
        return False


def _line(outcome: Outcome) -> str:
    state = "survived" if outcome.recovered is not None else "NOT SURVIVED"
    missed = " (the batch ended first)" if outcome.fault.inside and not outcome.inside else ""
    return f"{outcome.fault}{missed}: {outcome.target}: {state}, longest gap {outcome.gap:.1f} s"


# --- the account ------------------------------------------------------------------------------------------------------


def _settle(live: LiveCluster, rescaler: Rescaler, say: Say) -> list[str]:
    """Wait until nothing is divided any more."""
    try:
        rescaler.settle()
    except AssertionError as late:
        say(live.diagnosis(APP))
        return [str(late)]
    return []


def _drain(live: LiveCluster, log: LineageLogs, topic: str, say: Say) -> list[str]:
    """Wait until the newest committed batch ends where the topic ends, in the lineage that the application is in."""
    ends = {str(p): end for p, end in ends_of(live.site.kafka_host, topic).items()}

    def drained() -> bool:
        lineage = live.status(APP).get("lineage")
        assert lineage == log.lineage, f"lineage {lineage} is the application's, the last batch is in {log.lineage}"
        newest = max(log.committed(), default=-1)
        read = {p: end for source in log.ends(newest) for p, end in source.get(topic, {}).items()}
        assert read == ends, f"batch {newest} was read up to {read}, the topic ends at {ends}"
        return True

    try:
        wait_for("the application to have read everything", drained, DRAIN_SECONDS)
    except (AssertionError, OSError) as late:
        say(live.diagnosis(APP))
        return [str(late)]
    return []


def _delete(live: LiveCluster) -> list[str]:
    """Delete the application; what goes on running would go on writing what is about to be read."""
    try:
        live.delete_app(APP)
    except (AssertionError, OSError) as stuck:
        return [f"the application could not be deleted: {stuck}"]
    return []


def _account(live: LiveCluster, log: LineageLogs, load: Load, records: str, accounts: str) -> tuple[Verdict, list[str]]:
    brokers = live.site.kafka_host
    inputs = [decode_record(*read) for read in read_topic(brokers, records)]
    outputs = [decode_output(read.time, read.content) for read in read_topic(brokers, accounts)]
    held = {(record.key, record.number) for record in inputs}
    absent = len(load.confirmed - held)
    missing = [f"the broker lost {absent} records that it had confirmed: this run proves nothing"] if absent else []
    return check(inputs, outputs, read_state(log.checkpoint)), missing


def _of_load(load: Load) -> list[str]:
    waiting = load.sent - len(load.confirmed)
    found = [f"the broker refused {len(load.refused)} records, such as {load.refused[0]}"] if load.refused else []
    return found + ([f"{waiting} records were never confirmed by the broker"] if waiting else [])


def _of_plan(outcomes: list[Outcome], plan: list[Fault], stop: Stop) -> list[str]:
    failed = [f"{outcome.fault} was not survived" for outcome in outcomes if outcome.recovered is None]
    is_short = len(outcomes) < len(plan) and not (stop and outcomes)  # who asked it to end goes on after them
    return failed + ([f"only {len(outcomes)} of {len(plan)} faults happened"] if is_short else [])


def _of_watch(watch: CommitWatch) -> list[str]:
    batches = ", ".join(map(str, sorted(watch.rewritten)))
    twice = [f"batches committed twice, as by two drivers: {batches}"] if batches else []
    return twice + [f"{place} was gone on with after {later} had begun" for place, later in overlaps(watch)]


def _of_snapshots(live: LiveCluster, log: LineageLogs) -> list[str]:
    try:
        found = live.api.get(APPS.format(live.namespace, "").replace("streamingapps", "streamsnapshots").rstrip("/"))
    except OSError as refused:
        return [f"the snapshots could not be listed: {refused}"]
    return damaged(found["items"], log.lineages.parent)


def overlaps(watch: CommitWatch) -> list[tuple[Path, Path]]:
    """Return pairs of checkpoints of which the earlier one has a commit after the later one's first, as by two."""
    used = [(place, batches) for place, batches in watch.by_checkpoint().items() if batches]
    return [
        (place, later)
        for (place, batches), (later, others) in itertools.combinations(used, 2)
        if batches[-1].time > others[0].time
    ]


def _of_checkpoint(log: LineageLogs) -> list[str]:
    planned, committed = max(log.planned(), default=-1), max(log.committed(), default=-1)
    return [f"after deletion, offsets end at {planned} and commits at {committed}"] if planned != committed else []


def parameters(settings: Settings, **others: object) -> dict[str, object]:
    """Return the settings of a run for its report."""
    return {**dataclasses.asdict(settings), **others}
