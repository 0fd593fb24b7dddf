"""When a schedule has a snapshot taken, when it does not, and what the clock can do to it. Pure."""

import dataclasses
import datetime
import zoneinfo
from collections.abc import Container
from typing import Any

import msgspec
import pytest

from tidegate.api.status.status import Condition
from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot, StreamSnapshotStatus
from tidegate.api.streaming_app import Phase, QueryStatus, ScheduleStatus, StreamingApp, StreamingAppStatus
from tidegate.api.values.times import Interval, Schedule, ScheduleError, next_time, previous_time
from tidegate.app.actions import CreateSnapshot, SetExecutors, WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.schedule import SCHEDULE_WITHOUT_TIMES, evaluate_schedule
from tidegate.cache.process_state import NotCreated, ProcessState, SnapshotRefusal
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.protocol import QueryReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.golden import assert_golden
from tidegate_testing.observations import NOW, app_with, deleted, launched, observe, report_of, running_driver
from tidegate_testing.snapshot_observations import begun, ready_snapshot, snapshot

HOUR = 3600.0
HOURLY = {"schedule": "0 * * * *"}
# NOW is 2027-01-15 08:00:00.
SLOT = "2027-01-15T08:00:00+00:00"


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def app(spec: dict[str, Any] | None = None, *, since: float = NOW - 600, **status: Any) -> StreamingApp:
    given = HOURLY if spec is None else spec
    text = given.get("schedule") or f"every {given.get('every')}"
    known = ScheduleStatus(schedule=text, start_time=at(since))
    queries = (QueryStatus(name="main", batch_id=9),)
    fields = {"snapshots": known, "queries": queries, **status}
    return launched(app_with({"snapshots": given}), phase=Phase.RUNNING, **fields)


def scheduled(slot: float, *, uid: str = "u-1", status: StreamSnapshotStatus | None = None) -> StreamSnapshot:
    annotations = {"tidegate.dev/scheduled-at": at(slot).isoformat(), "tidegate.dev/app-uid": uid}
    labels = {"tidegate.dev/scheduled": "true"}
    return snapshot(status, name=f"orders-{at(slot):%Y%m%d-%H%M}", labels=labels, annotations=annotations)


def created(o: Observation, now: float = NOW) -> list[dict[str, Any]]:
    return [a.manifest for a in evaluate_schedule(o, now).actions if isinstance(a, CreateSnapshot)]


def names(o: Observation, now: float = NOW) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in created(o, now)]


def status_after(o: Observation, now: float = NOW) -> ScheduleStatus:
    status = evaluate_schedule(o, now).status
    assert status is not None
    return status


def test_the_snapshot_of_a_time_says_what_it_is_for_and_belongs_to_nobody() -> None:
    (manifest,) = created(observe(app({**HOURLY, "retention": {"maxCount": 3, "maxAgeSeconds": 604800}})))
    assert_golden(__file__, "scheduled_snapshot", manifest)


def test_it_waits_for_a_launch_and_not_for_an_agent_that_does_not_take_another_number_of_executors() -> None:
    running = app()
    driver = running_driver(running)
    for wanted, after in ((1, []), (5, [SetExecutors, PublishEvent])):
        o = observe(running, driver=driver, agent=report_of(driver, executors_wanted=wanted))
        kinds = [type(action) for action in decide(o, NOW).actions]
        assert kinds[kinds.index(CreateSnapshot) + 1 :] == after
    assert not any(isinstance(action, CreateSnapshot) for action in decide(observe(running), NOW).actions)


def test_a_new_schedule_starts_at_its_next_time() -> None:
    o = observe(launched(app_with({"snapshots": HOURLY}), phase=Phase.RUNNING))
    check = evaluate_schedule(o, NOW + 60)
    assert (check.actions, check.wake_after) == ((), HOUR - 60)
    assert check.status == ScheduleStatus(
        schedule="0 * * * *", start_time=at(NOW + 60), next_schedule_time=at(NOW + HOUR)
    )
    changed = app({"intervalSeconds": 21600}, snapshots=ScheduleStatus(schedule="0 * * * *", start_time=at(NOW - 9e6)))
    assert (names(observe(changed)), status_after(observe(changed)).start_time) == ([], at(NOW))


