"""What of the figures and times is written into the status, and when. Pure."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import Phase, QueryStatus, SnapshotBatch, StreamingApp, UpgradePhase, encode_status
from tidegate.app.actions import WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import QueryReport, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    launched,
    observe,
    report_of,
    running_driver,
    waiting,
)
from tidegate_testing.plans import settled, status_of
from tidegate_testing.upgrades import upgrading

APP = launched(app_with())


def test_an_application_that_commits_nothing_costs_no_write() -> None:
    driver = running_driver(APP)
    still = QueryReport("main", batch_id=7, input_rows_per_second=10.0)
    o = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(still,))))
    slower = QueryReport("main", batch_id=7, input_rows_per_second=0.0)
    plan = decide(dataclasses.replace(o, agent=report_of(driver, queries=(slower,))), NOW + 3600)
    assert (plan.actions, plan.wake_after) == ((), None)


def test_progress_is_written_once_a_minute() -> None:
    driver = running_driver(APP)
    o = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(QueryReport("main", batch_id=7),))))
    further = dataclasses.replace(o, agent=report_of(driver, queries=(QueryReport("main", batch_id=8),)))
    early, due = decide(further, NOW + 20), decide(further, NOW + 60)
    assert (early.actions, early.wake_after) == ((), 40.0)
    (write,) = due.actions
    assert isinstance(write, WriteStatus)
    assert write.status.batch == 8


def test_progress_is_written_although_the_clock_was_set_back() -> None:
    driver = running_driver(APP)
    o = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(QueryReport("main", batch_id=7),))))
    further = dataclasses.replace(o, agent=report_of(driver, queries=(QueryReport("main", batch_id=8),)))
    assert [type(action) for action in decide(further, NOW - 3600).actions] == [WriteStatus]


def test_the_first_committed_batch_is_told_at_once() -> None:
    driver = running_driver(APP)
    before = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(QueryReport("main"),))))
    first = dataclasses.replace(before, agent=report_of(driver, queries=(QueryReport("main", batch_id=0),)))
    (write,) = decide(first, NOW + 1).actions
    assert isinstance(write, WriteStatus)
    assert write.status.batch == 0


def test_a_transition_time_stays_while_the_condition_does() -> None:
    driver = driver_of(APP)
    before = settled(observe(APP, driver=driver))
    pulled = observe(before.app, driver=driver_of(APP, waiting=waiting("ErrImagePull")))
    (write,) = [a for a in decide(pulled, NOW + 100).actions if isinstance(a, WriteStatus)]
    times = {c.type: c.last_transition_time.timestamp() for c in write.status.conditions}
    assert times == {"Ready": NOW, "Available": NOW, "Reconciling": NOW + 100, "Stalled": NOW + 100}


@pytest.mark.parametrize("value", [1e300, float("nan"), float("inf"), -5.0])
def test_figures_that_are_none_keep_nothing_from_being_decided(value: float) -> None:
    driver = running_driver(APP)
    query = QueryReport("main", batch_id=3, input_rows_per_second=value, last_commit_time=value)
    plan = decide(observe(APP, driver=driver, agent=report_of(driver, queries=(query,))), NOW)
    assert status_of(plan).input_rows_per_second == 0


@pytest.mark.parametrize(("running", "leaving", "shown"), [(2, 0, "2/8"), (8, 0, "8/8"), (3, 5, "3/8"), (9, 0, "9/8")])
def test_the_column_says_how_many_executors_run_of_how_many_are_wanted(running: int, leaving: int, shown: str) -> None:
    driver = running_driver(APP)
    agent = report_of(driver, executors_wanted=8, executors_running=running, executors_leaving=leaving)
    reports = status_of(decide(observe(APP, driver=driver, agent=agent), NOW)).executors
    assert reports is not None
    assert (reports.wanted, reports.running, reports.summary) == (8, running, shown)


def test_of_an_application_that_does_not_run_the_column_says_what_it_will_have() -> None:
    suspended = launched(app_with({"suspend": True, "executor.instances": 4}))
    reports = status_of(decide(observe(suspended), NOW)).executors
    assert reports is not None
    assert reports.summary == "0/4"


def test_a_lost_status_names_the_store_again_of_a_driver_that_has_the_version_of_the_spec() -> None:
    app = app_with({"storage.endpoint": "http://other:9000"})
    assert status_of(decide(observe(app, driver=running_driver(app)), NOW)).store == "other:9000"


def test_a_driver_of_another_version_does_not_tell_which_store_it_has() -> None:
    moved = launched(app_with({"storage.endpoint": "http://other:9000"}), applied_spec_hash="another")
    assert status_of(decide(observe(moved, driver=running_driver(APP)), NOW)).store == ""


def test_a_launch_names_its_store() -> None:
    assert status_of(decide(observe(app_with({"storage.endpoint": "http://other:9000"})), NOW)).store == "other:9000"


# --- the last committed batch ----------------------------------------------------------------------------------------


def committed(**batches: int) -> tuple[QueryReport, ...]:
    """Return what is told of queries that committed these batches; -1 is none yet."""
    return tuple(QueryReport(name, batch_id=number) for name, number in batches.items())


def knowing(batch: int, **fields: Any) -> StreamingApp:
    """Return an application whose status names a batch, and nothing of its queries: as after a launch."""
    return launched(app_with(), batch=batch, **fields)


def batch_of(o: Observation) -> int | None:
    return status_of(decide(o, NOW)).batch


def test_the_last_batch_stays_while_the_driver_is_launched_anew() -> None:
    queries = (QueryStatus(name="main", batch_id=318),)
    seen = observe(knowing(318, queries=queries, phase=Phase.RUNNING))
    record = status_of(decide(seen, NOW))
    assert (record.epoch, record.batch, record.queries) == (2, 318, ())
    driver = driver_of(launched(app_with(), 2), waiting=waiting("ErrImagePull"))
    assert batch_of(dataclasses.replace(settled(seen), driver=driver)) == 318


def test_the_last_batch_stays_until_the_new_process_commits_one() -> None:
    app = knowing(318)
    driver = running_driver(app)
    reports = [
        batch_of(observe(app, driver=driver, agent=report_of(driver, queries=committed(main=n)))) for n in (-1, 319)
    ]
    assert reports == [318, 319]


def test_the_highest_batch_stays_as_long_as_one_of_the_queries_has_committed_none() -> None:
    app = knowing(318)
    driver = running_driver(app)
    some, all_of_them = committed(slow=-1, quick=7), committed(slow=41, quick=8)
    reports = [batch_of(observe(app, driver=driver, agent=report_of(driver, queries=q))) for q in (some, all_of_them)]
    assert reports == [318, 41]


def test_what_a_driver_says_at_its_end_is_the_last_that_was_seen_of_it() -> None:
    app = knowing(318)
    end = to_json(Termination(Reason.STOPPED, "asked to", 1, batches={"main": 320, "new": -1}))
    driver = driver_of(app, phase="Running", ended=Exit(143, "Error", end, NOW - 5))
    assert batch_of(observe(app, driver=driver)) == 320


def test_a_query_s_last_batch_is_the_one_that_its_driver_told_at_its_end_though_no_agent_was_asked_since() -> None:
    app = knowing(318, queries=(QueryStatus(name="main", batch_id=318), QueryStatus(name="side", batch_id=7)))
    end = to_json(Termination(Reason.STOPPED, "asked to", 1, batches={"main": 334, "side": 5}))
    driver = driver_of(app, phase="Failed", running=False, ended=Exit(143, "Error", end, NOW - 5))
    status = status_of(decide(observe(app, driver=driver), NOW))
    assert {query.name: query.batch_id for query in status.queries} == {"main": 334, "side": 7}
    assert status.batch == 334


def test_an_end_whose_words_have_half_a_character_is_written_down() -> None:
    """A runtime of before tells it so; the API server takes no such text, and the operator could not even send it."""
    app = knowing(318)
    end = json.dumps({"reason": "ApplicationFailed", "message": "no such file: caf\udce9.csv", "epoch": 1})
    driver = driver_of(app, phase="Failed", running=False, ended=Exit(1, "Error", end, NOW - 5))
    status = status_of(decide(observe(app, driver=driver), NOW))
    assert "caf\ufffd.csv" in msgspec.json.encode(encode_status(status)).decode()


def test_batches_of_another_lineage_do_not_count() -> None:
    app = knowing(318)
    end = to_json(Termination(Reason.FENCED, "taken over", 1, batches={"main": 318}, adopt_epoch=7, adopt_lineage=2))
    driver = driver_of(app, phase="Succeeded", running=False, ended=Exit(0, "Completed", end, NOW - 5))
    status = status_of(decide(observe(app, driver=driver), NOW))
    assert (status.lineage, status.batch) == (2, None)


def test_a_lineage_that_starts_from_nothing_has_no_batch_to_show() -> None:
    app = knowing(318, lineage=1)
    fresh = upgrading(app, app_with({"application.image": "shop/orders:0"}), UpgradePhase.STOPPING, lineage=2)
    status = status_of(decide(observe(fresh), NOW))
    assert (status.lineage, status.batch) == (2, None)


def test_the_first_committed_batch_of_each_process_is_told_at_once() -> None:
    app = knowing(318)
    driver = running_driver(app)
    before = settled(observe(app, driver=driver, agent=report_of(driver, queries=committed(main=-1))))
    first = dataclasses.replace(before, agent=report_of(driver, queries=committed(main=319)))
    assert status_of(decide(first, NOW + 1)).batch == 319


def test_what_an_earlier_process_said_at_its_end_does_not_hide_the_first_batch_of_the_next() -> None:
    app = knowing(320)
    end = to_json(Termination(Reason.APPLICATION_FAILED, "no column x", 1, "ValueError", batches={"main": 320}))
    driver = running_driver(app, restarts=1, ended=Exit(1, "Error", end, NOW - 5))
    before = settled(observe(app, driver=driver, agent=report_of(driver, queries=committed(main=-1))))
    assert [query.batch_id for query in before.app.status.queries] == [None]
    first = dataclasses.replace(before, agent=report_of(driver, queries=committed(main=321)))
    assert status_of(decide(first, NOW + 1)).batch == 321


def test_of_thousands_of_queries_a_status_has_a_hundred_and_says_how_many_there_are_beside() -> None:
    queries = tuple(QueryReport(f"q{number:04}", batch_id=number) for number in range(2_479))
    driver = running_driver(APP)
    o = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(*queries, QueryReport("x" * 254)))))
    status = o.app.status
    assert [query.name for query in status.queries] == [f"q{number:04}" for number in range(100)]
    assert (status.more_queries, status.batch) == (2_380, 2_478)
    assert len(json.dumps(encode_status(status), default=str)) < 32 * 1024
    later = settled(dataclasses.replace(o, agent=None))
    assert (len(later.app.status.queries), later.app.status.more_queries) == (100, 2_380)


def test_a_name_that_a_driver_tells_twice_is_listed_once() -> None:
    driver = running_driver(APP)
    twice = (QueryReport("main", batch_id=7), QueryReport("main", batch_id=8))
    status = settled(observe(APP, driver=driver, agent=report_of(driver, queries=twice))).app.status
    assert ([query.name for query in status.queries], status.more_queries) == (["main"], 1)


# --- the last batch of each query ------------------------------------------------------------------------------------

KNOWN = launched(app_with(), batches=(SnapshotBatch(name="a", batch_id=70), SnapshotBatch(name="b", batch_id=5)))


def batches_of(o: Observation) -> dict[str, int]:
    return {query.name: query.batch_id for query in status_of(decide(o, NOW)).batches}


def reported(app: StreamingApp, batches: dict[str, int], *, ready: bool = True, epoch: int = 1) -> dict[str, int]:
    """Return what is known of the queries once a driver has told these batches."""
    driver = running_driver(app)
    report = report_of(driver, queries=committed(**batches), ready=ready, epoch=epoch)
    return batches_of(observe(app, driver=driver, agent=report))


def test_the_last_batch_of_each_query_is_known_by_its_name() -> None:
    assert reported(launched(app_with()), {"a": 70, "b": 5, "idle": -1}) == {"a": 70, "b": 5}


def test_a_driver_that_is_ready_tells_what_the_storage_has_of_its_queries() -> None:
    assert reported(KNOWN, {"c": 2, "b": 4, "a": 70}) == {"a": 70, "b": 4, "c": 2}
    assert reported(KNOWN, {"a": 71, "b": -1}) == {"a": 71}


def test_the_batch_of_a_query_that_is_started_later_is_known_while_its_driver_is_ready_without_it() -> None:
    assert reported(KNOWN, {"a": 71}) == {"a": 71, "b": 5}


def test_on_an_older_copy_that_a_person_accepted_nothing_is_known_but_what_its_driver_says() -> None:
    accepted = launched(app_with({"startFrom": {"adopt": True, "adoptLineage": 1}}), batches=KNOWN.status.batches)
    assert reported(accepted, {"a": 60}) == {"a": 60}
    assert reported(accepted, {"a": 60}, ready=False) == {"a": 60, "b": 5}
    other = launched(app_with({"startFrom": {"adopt": True, "adoptLineage": 2}}), batches=KNOWN.status.batches)
    assert reported(other, {"a": 60}) == {"a": 60, "b": 5}


def test_of_what_an_earlier_operator_wrote_down_the_last_batch_of_each_query_is_known() -> None:
    queries = (
        QueryStatus(name="a", batch_id=70),
        QueryStatus(name="idle"),
        QueryStatus(name="newest", batch_id=200, starts_empty=True),
    )
    assert batches_of(observe(launched(app_with(), queries=queries))) == {"a": 70}


def test_before_it_is_ready_a_driver_may_not_have_come_to_each_query_yet() -> None:
    assert reported(KNOWN, {"a": 71}, ready=False) == {"a": 71, "b": 5}
    assert reported(KNOWN, {"a": 69, "b": -1}, ready=False) == {"a": 69, "b": 5}
    assert batches_of(observe(KNOWN, driver=running_driver(KNOWN))) == {"a": 70, "b": 5}


def test_the_batches_stay_while_the_driver_is_launched_anew_with_what_the_last_one_said_at_its_end() -> None:
    assert batches_of(observe(KNOWN)) == {"a": 70, "b": 5}
    end = to_json(Termination(Reason.STOPPED, "asked to", 1, batches={"a": 72, "b": 5, "c": 0, "idle": -1}))
    driver = driver_of(KNOWN, phase="Failed", running=False, ended=Exit(143, "Error", end, NOW - 5))
    assert batches_of(observe(KNOWN, driver=driver)) == {"a": 72, "b": 5, "c": 0}
    # An earlier process of the pod says nothing against the one that runs.
    again = running_driver(KNOWN, restarts=1, ended=Exit(1, "Error", end, NOW - 5))
    report = report_of(again, queries=committed(a=73, b=6, c=1))
    assert batches_of(observe(KNOWN, driver=again, agent=report)) == {"a": 73, "b": 6, "c": 1}


def test_a_driver_of_an_earlier_epoch_and_batches_of_another_lineage_are_not_heard() -> None:
    later = launched(app_with(), epoch=2, batches=KNOWN.status.batches)
    assert reported(later, {"a": 99, "b": 99}, epoch=1) == {"a": 70, "b": 5}
    end = to_json(Termination(Reason.FENCED, "taken over", 1, batches={"a": 99}, adopt_epoch=7, adopt_lineage=2))
    driver = driver_of(KNOWN, phase="Succeeded", running=False, ended=Exit(0, "Completed", end, NOW - 5))
    assert batches_of(observe(KNOWN, driver=driver)) == {}
    fresh = upgrading(KNOWN, app_with({"application.image": "shop/orders:0"}), UpgradePhase.STOPPING, lineage=2)
    assert batches_of(observe(fresh)) == {}


def test_of_thousands_of_queries_the_batches_of_a_hundred_are_known() -> None:
    many = {f"q{number:04}": number for number in range(2_479)} | {"x" * 254: 3}
    assert reported(APP, many) == {f"q{number:04}": number for number in range(100)}
    assert reported(KNOWN, {f"q{number:04}": number for number in range(99)}).keys() >= {"a", "q0000", "q0098"}
