"""When a new version is stable, and when it has failed before. Pure."""

import dataclasses
import datetime
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, RollbackSnapshot, SnapshotBatch, StreamingApp, UpgradeMode, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal, TimedReport
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.control_protocol import ControlReport
from tidegate_spark.contract.protocol import DriverState, Fault, QueryReport, Termination, Worked, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import entry_of
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotReport, SnapshotState
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    launched,
    observe,
    report_of,
    running_driver,
    waiting,
)
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.upgrades import (
    COPY,
    IMAGE,
    PIN,
    A,
    B,
    C,
    edited,
    events,
    index_of,
    launch_of,
    order_of,
    record,
    runs,
    runs_with,
    under_test,
)


def later(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(NOW + seconds, datetime.UTC)


PINNED = {"main": QueryPin(41, "")}
READY = SnapshotState.READY


def test_enough_batches_close_the_gate() -> None:
    new = under_test()
    plan = decide(observe(new, **runs(new, 5)), NOW)
    status = status_of(plan)
    assert record(plan).phase is UpgradePhase.COMPLETED
    assert status.last_stable is not None
    assert status.last_stable.spec_hash == spec_hash(new)
    assert record(plan).previous is not None
    assert record(plan).previous.spec_hash == spec_hash(app_with({IMAGE: A}))  # type: ignore[union-attr] # just asserted
    ready = status.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Running")
    assert "UpgradeCompleted" in events(plan)


def test_until_then_it_is_not_ready_however_well_it_runs() -> None:
    new = under_test()
    ready = status_of(decide(observe(new, **runs(new, 4)), NOW)).condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "UpgradeGate")
    assert "after 5 batches of each query, and has committed 4" in ready.message


def test_of_one_with_another_key_nobody_hears_of_batches_until_somebody_has_it_launched_again() -> None:
    new = under_test()
    driver = running_driver(new, agent_secret="orders-agent-2-another", ready=True, ready_time=NOW - 60)
    plan = decide(observe(new, driver=driver), NOW)
    assert (record(plan).phase, verdict_of(plan)) == (
        UpgradePhase.GATE,
        (Phase.RUNNING, "Stalled", "AgentUnreachable"),
    )
    assert "spec.restartNonce" in plan.message


def test_the_complete_pin_is_recorded_and_the_copy_disposed_of() -> None:
    new = under_test()
    plan = decide(observe(new, **runs(new, 1, SnapshotReport(PIN, READY, queries=PINNED))), NOW)
    pin = record(plan).rollback_snapshot
    assert pin is not None
    assert ({batch.name: batch.batch_id for batch in pin.batches}, pin.copy) == ({"main": 41}, "")
    assert order_of(plan).orders.dispose == (COPY,)


def test_the_status_never_holds_more_of_what_is_to_be_disposed_of_than_the_api_server_takes() -> None:
    new = under_test(obsolete=tuple(f"up-u1-1-0-{number}" for number in range(64)))
    plan = decide(observe(new, **runs(new, 1, SnapshotReport(PIN, READY, queries=PINNED))), NOW)
    obsolete = record(plan).obsolete
    assert (len(obsolete), obsolete[-1]) == (64, COPY)


# --- each of its queries ---------------------------------------------------------------------------------------------

ENOUGH = QueryReport("a", committed=5)


def test_a_query_that_failed_keeps_the_gate_open_and_when_the_driver_fails_for_it_the_version_is_rolled_back() -> None:
    new = under_test()
    failed = QueryReport("b", active=False, failed=True)
    plan = decide(observe(new, **runs_with(new, ENOUGH, failed)), NOW)
    assert record(plan).phase is UpgradePhase.GATE
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert "Query 'b' has failed." in ready.message
    after = msgspec.structs.replace(new, status=status_of(plan))
    ended = ended_with(Reason.APPLICATION_FAILED, 1, "ValueError")
    fails = decide(observe(after, driver=driver_of(after, ended=ended, restarts=1)), NOW + 20)
    assert record(fails).phase is UpgradePhase.ROLLING_BACK


def test_a_query_that_was_started_again_counts_as_any_other() -> None:
    new = under_test()
    plan = decide(observe(new, **runs_with(new, ENOUGH, QueryReport("b", committed=5))), NOW)
    assert record(plan).phase is UpgradePhase.COMPLETED


def test_a_query_of_the_version_before_that_was_not_started_yet_keeps_the_gate_open() -> None:
    new = under_test(queries=("a", "b"))
    plan = decide(observe(new, **runs_with(new, ENOUGH)), NOW)
    assert record(plan).phase is UpgradePhase.GATE
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert "Query 'b' of the previous version was not started yet." in ready.message
    plan = decide(observe(new, **runs_with(new, ENOUGH, QueryReport("b", committed=5))), NOW)
    assert record(plan).phase is UpgradePhase.COMPLETED


@pytest.mark.parametrize("phase", [UpgradePhase.GATE, UpgradePhase.FAILED])
def test_a_query_that_was_not_started_in_time_counts_as_dropped(phase: UpgradePhase) -> None:
    new = under_test(phase, queries=("a", "b"))
    waits = decide(observe(new, **runs_with(new, ENOUGH)), NOW + 1780)
    assert (record(waits).phase, waits.wake_after) == (phase, 10)
    plan = decide(observe(new, **runs_with(new, ENOUGH)), NOW + 1790)
    assert record(plan).phase is UpgradePhase.COMPLETED
    assert "Query 'b' of the previous version was not started, and counts as dropped." in record(plan).message