def test_what_was_taken_counts_and_not_what_was_remembered() -> None:
    o = observe(app(), snapshots=(scheduled(NOW),))
    assert (names(o), status_after(o).last_schedule_time) == ([], at(NOW))
    assert status_after(o).next_schedule_time == at(NOW + HOUR)


def test_of_the_times_that_nobody_saw_one_is_made_up_for() -> None:
    o = observe(app(since=NOW - 50 * HOUR), snapshots=(scheduled(NOW - 49 * HOUR, status=final()),))
    assert names(o, NOW + 1800) == ["orders-20270115-0800"]


def final() -> StreamSnapshotStatus:
    return begun(phase=SnapshotPhase.READY)


def test_while_one_is_not_complete_there_is_no_second_one() -> None:
    pending = scheduled(NOW - HOUR, status=begun())
    o = observe(app(since=NOW - 2 * HOUR), snapshots=(pending,))
    assert names(o) == []
    assert "orders-20270115-0700 is not complete yet" in status_after(o).message
    ended = dataclasses.replace(o, snapshots=(scheduled(NOW - HOUR, status=final()),))
    assert names(ended, NOW + 60) == ["orders-20270115-0800"]


@pytest.mark.parametrize(
    "other",
    [scheduled(NOW - HOUR, status=begun(launched(app_with(uid="u-0")))), snapshot(begun())],
    ids=["of an earlier application", "asked for by a person"],
)
def test_others_that_are_not_complete_are_not_waited_for(other: StreamSnapshot) -> None:
    assert names(observe(app(), snapshots=(other,))) == ["orders-20270115-0800"]


@pytest.mark.parametrize("goes", [False, True], ids=["somebody's own", "on its way out"])
def test_a_time_whose_snapshot_is_there_under_its_name_is_dealt_with(goes: bool) -> None:
    there = scheduled(NOW, status=final())
    metadata = msgspec.structs.replace(
        there.metadata, labels={} if not goes else there.metadata.labels, deletion_timestamp=at(NOW) if goes else None
    )
    o = observe(app(), snapshots=(msgspec.structs.replace(there, metadata=metadata),))
    assert names(o) == []
    assert status_after(o).last_schedule_time == at(NOW)
    assert "orders-20270115-0800 is there already" in status_after(o).message


def test_what_would_be_the_same_as_the_newest_is_not_taken() -> None:
    newest = ready_snapshot()  # after batch 7 of main, in lineage 1
    suspended = app(queries=(QueryStatus(name="main", batch_id=7),))
    o = observe(suspended, last_snapshot=newest)
    check = evaluate_schedule(o, NOW)
    assert check.actions == ()
    assert check.status is not None
    assert (check.status.last_schedule_time, check.status.message) == (
        at(NOW),
        "No snapshot was taken: the newest one has all batches.",
    )
    assert names(dataclasses.replace(o, app=app())) == ["orders-20270115-0800"]
    other_lineage = msgspec.structs.replace(suspended, status=msgspec.structs.replace(suspended.status, lineage=2))
    assert names(dataclasses.replace(o, app=other_lineage)) == ["orders-20270115-0800"]


@pytest.mark.parametrize(
    "beside",
    [
        QueryStatus(name="newest", batch_id=3, starts_empty=True),
        QueryStatus(name="idle"),
    ],
    ids=["that starts empty", "without a batch"],
)
def test_a_query_that_no_snapshot_holds_makes_none_of_its_own(beside: QueryStatus) -> None:
    main = QueryStatus(name="main", batch_id=7)
    o = observe(app(queries=(main, beside)), last_snapshot=ready_snapshot())
    assert names(o) == []
    changed = app(queries=(QueryStatus(name="main", batch_id=8), beside))
    assert names(observe(changed, last_snapshot=ready_snapshot())) == ["orders-20270115-0800"]


