"""What holds for every schedule of snapshots, whatever clocks, people and failures do to it. Pure."""

import contextlib
import datetime
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.stream_snapshot import (
    ANNOTATION_KEEP,
    SnapshotApp,
    SnapshotPhase,
    SnapshotQuery,
    StreamSnapshot,
    StreamSnapshotSpec,
    StreamSnapshotStatus,
    is_scheduled,
)
from tidegate.api.streaming_app import Condition, LocalReference, Metadata, Phase, QueryStatus, StreamingApp
from tidegate.api.values.times import Interval, Schedule, ScheduleError, fault_of, next_time, previous_time
from tidegate.app.actions import CreateSnapshot
from tidegate.app.rules.schedule import evaluate_schedule
from tidegate.snapshots.actions import DeleteSnapshot, StampRetention
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_testing import plain_yaml
from tidegate_testing.observations import NOW, PLATFORM, app_with, launched, observe
from tidegate_testing.snapshot_observations import later_than

CRD = Path(__file__).parents[2] / "crds" / "streamingapps.tidegate.dev.yaml"
KEPT = 3
HOUR = 3600.0


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def application(schedule: dict[str, Any]) -> StreamingApp:
    spec = {**schedule, "retention": {"maxCount": KEPT, "maxAgeSeconds": 2592000}}
    return launched(app_with({"snapshots": spec}), phase=Phase.RUNNING, queries=(QueryStatus(name="main", batch_id=0),))