def test_a_version_without_input_that_dropped_a_query_is_neither_rolled_back_nor_under_way_for_ever() -> None:
    new = under_test(queries=("a", "b"))
    seen = runs_with(new, QueryReport("a", committed=1))
    before = decide(observe(new, **seen), NOW + 600)
    assert (record(before).phase, record(before).idle_start_time) == (UpgradePhase.GATE, None)
    idle = decide(observe(new, **seen), NOW + 1790)
    assert (record(idle).phase, record(idle).idle_start_time) == (UpgradePhase.GATE, later(1790))
    quiet = msgspec.structs.replace(new, status=status_of(idle))
    assert not acts(decide(observe(quiet, **seen), NOW + 7200), do.WriteStatus)


def test_a_script_that_has_finished_with_batches_is_stable_whatever_queries_it_started() -> None:
    new = under_test(queries=("a", "b"))
    ended = ended_with(Reason.COMPLETED, 0)
    reported = ended.message.replace('"batches":{}', '"batches":{"a":3}')
    driver = driver_of(new, phase="Succeeded", ended=dataclasses.replace(ended, message=reported))
    assert record(decide(observe(new, driver=driver), NOW)).phase is UpgradePhase.COMPLETED


# --- failures --------------------------------------------------------------------------------------------------------

Failing = dict[str, Any]
FAILURES: dict[str, tuple[Failing, bool]] = {
    "an exception": ({"ended": ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"), "restarts": 1}, True),
    "no such file": ({"ended": ended_with(Reason.MAIN_NOT_FOUND, 1), "restarts": 1}, True),
    "a query that is refused": ({"ended": ended_with(Reason.QUERY_REFUSED, 0), "phase": "Succeeded"}, True),
    "state that would be misread": ({"ended": ended_with(Reason.STATE_SCHEMA, 0), "phase": "Succeeded"}, True),
    "state that is gone": ({"ended": ended_with(Reason.STATE_MISSING, 0), "phase": "Succeeded"}, True),
    "a stall": ({"ended": ended_with(Reason.STALLED, 1), "restarts": 1}, True),
    "the storage": ({"ended": ended_with(Reason.STORAGE_UNAVAILABLE, 75), "restarts": 1}, False),
    "a broker": ({"ended": ended_with(Reason.BROKER_UNAVAILABLE, 75), "restarts": 1}, False),
    "records that a source has lost": ({"ended": ended_with(Reason.SOURCE_DATA_LOST, 1), "restarts": 1}, False),
    "somebody who stops it": ({"ended": ended_with(Reason.STOPPED, 143), "restarts": 1}, False),
    "another cluster's driver": ({"ended": ended_with(Reason.FENCED, 0), "phase": "Succeeded"}, False),
    "an eviction": ({"phase": "Failed", "reason": "Evicted", "disruption": "TerminationByKubelet"}, False),
    "no image, for a moment": ({"waiting": waiting("ImagePullBackOff")}, False),
    "no place on any node": ({"unschedulable": "0/3 nodes are available."}, False),
}


@pytest.mark.parametrize(("driver", "is_failure"), FAILURES.values(), ids=FAILURES.keys())
def test_what_takes_a_version_back_is_its_own_failure(driver: Failing, is_failure: bool) -> None:
    new = under_test()
    plan = decide(observe(new, driver=driver_of(new, **driver)), NOW)
    assert (record(plan).phase is UpgradePhase.ROLLING_BACK) == is_failure
    if is_failure:
        assert acts(plan, do.DeleteDriver)
        assert index_of(plan, do.WriteStatus) < index_of(plan, do.DeleteDriver)
        assert "UpgradeRollingBack" in events(plan)


def test_of_a_version_that_is_rolled_back_nobody_says_that_its_driver_starts_again() -> None:
    new = under_test()
    driver = driver_of(new, ended=ended_with(Reason.LINEAGE_NOT_EMPTY, 0), phase="Succeeded")
    rolled_back = record(decide(observe(new, driver=driver), NOW))
    assert rolled_back.phase is UpgradePhase.ROLLING_BACK
    entry = entry_of(Reason.LINEAGE_NOT_EMPTY)
    assert entry.remedy in rolled_back.message
    assert entry.after not in rolled_back.message


@pytest.mark.parametrize("how", ["no image for long", "not in time", "no pod in time"])
def test_a_version_that_does_not_come_up_in_time_is_rolled_back(how: str) -> None:
    new = under_test()
    driver = driver_of(new, waiting=waiting("ErrImagePull")) if how == "no image for long" else driver_of(new)
    refusal = Refusal("orders-driver", spec_hash(new), 2, Reason.LAUNCH_REFUSED, "quota", NOW, 1)
    seen = {"memory": ProcessState(refusal=refusal)} if how == "no pod in time" else {"driver": driver}
    plan = decide(observe(new, **seen), NOW + (115 if how == "no image for long" else 1795))
    assert record(plan).phase is UpgradePhase.ROLLING_BACK
    assert record(plan).reason == ("ImagePullFailed" if how == "no image for long" else "UpgradeTimeout")


def test_what_a_version_reported_until_its_time_was_over_is_why_it_is_rolled_back() -> None:
    new = under_test()
    fault = Fault(Reason.SCRIPT_UNSUPPORTED, "A child process runs queries.")
    driver = running_driver(new)
    report = report_of(driver, state=DriverState.STARTING, fault=fault, ready=False, queries=())
    seen = {"driver": driver, "agent": report}
    assert record(decide(observe(new, **seen), NOW + 590)).phase is UpgradePhase.GATE
    plan = decide(observe(new, **seen), NOW + 1795)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.ROLLING_BACK, "UpgradeTimeout")
    assert "(ScriptUnsupported: A child process runs queries)" in record(plan).message


def test_no_time_passes_for_a_version_whose_node_does_not_confirm_that_its_pod_has_ended() -> None:
    new = under_test()
    plan = decide(observe(new, driver=running_driver(new, delete_by=NOW + 60)), NOW + 86400)
    assert (record(plan).phase, plan.reason) == (UpgradePhase.GATE, "DriverNotGone")


def test_a_version_whose_pod_was_lost_while_there_was_no_operator_is_launched_again_with_all_of_its_time() -> None:
    plan = decide(observe(under_test()), NOW + 86400)
    assert (record(plan).phase, record(plan).phase_start_time) == (UpgradePhase.GATE, later(86400))
    assert launch_of(plan).executor.image == B


def test_the_time_for_which_its_node_was_off_does_not_count_for_a_version() -> None:
    new = under_test()
    off = Exit(255, "Unknown", "", NOW + 86300)
    driver = running_driver(new, restarts=1, ended=off, start_time=NOW + 86400)
    for seconds, phase in ((20, UpgradePhase.GATE), (1790, UpgradePhase.GATE), (1810, UpgradePhase.ROLLING_BACK)):
        assert record(decide(observe(new, driver=driver), NOW + 86400 + seconds)).phase is phase


LOST = ended_with(Reason.SOURCE_DATA_LOST, 1)


@pytest.mark.parametrize("started", [None, NOW + 86400 - 1790])
def test_no_time_passes_for_a_version_while_a_source_lacks_what_the_previous_one_would_read(
    started: float | None,
) -> None:
    new = under_test()
    process = {} if started is None else {"running": True, "start_time": started}
    driver = driver_of(new, ended=LOST, restarts=40, **process)
    plan = decide(observe(new, driver=driver), NOW + 86400)
    assert record(plan).phase is UpgradePhase.GATE
    assert not acts(plan, do.DeleteDriver)


def test_a_version_that_reads_on_after_a_loss_has_its_whole_time_to_be_stable() -> None:
    new = under_test()
    driver = running_driver(new, ended=LOST, restarts=40, start_time=NOW + 86400)
    for seconds, phase in ((1790, UpgradePhase.GATE), (1810, UpgradePhase.ROLLING_BACK)):
        assert record(decide(observe(new, driver=driver), NOW + 86400 + seconds)).phase is phase


def test_records_that_a_source_has_lost_are_named_with_the_ways_on_while_the_gate_is_open() -> None:
    new = under_test()
    plan = decide(observe(new, driver=driver_of(new, ended=LOST, restarts=3)), NOW)
    condition = status_of(plan).condition("Stalled")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "SourceDataLost")
    assert all(way in condition.message for way in ("failOnDataLoss", "Stateless", "spec.upgrade.startingOffsets"))