def test_the_agent_says_as_well_which_query_starts_empty() -> None:
    running = app(queries=(QueryStatus(name="main", batch_id=7),))
    reported = (QueryReport("main", batch_id=7), QueryReport("newest", batch_id=5, starts_empty=True))
    o = observe(running, agent=report_of(running_driver(running), queries=reported), last_snapshot=ready_snapshot())
    assert names(o) == []


def test_where_all_queries_start_empty_their_batches_count() -> None:
    def at_batch(batch: int) -> Observation:
        only = app(queries=(QueryStatus(name="main", batch_id=batch, starts_empty=True),))
        return observe(only, last_snapshot=ready_snapshot())

    assert (names(at_batch(7)), names(at_batch(8))) == ([], ["orders-20270115-0800"])


def test_a_query_that_is_no_more_makes_no_snapshot_differ() -> None:
    newest = ready_snapshot()
    queries = (*newest.status.queries, msgspec.structs.replace(newest.status.queries[0], name="former", batch_id=99))
    status = msgspec.structs.replace(newest.status, queries=queries)
    o = observe(
        app(queries=(QueryStatus(name="main", batch_id=7),)),
        last_snapshot=msgspec.structs.replace(newest, status=status),
    )
    assert names(o) == []


def test_of_more_queries_than_a_status_holds_the_first_ones_are_compared() -> None:
    newest = ready_snapshot()
    every = [f"q{number:03}" for number in range(200)]
    kept = tuple(msgspec.structs.replace(newest.status.queries[0], name=name) for name in every[:128])
    status = msgspec.structs.replace(newest.status, queries=kept)
    running = app()
    queries = tuple(QueryReport(name, batch_id=7) for name in (*every, "x" * 300))
    reported = report_of(running_driver(running), queries=queries)
    o = observe(running, agent=reported, last_snapshot=msgspec.structs.replace(newest, status=status))
    assert names(o) == []


def test_a_newest_that_is_damaged_keeps_no_snapshot_from_being_taken() -> None:
    newest = ready_snapshot()
    no = Condition(type="Verified", status="False", reason="SnapshotDamaged", last_transition_time=at(NOW))
    status = msgspec.structs.replace(newest.status, conditions=(*newest.status.conditions, no))
    damaged = msgspec.structs.replace(newest, status=status)
    o = observe(app(queries=(QueryStatus(name="main", batch_id=7),)), last_snapshot=damaged)
    assert names(o) == ["orders-20270115-0800"]


def test_the_agent_knows_better_than_the_status_what_is_committed() -> None:
    running = app(queries=(QueryStatus(name="main", batch_id=7),))
    reported = report_of(running_driver(running), queries=(QueryReport("main", batch_id=8),))
    o = observe(running, agent=reported, last_snapshot=ready_snapshot())
    assert names(o) == ["orders-20270115-0800"]


def test_of_an_application_that_never_ran_there_is_nothing() -> None:
    no_launch: tuple[dict[str, Any], ...] = ({"epoch": 0}, {"applied_spec_hash": "", "lineage": 0})
    for status in no_launch:
        o = observe(app(**status))
        assert names(o) == []
        assert status_after(o).last_schedule_time == at(NOW)


@pytest.mark.parametrize("spec", [None, {"suspend": True, **HOURLY}, {"retention": {"maxCount": 3}}])
def test_without_a_schedule_nothing_is_said(spec: dict[str, Any] | None) -> None:
    quiet = app_with({"snapshots": spec} if spec is not None else None)
    check = evaluate_schedule(observe(launched(quiet)), NOW)
    assert (check.status, check.actions, check.wake_after) == (None, (), None)


def test_an_application_that_is_deleted_has_no_schedule() -> None:
    assert evaluate_schedule(observe(deleted(app())), NOW).status is None