@dataclass
class World:
    """One application with a schedule, its snapshots, and two clocks that need not agree."""

    app: StreamingApp
    time: float = NOW
    """The API server's."""
    ahead: float = 0.0
    """By which the operator's clock is ahead of it."""
    snapshots: dict[str, StreamSnapshot] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    there: bool = True

    @property
    def now(self) -> float:
        return self.time + self.ahead

    def check(self) -> int:
        """Look at the application, then at each snapshot; return how many were made."""
        before = len(self.made)
        if self.there:
            o = observe(self.app, snapshots=tuple(self.snapshots.values()), last_snapshot=self.newest())
            check = evaluate_schedule(o, self.now)
            status = msgspec.structs.replace(self.app.status, snapshots=check.status)
            self.app = msgspec.structs.replace(self.app, status=status)
            for action in check.actions:
                if isinstance(action, CreateSnapshot):
                    self._make(action.manifest)
        for name in list(self.snapshots):
            self._look_at(name)
        return len(self.made) - before

    def _look_at(self, name: str) -> None:
        snapshot = self.snapshots[name]
        others = tuple(s for s in self.snapshots.values() if s is not snapshot)
        app = self.app if self.there else None
        later = later_than(snapshot, others)
        o = SnapshotObservation(snapshot, PLATFORM, app=app, later=later, clock_skew=self.ahead)
        newest = self.newest()
        for action in decide_snapshot(o, self.now).actions:
            if isinstance(action, DeleteSnapshot):
                assert newest is None or newest.metadata.name != name, "the newest was removed"
                assert is_scheduled(snapshot), "somebody's own was removed"
                self.removed.add(name)
                del self.snapshots[name]
                return
            if isinstance(action, StampRetention):
                annotations = {**snapshot.metadata.annotations, ANNOTATION_KEEP: action.text}
                metadata = msgspec.structs.replace(snapshot.metadata, annotations=annotations)
                self.snapshots[name] = msgspec.structs.replace(snapshot, metadata=metadata)

    def _make(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        assert name not in self.snapshots, "a time of the schedule was taken twice"
        self.made.append(name)
        given = manifest["metadata"]
        self.put(name, labels=given["labels"], annotations=given["annotations"])

    def put(self, name: str, **metadata: Any) -> None:
        known = Metadata(
            name=name, namespace="shop", uid=f"uid of {name}", creation_timestamp=at(self.time), **metadata
        )
        spec = StreamSnapshotSpec(app_ref=LocalReference(name="orders"))
        self.snapshots[name] = StreamSnapshot(metadata=known, spec=spec)

    def newest(self) -> StreamSnapshot | None:
        ready = [s for s in self.snapshots.values() if s.status.phase is SnapshotPhase.READY]
        return max(ready, key=lambda s: (s.metadata.creation_timestamp, s.metadata.name), default=None)

    def end(self, phase: SnapshotPhase) -> None:
        """All that are on their way are complete, or have failed."""
        for name, snapshot in self.snapshots.items():
            if snapshot.is_final:
                continue
            ready = Condition(type="Ready", status="True", reason="x", last_transition_time=at(self.time))
            queries = tuple(SnapshotQuery(name=q.name, batch_id=q.batch_id or 0) for q in self.app.status.queries)
            status = StreamSnapshotStatus(
                phase=phase, conditions=(ready,), app=SnapshotApp(uid="u-1", lineage=1), queries=queries
            )
            self.snapshots[name] = msgspec.structs.replace(snapshot, status=status)

    def commit(self) -> None:
        """The application commits a batch."""
        batch = (self.app.status.queries[0].batch_id or 0) + 1
        queries = (QueryStatus(name="main", batch_id=batch),)
        self.app = msgspec.structs.replace(self.app, status=msgspec.structs.replace(self.app.status, queries=queries))


schedules = st.sampled_from(
    [
        {"schedule": "0 * * * *"},
        {"schedule": "*/7 3-20 * * mon-fri", "timeZone": "Europe/Berlin"},
        {"intervalSeconds": 21600},
        {"intervalSeconds": 60},
    ]
)
events = st.lists(
    st.tuples(
        st.sampled_from(["pass", "pass", "commit", "complete", "fail", "by hand", "delete", "jump", "gone", "back"]),
        st.floats(0, 40 * HOUR),
        st.floats(-1e7, 1e7),
    ),
    max_size=25,
)


def happen(world: World, what: str, jump: float) -> None:
    match what:
        case "commit":
            world.commit()
        case "complete":
            world.end(SnapshotPhase.READY)
        case "fail":
            world.end(SnapshotPhase.FAILED)
        case "by hand":
            world.put(f"mine-{world.time:.3f}")
        case "delete" if world.snapshots:
            del world.snapshots[min(world.snapshots)]
        case "jump":
            world.ahead = jump
        case "gone" | "back":
            world.there = what == "back"


@given(schedules, events)
def test_whatever_happens_no_time_is_taken_twice_and_what_matters_stays(
    schedule: dict[str, Any], course: list[tuple[str, float, float]]
) -> None:
    world = World(application(schedule))
    for what, seconds, jump in course:
        world.time += seconds
        happen(world, what, jump)
        assert world.check() <= 1, "a pause was made up for more than once"
        assert world.check() == 0, "one time was taken twice"


@given(schedules, events)
def test_when_everything_is_well_again_the_schedule_goes_on_and_few_stay(
    schedule: dict[str, Any], course: list[tuple[str, float, float]]
) -> None:
    world = World(application(schedule))
    for what, seconds, jump in course:
        world.time += seconds
        happen(world, what, jump)
        world.check()
    world.ahead, world.there = 0.0, True
    world.check()
    world.end(SnapshotPhase.READY)
    world.check()
    world.end(SnapshotPhase.READY)
    taken = len(world.made)
    for _ in range(KEPT + 2):
        world.commit()
        world.time += 80 * HOUR
        world.check()
        world.end(SnapshotPhase.READY)
        world.check()
    assert len(world.made) == taken + KEPT + 2
    scheduled = [s for s in world.snapshots.values() if is_scheduled(s)]
    assert len(scheduled) == KEPT


@given(st.floats(0, 4e9), schedules)
def test_the_times_of_a_schedule_are_a_grid(now: float, schedule: dict[str, Any]) -> None:
    cron, seconds = schedule.get("schedule", ""), schedule.get("intervalSeconds", 0)
    times = Schedule(cron, schedule.get("timeZone", "")) if cron else Interval(seconds, "u-1")
    before, after = previous_time(times, now), next_time(times, now)
    assert before is not None
    assert after is not None
    assert before <= now < after
    assert previous_time(times, after - 1) == before
    assert previous_time(times, after) == after


def patterns() -> tuple[str, str]:
    """Return what the API server demands of a schedule, and which of those it refuses since they never come."""
    (version,) = plain_yaml.load(CRD.read_text())["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    rules = [rule["rule"] for rule in spec["snapshots"]["properties"]["schedule"]["x-kubernetes-validations"]]
    periods = spec["autoscaling"]["properties"]["excludedPeriods"]["items"]["properties"]["schedule"]
    assert [rule["rule"] for rule in periods["x-kubernetes-validations"]] == rules, "cron is cron in both places"
    demanded = re.fullmatch(r"self\.matches\('(.+)'\)", rules[0])
    never = re.fullmatch(r"!self\.matches\('(.+)'\)", rules[-1])
    assert demanded is not None
    assert never is not None
    return demanded[1], never[1]


DEMANDED, NEVER = (re.compile(each, re.ASCII) for each in patterns())
days = st.sampled_from(
    ["*", "*/2", "1", "28", "29", "30", "31", "29-31", "30-31", "31/2", "30,31", "31,30-31", "15,31"]
)
months = st.sampled_from(["*", "2", "02", "feb", "FEB,2", "2-3", "4", "APR,jun", "9,11,2", "3,4", "11/2", "2/11"])
weekdays = st.sampled_from(["*", "*/2", "MON", "1-5", "0,6"])


@given(st.from_regex(DEMANDED, fullmatch=True))
def test_whatever_the_api_server_takes_is_a_schedule_or_says_why_not(text: str) -> None:
    with contextlib.suppress(ScheduleError):  # a range from 5 to 3, for one
        before = previous_time(Schedule(text), NOW)
        assert before is None or before <= NOW


@given(days, months, weekdays)
def test_the_api_server_refuses_no_day_that_comes_and_few_that_do_not(day: str, month: str, weekday: str) -> None:
    text = f"0 8 {day} {month} {weekday}"
    assert DEMANDED.search(text)
    refused, fault = NEVER.search(text) is not None, fault_of(text)
    assert not refused or "never occurs" in fault
    plain = "/" not in month and "-" not in month
    assert refused or not fault or not plain, "what people write is refused when they write it"


def test_what_people_write_is_taken_and_what_they_mistype_is_not() -> None:
    for good in ("0 */6 * * *", "30 2 * * mon-fri", "0,30 8-18/2 1,15 JAN-MAR *", "5 4 * * 7"):
        assert DEMANDED.fullmatch(good), good
        assert next_time(Schedule(good), NOW) is not None
    for bad in (
        "",
        "@daily",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "0 24 * * *",
        "0 0 32 * *",
        "0 0 * 13 *",
        "a b c d e",
    ):
        assert not DEMANDED.fullmatch(bad), bad