def lost_after(committed: int = 0, **batches: int) -> Exit:
    """Return the end of a process that lacks records of a source, after it has committed so much."""
    reported = Termination(
        Reason.SOURCE_DATA_LOST, "topic 'b' has no offset 7", 2, batches=batches, committed=committed
    )
    return Exit(1, "Error", to_json(reported), NOW - 5)


KEPT_BEFORE = RollbackSnapshot(id="up-1", lineage=1, batches=(SnapshotBatch(name="main", batch_id=41),))


@pytest.mark.parametrize(
    ("driver", "fields", "rolled_back"),
    [
        ({"ended": lost_after(main=41)}, {}, True),
        ({"ended": lost_after(main=41)}, {"mode": UpgradeMode.STATELESS}, False),
        # It has committed batches, or it is not known that it has not.
        ({"ended": lost_after(1, main=42)}, {}, False),
        ({"ended": lost_after(-1, main=41)}, {}, False),
        ({"ended": lost_after(main=41), "restarts": 9}, {}, False),
        ({"ended": lost_after(main=41)}, {"epoch": 1}, False),
        # The rollback snapshot is of the very batches with which it ended, however often it was started.
        ({"ended": lost_after(-1, main=41), "restarts": 9}, {"epoch": 1, "rollback_snapshot": KEPT_BEFORE}, True),
        ({"ended": lost_after(-1, main=41, new=-1), "restarts": 9}, {"rollback_snapshot": KEPT_BEFORE}, True),
        ({"ended": lost_after(-1, main=42), "restarts": 9}, {"rollback_snapshot": KEPT_BEFORE}, False),
        ({"ended": lost_after(-1, main=41, new=0), "restarts": 9}, {"rollback_snapshot": KEPT_BEFORE}, False),
        ({"ended": lost_after(-1), "restarts": 9}, {"rollback_snapshot": KEPT_BEFORE}, False),
        # One that runs again may read on.
        ({"ended": lost_after(main=41), "restarts": 1, "running": True}, {}, False),
    ],
)
def test_a_version_that_lacks_records_is_rolled_back_if_that_undoes_nothing(
    driver: Failing, fields: dict[str, Any], rolled_back: bool
) -> None:
    new = under_test(**fields)
    app = written(observe(new, driver=driver_of(new, **driver)))
    assert (phase_of(app) is UpgradePhase.ROLLING_BACK) == rolled_back
    step = app.status.upgrade
    if rolled_back and step is not None:
        assert (step.reason, "topic 'b' has no offset 7" in step.message) == ("SourceDataLost", True)
        # The version that these are for is not in force any more.
        assert not any(
            message in step.message for message in ("spec.restartNonce", "continues by itself", "spec.suspend")
        )
        assert "Before you change the spec again, restore the records" in step.message