def test_a_schedule_that_says_nothing_is_told_once_and_harms_nothing() -> None:
    o = observe(app({"schedule": "5-3 * * * *"}))
    check = evaluate_schedule(o, NOW)
    (reported,) = check.actions
    assert isinstance(reported, PublishEvent)
    assert (reported.reason, reported.warning) == ("ScheduleInvalid", True)
    assert reported.message == (
        "spec.snapshots.schedule: '5-3 * * * *' is no schedule (Bad minute). A range starts with the smaller one, such "
        "as 8-17 or MON-FRI. No snapshots are taken until it is corrected."
    )
    known = app({"schedule": "5-3 * * * *"}, snapshots=check.status)
    assert evaluate_schedule(observe(known), NOW).actions == ()


@pytest.mark.parametrize(
    "wrong",
    [{"schedule": "0 8 * * *", "timeZone": "Europe/Berln"}, {"schedule": "5-3 * * * *"}, {"schedule": "0 8 31 2 *"}],
    ids=["no such zone", "no schedule", "no such day"],
)
def test_a_schedule_without_times_is_a_condition_for_as_long_as_it_is_followed(wrong: dict[str, Any]) -> None:
    def status(spec: dict[str, Any], before: StreamingAppStatus, now: float) -> StreamingAppStatus:
        edited = msgspec.structs.replace(app(spec), status=before)
        driver = running_driver(edited, ready=True)
        plan = decide(observe(edited, driver=driver, agent=report_of(driver)), now)
        return next((a.status for a in plan.actions if isinstance(a, WriteStatus)), before)

    known = status(wrong, app(wrong).status, NOW)
    condition = known.condition(SCHEDULE_WITHOUT_TIMES)
    assert condition is not None
    assert known.snapshots is not None
    assert (condition.type, condition.status, condition.reason) == (
        "SnapshotScheduleInvalid",
        "True",
        "ScheduleInvalid",
    )
    assert condition.message == known.snapshots.message
    assert condition.message.endswith("No snapshots are taken until it is corrected.")
    later = status(wrong, known, NOW + HOUR).condition(SCHEDULE_WITHOUT_TIMES)
    assert later is not None
    assert later.last_transition_time == condition.last_transition_time
    assert status({**wrong, "suspend": True}, known, NOW + 60).condition(SCHEDULE_WITHOUT_TIMES) is None
    assert status(HOURLY, known, NOW + 60).condition(SCHEDULE_WITHOUT_TIMES) is None


def test_a_schedule_of_a_day_that_never_comes_is_told_to_be_that() -> None:
    check = evaluate_schedule(observe(app({"schedule": "0 8 31 2 *"})), NOW)
    (reported,) = check.actions
    assert isinstance(reported, PublishEvent)
    assert reported.message.startswith("spec.snapshots.schedule: '0 8 31 2 *' never occurs: none of its months has")
    assert (check.status is not None, check.wake_after) == (True, None)


def test_what_the_api_server_refuses_is_tried_again_later() -> None:
    refusal = SnapshotRefusal("orders-20270115-0800", Reason.SNAPSHOT_REFUSED, "quota", NOW)
    o = observe(app(), memory=ProcessState(snapshot_refusal=refusal))
    check = evaluate_schedule(o, NOW + 60)
    assert (check.actions, check.wake_after) == ((), 240.0)
    assert check.status is not None
    assert check.status.message == "quota"
    assert names(o, NOW + 300) == ["orders-20270115-0800"]


def test_what_the_api_server_could_not_create_is_tried_again_sooner_and_said_until_it_is_there() -> None:
    failure = NotCreated("orders-20270115-0800", "failed calling webhook", NOW)
    o = observe(app(), memory=ProcessState(snapshot_not_created=failure))
    check = evaluate_schedule(o, NOW + 10)
    assert (check.actions, check.wake_after) == ((), 20.0)
    assert names(o, NOW + 30) == ["orders-20270115-0800"]
    for now in (NOW + 10, NOW + 30):
        assert status_after(o, now).message == "failed calling webhook"
    assert names(o, NOW + HOUR) == ["orders-20270115-0900"], "another one is tried at once"
    assert status_after(o, NOW + HOUR).message == ""