def test_who_wants_no_rollback_gets_none_for_records_that_are_lost_and_the_version_is_not_given_up_on() -> None:
    new = under_test(change={"upgrade.rollbackPolicy": "Never"})
    app = written(observe(new, driver=driver_of(new, ended=lost_after(main=41))))
    assert phase_of(app) is UpgradePhase.GATE


def test_a_previous_version_that_lacks_the_same_records_waits_for_them_and_nothing_goes_back_and_forth() -> None:
    new = under_test()
    app = written(observe(new, driver=driver_of(new, ended=lost_after(main=41))))
    app = written(observe(app))
    assert app.status.upgrade is not None
    assert (app.status.epoch, app.status.upgrade.phase) == (3, UpgradePhase.ROLLING_BACK)
    old = driver_of(app, spec_hash=app.status.upgrade.from_spec_hash, ended=lost_after(main=41))
    for seconds in (0, 86400):
        seen = observe(app, driver=old)
        assert phase_of(written(seen, NOW + seconds)) is UpgradePhase.ROLLING_BACK
        assert not acts(decide(seen, NOW + seconds), do.DeleteDriver)


def phase_of(app: StreamingApp) -> UpgradePhase:
    assert app.status.upgrade is not None
    return app.status.upgrade.phase


@pytest.mark.parametrize("reason", [Reason.STORAGE_OLDER, Reason.STORAGE_EMPTY])
def test_a_storage_without_the_newest_state_that_both_versions_have_rolls_nothing_back(reason: Reason) -> None:
    new = under_test()
    driver = driver_of(new, phase="Succeeded", ended=ended_with(reason, 0))
    for seconds in (0, 86400):
        assert phase_of(written(observe(new, driver=driver), NOW + seconds)) is UpgradePhase.GATE


@pytest.mark.parametrize(("lag", "rolled_back"), [(0, False), (-1, False), (7, True)])
def test_a_version_that_has_no_input_is_waited_for_and_one_that_lags_is_not(lag: int, rolled_back: bool) -> None:
    new = under_test()
    plan = decide(observe(new, **runs(new, 1, lag_rows=lag)), NOW + 3600)
    assert (record(plan).phase is UpgradePhase.ROLLING_BACK) == rolled_back


@pytest.mark.parametrize(
    ("seconds", "fields", "ready"),
    [
        (40, {}, "False"),
        (50, {}, "True"),
        (80, {"last_commit_time": NOW + 30}, "False"),
        (90, {"last_commit_time": NOW + 30}, "True"),
        (90, {"lag_rows": 7}, "False"),
    ],
)
def test_a_version_that_has_had_no_input_for_a_minute_is_as_it_should_be_and_still_under_test(
    seconds: float, fields: dict[str, Any], ready: str
) -> None:
    new = under_test()
    plan = decide(observe(new, **runs(new, 1, **fields)), NOW + seconds)
    condition = status_of(plan).condition("Ready")
    assert condition is not None
    assert (condition.status, condition.reason) == (ready, "UpgradeGate")
    assert (record(plan).idle_start_time is not None) == (ready == "True"), "one write for both"
    assert plan.wake_after is not None
    assert plan.wake_after <= 60


def test_while_it_is_suspended_no_time_passes_for_it() -> None:
    new = under_test(change={"suspend": True})
    assert record(decide(observe(new), NOW + 7200)).phase is UpgradePhase.GATE


def test_the_time_that_it_was_suspended_for_does_not_count_when_it_goes_on() -> None:
    new = under_test()
    asleep = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, phase=Phase.SUSPENDED))
    plan = decide(observe(asleep), NOW + 7200)
    assert (record(plan).phase, record(plan).phase_start_time) == (UpgradePhase.GATE, later(7200))
    assert acts(plan, do.CreateDriver)


def test_a_version_that_is_ready_is_not_late_because_its_agent_was_not_heard_yet() -> None:
    new = under_test()
    plan = decide(observe(new, driver=running_driver(new, ready=True)), NOW + 7200)
    assert record(plan).phase is UpgradePhase.GATE
    assert not acts(plan, do.DeleteDriver)


def test_a_failure_that_no_operator_saw_counts_only_once_the_process_that_runs_since_was_heard_or_is_silent() -> None:
    new = under_test()
    failed = dataclasses.replace(ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"), completion_time=NOW)
    driver = running_driver(new, ready=True, restarts=1, ended=failed, start_time=NOW + 10)

    def phase(**seen: Any) -> UpgradePhase:
        plan = decide(observe(new, driver=driver, **seen), NOW + 86400)
        assert acts(plan, do.DeleteDriver) == (record(plan).phase is UpgradePhase.ROLLING_BACK)
        return record(plan).phase

    def says(committed: int) -> TimedReport:
        return report_of(driver, queries=(QueryReport("main", committed=committed, lag_rows=7),))

    assert phase() is UpgradePhase.GATE
    assert phase(agent=says(5)) is UpgradePhase.COMPLETED
    assert phase(agent=says(4)) is UpgradePhase.ROLLING_BACK
    assert phase(silence="no answer within 3 s") is UpgradePhase.ROLLING_BACK


def test_when_input_comes_at_last_there_is_time_to_be_stable() -> None:
    new = under_test()
    waits = decide(observe(new, **runs(new, 1)), NOW + 7200)
    assert record(waits).idle_start_time == later(7200)
    idle = msgspec.structs.replace(new, status=status_of(waits))
    # Noted once, when it becomes Ready: what is quiet is not written to, however long.
    for seconds in (7200 + 890, 7 * 86400):
        assert not acts(decide(observe(idle, **runs(idle, 1)), NOW + seconds), do.WriteStatus)
    comes = decide(observe(idle, **runs(idle, 1, lag_rows=7)), NOW + 86400)
    assert (record(comes).phase, record(comes).idle_start_time, record(comes).phase_start_time) == (
        UpgradePhase.GATE,
        None,
        later(86400),
    )
    busy = msgspec.structs.replace(new, status=status_of(comes))
    for seconds, phase in ((1790, UpgradePhase.GATE), (1800, UpgradePhase.ROLLING_BACK)):
        plan = decide(observe(busy, **runs(busy, 2, lag_rows=7)), NOW + 86400 + seconds)
        assert record(plan).phase is phase


KEPT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "the policy is Never": ({"upgrade.rollbackPolicy": "Never"}, {}, f'rollbackTo to "{PIN}"'),
    "it may have committed something, and nothing was kept": ({}, {"rollback_snapshot": None}, "may have committed"),
    "the pin is lost": (
        {},
        {"rollback_snapshot": RollbackSnapshot(id=PIN, lineage=1, lost_message="Gone.")},
        "lost: Gone.",
    ),
}


@pytest.mark.parametrize(("change", "fields", "message"), KEPT.values(), ids=KEPT.keys())
def test_when_a_version_that_failed_is_not_rolled_back(
    change: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    new = under_test(change=change, **fields)
    driver = running_driver(new, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"))
    plan = decide(observe(new, driver=driver), NOW)
    assert record(plan).phase is UpgradePhase.FAILED
    assert message in record(plan).message
    assert not acts(plan, do.DeleteDriver)


def test_a_version_that_was_given_up_on_and_comes_round_is_stable_after_all() -> None:
    new = under_test(UpgradePhase.FAILED, {"upgrade.rollbackPolicy": "Never"})
    plan = decide(observe(new, **runs(new, 5)), NOW)
    assert record(plan).phase is UpgradePhase.COMPLETED


@pytest.mark.parametrize(("committed", "phase"), [(0, UpgradePhase.ROLLING_BACK), (1, UpgradePhase.FAILED)])
def test_without_a_pin_a_version_is_rolled_back_if_it_certainly_committed_nothing(
    committed: int, phase: UpgradePhase
) -> None:
    new = under_test(mode=UpgradeMode.LAST_STATE, rollback_snapshot=None)
    ended = ended_with(Reason.APPLICATION_FAILED, 1, "ValueError")
    reported = ended.message.replace('"committed":-1', f'"committed":{committed}')
    driver = running_driver(new, restarts=1, ended=dataclasses.replace(ended, message=reported))
    plan = decide(observe(new, driver=driver), NOW)
    assert (record(plan).phase, record(plan).lineage) == (phase, 1)


FAILED = ended_with(Reason.APPLICATION_FAILED, 1, "ValueError")
COMMITTED_NOTHING = dataclasses.replace(FAILED, message=FAILED.message.replace('"committed":-1', '"committed":0'))


def after_its_first_failure(restarts: int, running: bool, second: int | None) -> UpgradePhase:
    """The phase of an upgrade without a pin whose first process committed nothing."""
    new = under_test(mode=UpgradeMode.LAST_STATE, rollback_snapshot=None)
    world = runs(new, second) if second is not None else {"driver": running_driver(new)}
    driver = dataclasses.replace(world["driver"], restarts=restarts, running=running, ended=COMMITTED_NOTHING)
    return record(decide(observe(new, **{**world, "driver": driver}), NOW)).phase


def test_what_a_second_process_may_have_committed_is_not_rolled_back_without_a_pin() -> None:
    assert after_its_first_failure(restarts=0, running=False, second=None) is UpgradePhase.ROLLING_BACK
    assert after_its_first_failure(restarts=1, running=True, second=0) is UpgradePhase.ROLLING_BACK
    assert after_its_first_failure(restarts=1, running=True, second=1) is UpgradePhase.FAILED
    assert after_its_first_failure(restarts=1, running=False, second=None) is UpgradePhase.FAILED


LATER_PODS: dict[str, dict[str, Any]] = {
    "has not begun": {"waiting": waiting("ErrImagePull"), "scheduled_at": NOW - 90, "node": "node1"},
    "has committed nothing": {"restarts": 0, "ended": COMMITTED_NOTHING, "phase": "Failed"},
}


@pytest.mark.parametrize("pod", LATER_PODS.values(), ids=LATER_PODS.keys())
def test_what_a_pod_before_this_one_may_have_committed_is_not_rolled_back_without_a_pin(pod: dict[str, Any]) -> None:
    new = under_test(mode=UpgradeMode.LAST_STATE, rollback_snapshot=None)
    relaunched = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, epoch=3))
    for app, phase in ((new, UpgradePhase.ROLLING_BACK), (relaunched, UpgradePhase.FAILED)):
        plan = decide(observe(app, driver=driver_of(app, **pod)), NOW + 1200)
        assert (record(plan).phase, record(plan).lineage) == (phase, 1)