# --- clocks ---


def test_a_clock_that_was_ahead_for_a_while_does_not_stop_the_schedule() -> None:
    ahead = NOW + 9000 * HOUR
    known = ScheduleStatus(schedule="0 * * * *", start_time=at(NOW - HOUR), last_schedule_time=at(ahead))
    o = observe(app(snapshots=known), snapshots=(scheduled(ahead, status=final()),))
    assert names(o, NOW + 60) == ["orders-20270115-0800"]
    assert status_after(o, NOW + 60).next_schedule_time == at(NOW + HOUR)


def test_a_schedule_that_began_in_a_wrong_future_begins_now() -> None:
    known = ScheduleStatus(schedule="0 * * * *", start_time=at(NOW + 9000 * HOUR))
    assert status_after(observe(app(snapshots=known)), NOW + 60).start_time == at(NOW + 60)


@pytest.mark.parametrize("seconds", [60, 5400, 21600, 604800])
def test_intervals_are_a_grid_with_a_minute_of_its_own(seconds: int) -> None:
    interval = Interval(seconds, "u-1")
    before, after = previous_time(interval, NOW), next_time(interval, NOW)
    assert before is not None
    assert after is not None
    assert (before % 60, before <= NOW < after) == (0, True)
    assert previous_time(interval, after) == after
    assert previous_time(interval, after - 1) == before


def test_not_all_applications_are_due_at_once() -> None:
    assert len({previous_time(Interval(21600, f"u-{number}"), NOW) for number in range(50)}) > 40


def test_cron_times_are_utc_and_its_words_have_no_case() -> None:
    assert previous_time(Schedule("30 7 * * *"), NOW) == NOW - 1800
    assert previous_time(Schedule("0 8 * * fri"), NOW + 59) == NOW
    assert next_time(Schedule("0 8 29 FEB *"), NOW) == at(1835424000.0).timestamp()
    with pytest.raises(ScheduleError):
        previous_time(Schedule("* * * * * *"), NOW)


BERLIN = "Europe/Berlin"