def test_an_edit_of_which_no_pod_can_be_made_leaves_the_version_at_the_gate_and_what_it_can_be_rolled_back_to() -> None:
    new = under_test()
    invalid = edited(new, {IMAGE: C, "sparkConf": {"spark.driver.memory": "64g"}})
    plan = decide(observe(invalid, **runs(new, 1)), NOW)
    assert not acts(plan, do.DeleteDriver)
    assert verdict_of(plan) == (Phase.RUNNING, "Stalled", "InvalidSpec")
    assert record(plan) == new.status.upgrade
    fixed = edited(new, {IMAGE: C})
    assert record(decide(observe(fixed, **runs(new, 1)), NOW)).phase is UpgradePhase.ROLLING_BACK


def test_a_version_that_waits_for_input_stays_ready_while_another_operator_has_not_heard_its_agent_yet() -> None:
    new = under_test()
    waits = status_of(decide(observe(new, **runs(new, 1)), NOW + 7200))
    knows = msgspec.structs.replace(new, status=waits)
    plan = decide(observe(knows, driver=running_driver(new, ready=True)), NOW + 9000)
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert (ready.status, record(plan).idle_start_time) == ("True", later(7200))
    assert record(decide(observe(knows), NOW + 9000)).idle_start_time is None, "its driver is gone"


# --- a later pod of a version that worked for longer than its test ---

DAY = 86400
SLOW: dict[str, dict[str, Any]] = {
    "no image": {"waiting": waiting("ErrImagePull"), "scheduled_at": NOW + DAY, "node": "node1"},
    "no room": {"unschedulable": "0/3 nodes are available."},
    "nobody knows why": {},
    "no pod": {},
}


def with_later_pod(
    how: str, launched_after: float, *, change: dict[str, Any] | None = None, **fields: Any
) -> tuple[StreamingApp, dict[str, Any]]:
    """Return an application at the gate whose first pod was lost, and what is seen of the pod that follows."""
    new = under_test(change=change, phase_start_time=later(launched_after), reason=Reason.LAUNCHED)
    app = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, epoch=3))
    if how == "no pod":
        refusal = Refusal("orders-driver", spec_hash(app), 3, Reason.LAUNCH_REFUSED, "quota", NOW + launched_after, 1)
        return app, {"memory": ProcessState(refusal=refusal)}
    return app, {"driver": driver_of(app, created_at=NOW + launched_after, **{**SLOW[how], **fields})}


@pytest.mark.parametrize("how", SLOW)
def test_a_version_that_worked_for_longer_than_its_test_is_not_undone_for_a_later_pod_that_does_not_start(
    how: str,
) -> None:
    app, seen = with_later_pod(how, DAY)
    for hours in (1, 30):
        plan = decide(observe(app, **seen), NOW + DAY + hours * 3600)
        assert record(plan).phase is UpgradePhase.GATE
        assert not acts(plan, do.DeleteDriver)
    if how != "nobody knows why":
        assert record(plan).message.startswith("The new version has not started. ")
        assert "it is not rolled back for a pod that does not start" in record(plan).message
        assert f'set spec.upgrade.rollbackTo to "{PIN}"' in record(plan).message


def test_who_wants_no_rollback_hears_of_that_beside_why_a_later_pod_does_not_start() -> None:
    app, seen = with_later_pod("no image", DAY, change={"upgrade.rollbackPolicy": "Never"})
    message = record(decide(observe(app, **seen), NOW + DAY + 3600)).message
    assert message.startswith(
        "The new version has not started. Its driver pod does not start (ImagePullFailed). spec.u"
    )
    assert "spec.upgrade.rollbackPolicy is Never" in message


def test_what_a_scheduler_says_of_such_a_pod_from_moment_to_moment_is_not_written_each_time() -> None:
    app, seen = with_later_pod("no room", DAY)
    waits = decide(observe(app, **seen), NOW + DAY + 3600)
    assert "(Unschedulable)" in record(waits).message
    app = msgspec.structs.replace(app, status=status_of(waits))
    other = dataclasses.replace(seen["driver"], unschedulable="0/4 nodes are available.")
    plan = decide(observe(app, driver=other, memory=ProcessState(status_written_at=NOW + DAY + 3600)), NOW + DAY + 3601)
    assert not acts(plan, do.WriteStatus)


def test_once_it_has_started_the_record_says_so() -> None:
    app, seen = with_later_pod("no image", DAY)
    waits = decide(observe(app, **seen), NOW + DAY + 3600)
    assert record(waits).phase_start_time == later(DAY)
    app = msgspec.structs.replace(app, status=status_of(waits))
    up = dataclasses.replace(seen["driver"], running=True, phase="Running", start_time=NOW + DAY + 3600, waiting=None)
    assert record(decide(observe(app, driver=up), NOW + DAY + 3601)).message == "The new version was started."


@pytest.mark.parametrize("how", SLOW)
def test_one_whose_first_pod_was_lost_within_its_test_is_rolled_back_if_the_next_does_not_start(how: str) -> None:
    app, seen = with_later_pod(how, 600, scheduled_at=NOW + 600)
    plan = decide(observe(app, **seen), NOW + DAY)
    assert record(plan).phase is UpgradePhase.ROLLING_BACK


def test_once_such_a_pod_has_started_the_version_has_its_whole_time_to_be_stable() -> None:
    up: dict[str, Any] = {"running": True, "phase": "Running", "start_time": NOW + 2 * DAY}
    app, seen = with_later_pod("no image", DAY, **{**up, "waiting": None})
    seen["agent"] = report_of(seen["driver"], queries=(QueryReport("main", lag_rows=7),))
    for seconds, phase in ((1790, UpgradePhase.GATE), (1810, UpgradePhase.ROLLING_BACK)):
        assert record(decide(observe(app, **seen), NOW + 2 * DAY + seconds)).phase is phase


# --- one query works for weeks, and another one has no input ----------------------------------------------------------

WEEKS = 21 * 86400
QUIET = QueryReport("b")


def worked(until: float, committed: int = 5) -> QueryReport:
    """Return a query whose last batch was committed at that time."""
    return QueryReport("a", committed=committed, last_commit_time=NOW + until)


def test_a_version_that_works_for_weeks_while_a_query_has_no_input_keeps_them_when_that_query_fails() -> None:
    new = under_test(queries=("a", "b"))
    plan = decide(observe(new, **runs_with(new, worked(WEEKS, 9000), QUIET)), NOW + WEEKS)
    assert record(plan).phase is UpgradePhase.COMPLETED
    assert "Query 'b' had no input for more." in record(plan).message
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert ready.status == "True"
    after = msgspec.structs.replace(new, status=status_of(plan))
    failing = driver_of(after, ended=FAILED, restarts=1)
    plan = decide(observe(after, driver=failing), NOW + WEEKS + 60)
    assert not acts(plan, do.DeleteDriver)
    assert phase_of(written(observe(after, driver=failing), NOW + WEEKS + 60)) is UpgradePhase.COMPLETED


def test_the_first_burst_for_a_query_after_weeks_does_not_find_the_version_late() -> None:
    new = under_test()
    after = written(observe(new, **runs_with(new, worked(WEEKS), QUIET)), NOW + WEEKS)
    burst = runs_with(after, worked(WEEKS + 60), QueryReport("b", committed=1, lag_rows=7))
    assert phase_of(written(observe(after, **burst), NOW + WEEKS + 60)) is UpgradePhase.COMPLETED


@pytest.mark.parametrize(("until", "phase"), [(1789, UpgradePhase.GATE), (1790, UpgradePhase.COMPLETED)])
def test_a_query_without_input_is_waited_for_until_another_one_has_worked_for_longer_than_the_time_of_the_test(
    until: float, phase: UpgradePhase
) -> None:
    new = under_test()
    app = written(observe(new, **runs_with(new, worked(until), QUIET)), NOW + until)
    assert phase_of(app) is phase


NOT_LONG_ENOUGH: dict[str, dict[str, Any]] = {
    "none has had input": {"queries": (worked(-3600, 0), QUIET)},
    "the other one had its last input in the evening": {"queries": (worked(600), QUIET)},
    "the other one has not committed enough": {"queries": (worked(WEEKS, 4), QUIET)},
    "it is at its first batch": {"queries": (worked(WEEKS), QueryReport("b", at_batch=True))},
    "it has rows to read": {"queries": (worked(WEEKS), QueryReport("b", committed=1, lag_rows=7))},
    "it has failed": {"queries": (worked(WEEKS), QueryReport("b", active=False, failed=True))},
    "they are not ready": {"queries": (worked(WEEKS), QUIET), "ready": False},
    "they are paused": {"queries": (worked(WEEKS), QUIET), "control": ControlReport(paused=True)},
}


@pytest.mark.parametrize("agent", NOT_LONG_ENOUGH.values(), ids=NOT_LONG_ENOUGH.keys())
def test_a_version_is_not_stable_for_its_age_alone(agent: dict[str, Any]) -> None:
    new = under_test()
    driver = running_driver(new, ready=True)
    app = written(observe(new, driver=driver, agent=report_of(driver, **agent)), NOW + WEEKS)
    assert phase_of(app) is not UpgradePhase.COMPLETED