def berlin(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def test_a_schedule_with_a_time_zone_goes_by_the_clocks_there() -> None:
    at_half_past_two = Schedule("30 2 * * *", BERLIN)
    assert next_time(at_half_past_two, berlin("2026-01-10T12:00+01:00")) == berlin("2026-01-11T02:30+01:00")
    assert previous_time(at_half_past_two, berlin("2026-07-10T12:00+02:00")) == berlin("2026-07-10T02:30+02:00")


def test_a_time_that_the_clocks_leave_out_comes_late_and_one_that_they_repeat_comes_once() -> None:
    at_half_past_two = Schedule("30 2 * * *", BERLIN)
    spring, autumn = berlin("2026-03-28T12:00+01:00"), berlin("2026-10-24T12:00+02:00")
    assert next_time(at_half_past_two, spring) == berlin("2026-03-29T03:00+02:00")
    first = next_time(at_half_past_two, autumn)
    assert first == berlin("2026-10-25T02:30+02:00")
    assert next_time(at_half_past_two, first) == berlin("2026-10-26T02:30+01:00")


@pytest.mark.parametrize(
    ("cron", "zone", "evening"),
    [
        ("30 2 * * *", BERLIN, "2026-10-24T22:00+02:00"),
        ("30 1,2 * * *", BERLIN, "2026-10-24T22:00+02:00"),
        ("*/15 * * * *", BERLIN, "2026-10-24T22:00+02:00"),
        ("15 1 * * sun", "America/New_York", "2026-10-31T22:00-04:00"),
        ("30 23 * * *", "Africa/Cairo", "2026-10-29T20:00+03:00"),
        ("30 2 * * *", BERLIN, "2026-03-28T22:00+01:00"),
        ("30 0 * * *", "Africa/Cairo", "2026-04-23T22:00+02:00"),
    ],
)
def test_in_a_night_in_which_clocks_are_changed_the_last_time_has_come_and_the_next_has_not(
    cron: str, zone: str, evening: str
) -> None:
    times, begin = Schedule(cron, zone), berlin(evening)
    last, coming = previous_time(times, begin), next_time(times, begin)
    for now in range(int(begin), int(begin + 9 * HOUR), 300):
        before, after = previous_time(times, now), next_time(times, now)
        assert before is not None
        assert after is not None
        assert before <= now < after, at(now)
        assert (before, after) == (last, coming) or before == coming, at(now)
        last, coming = before, after


LORD_HOWE = "Australia/Lord_Howe"
AUTUMN_THERE, SPRING_THERE = "2027-04-03T22:00+11:00", "2027-10-02T22:00+10:30"
"""Evenings before clocks are put back from 2:00 to 1:30, and forward from 2:00 to 2:30."""


DAY = range(24)


@pytest.mark.parametrize(
    ("zone", "evening"), [(LORD_HOWE, AUTUMN_THERE), (LORD_HOWE, SPRING_THERE), (BERLIN, "2027-10-30T22:00+02:00")]
)
@pytest.mark.parametrize(
    ("cron", "minutes", "hours"),
    [
        ("45 * * * *", {45}, DAY),
        ("15 * * * *", {15}, DAY),
        ("*/20 1 * * *", {0, 20, 40}, {1}),
        ("*/30 2,5 * * *", {0, 30}, {2, 5}),
    ],
)
def test_a_schedule_of_every_hour_comes_whenever_clocks_show_it_also_where_they_change_by_half_an_hour(
    zone: str, evening: str, cron: str, minutes: set[int], hours: Container[int]
) -> None:
    there, begin = zoneinfo.ZoneInfo(zone), int(berlin(evening))
    night = {now: datetime.datetime.fromtimestamp(now, there) for now in range(begin, begin + 9 * 3600, 60)}
    due = [now for now, shown in night.items() if shown.minute in minutes and shown.hour in hours]
    checks = [now for now in night if due[0] <= now < due[-1]]
    expected = {
        now: (max(each for each in due if each <= now), min(each for each in due if each > now)) for now in checks
    }
    times = Schedule(cron, zone)
    wrong = [now for now in checks if (previous_time(times, now), next_time(times, now)) != expected[now]]
    assert not [night[now].isoformat() for now in wrong][:3]


@pytest.mark.parametrize("time", ["30 1 * * *", "45 1 * * *"])
def test_where_clocks_repeat_half_an_hour_a_time_of_day_comes_once(time: str) -> None:
    begin = berlin(AUTUMN_THERE)
    times = {previous_time(Schedule(time, LORD_HOWE), now) for now in range(int(begin), int(begin + 9 * HOUR), 60)}
    assert len(times) == 2  # that of the day before, and one


def test_a_time_of_day_in_the_half_hour_that_clocks_leave_out_comes_after_it() -> None:
    assert next_time(Schedule("15 2 * * *", LORD_HOWE), berlin(SPRING_THERE)) == berlin("2027-10-03T02:30+11:00")


def test_while_the_clocks_repeat_an_hour_nobody_looks_at_a_schedule_again_and_again() -> None:
    nightly = {"schedule": "30 2 * * *", "timeZone": BERLIN}
    taken, again = berlin("2026-10-25T02:30+02:00"), berlin("2026-10-25T02:10+01:00")
    known = ScheduleStatus(schedule=f"30 2 * * * {BERLIN}", start_time=at(taken - HOUR), last_schedule_time=at(taken))
    check = evaluate_schedule(observe(app(nightly, snapshots=known)), again)
    assert (check.actions, check.wake_after) == ((), berlin("2026-10-26T02:30+01:00") - again)


def test_a_time_zone_that_nobody_knows_is_named() -> None:
    for zone in ("Europe/Berlln", "../../etc/passwd", "/etc/localtime"):
        with pytest.raises(ScheduleError, match="no time zone of the IANA database, such as"):
            next_time(Schedule("30 2 * * *", zone), NOW)