@pytest.mark.parametrize("evening", [worked(-3600, 0), worked(600)], ids=["no input", "some in the evening"])
def test_what_fails_at_its_first_row_after_a_night_without_input_is_rolled_back(evening: QueryReport) -> None:
    new = under_test()
    app = written(observe(new, **runs_with(new, evening, QUIET)), NOW + 36000)
    app = written(observe(app, driver=driver_of(app, ended=FAILED, restarts=1)), NOW + 36060)
    assert phase_of(app) is UpgradePhase.ROLLING_BACK


def test_the_time_for_which_another_query_has_worked_counts_from_the_start_of_its_process_and_of_the_test() -> None:
    new = under_test()
    again = running_driver(new, ready=True, restarts=1, start_time=NOW + WEEKS - 60)
    seen = {"driver": again, "agent": report_of(again, queries=(worked(WEEKS), QUIET))}
    assert phase_of(written(observe(new, **seen), NOW + WEEKS)) is UpgradePhase.GATE
    relaunched = under_test(phase_start_time=later(WEEKS - 60))
    seen = runs_with(relaunched, worked(WEEKS), QUIET)
    assert phase_of(written(observe(relaunched, **seen), NOW + WEEKS)) is UpgradePhase.GATE


def test_a_process_that_has_ended_shows_nothing_by_how_long_ago_it_began() -> None:
    new = under_test()
    ended = driver_of(new, ended=FAILED, restarts=0)
    seen = {"driver": ended, "agent": report_of(ended, queries=(worked(600), QUIET))}
    assert phase_of(written(observe(new, **seen), NOW + 660)) is UpgradePhase.ROLLING_BACK


def test_a_version_whose_missing_query_is_dropped_is_stable_although_another_one_has_no_input() -> None:
    new = under_test(queries=("a", "b", "c"))
    plan = decide(observe(new, **runs_with(new, worked(1790), QUIET)), NOW + 1790)
    assert record(plan).phase is UpgradePhase.COMPLETED
    assert "Query 'b' had no input for more." in record(plan).message
    assert "Query 'c' of the previous version was not started" in record(plan).message


# --- nobody heard of it until its process had ended -------------------------------------------------------------------


def failed_after(*worked: Worked) -> Exit:
    """Return the end of a process, by its application's failure, with what it and those before it have shown."""
    return Exit(1, "Error", to_json(Termination(Reason.APPLICATION_FAILED, "no such column", 6, worked=worked)), NOW)


def shown(until: float, batches: int = 5, since: float = 0.0) -> Worked:
    return Worked(batches, NOW + since, NOW + until)


@pytest.mark.parametrize("state", [{}, {"running": True, "start_time": NOW + WEEKS + 9}], ids=["waits", "runs again"])
def test_a_version_that_worked_past_its_test_while_no_operator_was_there_keeps_that_when_it_fails(
    state: dict[str, Any],
) -> None:
    new = under_test(queries=("a", "b"))
    pod: dict[str, Any] = {"ended": failed_after(shown(WEEKS, 9000)), "restarts": 1, "running": False, **state}
    seen: dict[str, Any] = {"driver": driver_of(new, **pod)}
    if state:
        seen["agent"] = report_of(seen["driver"], queries=(worked(WEEKS + 10, 1),))
    plan = decide(observe(new, **seen), NOW + WEEKS + 20)
    assert record(plan).phase is UpgradePhase.COMPLETED
    assert "before its driver ended" in record(plan).message
    assert "committed 9000 batches or more" in record(plan).message
    after = msgspec.structs.replace(new, status=status_of(plan))
    assert after.status.last_stable is not None
    assert after.status.last_stable.spec_hash == spec_hash(new)
    plan = decide(observe(after, **seen), NOW + WEEKS + 30)
    assert not acts(plan, do.DeleteDriver)


LITTLE_SHOWN: dict[str, tuple[Worked, ...]] = {
    "a runtime of before does not tell": (),
    "too few batches": (shown(WEEKS, 4),),
    "within the time of its test": (shown(1789),),
    "from a late start of its process on": (shown(1800, since=11),),
    "each of them lacks something": (shown(1789, 9000), shown(WEEKS, 4)),
}


@pytest.mark.parametrize("little", LITTLE_SHOWN.values(), ids=LITTLE_SHOWN.keys())
def test_what_it_did_within_the_time_of_its_test_is_undone_whoever_looked(little: tuple[Worked, ...]) -> None:
    new = under_test()
    app = written(observe(new, driver=driver_of(new, ended=failed_after(*little), restarts=0)), NOW + WEEKS + 20)
    assert phase_of(app) is UpgradePhase.ROLLING_BACK


def test_the_first_version_is_stable_by_what_it_did_while_no_operator_was_there() -> None:
    first = launched(app_with(), 6, phase=Phase.RUNNING)
    app = written(
        observe(first, driver=driver_of(first, ended=failed_after(shown(WEEKS)), restarts=0)), NOW + WEEKS + 20
    )
    assert app.status.last_stable is not None
