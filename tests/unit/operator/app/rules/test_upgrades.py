"""Which step an upgrade takes in which world, and what is done about it. Pure."""

import dataclasses
from typing import Any, NamedTuple

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, QueryStatus, RollbackSnapshot, SnapshotBatch, UpgradeMode, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState
from tidegate.pods.records.record import process_of
from tidegate_spark.contract.protocol import Pin, QueryReport
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import remedy_of
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    launched,
    observe,
    waiting,
)
from tidegate_testing.plans import acts, status_of, verdict_of
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
    new_app,
    old_app,
    order_of,
    record,
    runs,
    runs_with,
    under_test,
    upgraded,
    upgrading,
)

READY, FAILED, WAITING = SnapshotState.READY, SnapshotState.FAILED, SnapshotState.WAITING


# --- the last stable version -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("committed", "is_stable"), [(0, False), (4, False), (5, True), (50, True)])
def test_a_version_is_stable_after_so_many_batches_of_one_process(committed: int, is_stable: bool) -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    plan = decide(observe(app, **runs(app, committed)), NOW)
    learned = status_of(plan).last_stable
    assert (learned is not None) == is_stable
    if learned is not None:
        assert (learned.spec_hash, learned.lineage) == (spec_hash(app), 1)


OTHERS: dict[str, tuple[QueryReport, bool]] = {
    "has committed enough": (QueryReport("b", committed=5), True),
    "has not committed enough": (QueryReport("b", committed=4), False),
    "has ended by itself": (QueryReport("b", committed=1, active=False), True),
    "has failed": (QueryReport("b", committed=0, active=False, failed=True), False),
    "has failed after enough batches": (QueryReport("b", committed=9, active=False, failed=True), False),
}


@pytest.mark.parametrize(("other", "is_stable"), OTHERS.values(), ids=OTHERS.keys())
def test_every_query_has_to_commit_them_and_none_may_have_failed(other: QueryReport, is_stable: bool) -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    plan = decide(observe(app, **runs_with(app, QueryReport("a", committed=9), other)), NOW)
    assert (status_of(plan).last_stable is not None) == is_stable


def test_a_version_is_not_stable_before_each_query_that_runs_is_ready() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    seen = runs_with(app, QueryReport("a", committed=9), QueryReport("b", committed=9), ready=False)
    assert status_of(decide(observe(app, **seen), NOW)).last_stable is None


@pytest.mark.parametrize(("seconds", "is_stable"), [(1749, False), (1750, True)])
def test_the_first_version_is_stable_when_one_query_worked_for_long_and_another_one_has_no_input(
    seconds: float, is_stable: bool
) -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    works = QueryReport("a", committed=900, last_commit_time=NOW + seconds)
    plan = decide(observe(app, **runs_with(app, works, QueryReport("b"))), NOW + seconds)
    assert (status_of(plan).last_stable is not None) == is_stable


def test_a_script_that_has_finished_with_batches_is_stable() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    ended = ended_with(Reason.COMPLETED, 0)
    reported = ended.message.replace('"batches":{}', '"batches":{"main":3}')
    driver = driver_of(app, phase="Succeeded", ended=dataclasses.replace(ended, message=reported))
    assert status_of(decide(observe(app, driver=driver), NOW)).last_stable is not None


def test_one_whose_last_process_found_nothing_to_do_is_stable_if_it_has_batches() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    driver = driver_of(app, phase="Succeeded", ended=ended_with(Reason.COMPLETED, 0))
    assert status_of(decide(observe(app, driver=driver), NOW)).last_stable is None
    batches = (SnapshotBatch(name="main", batch_id=3),)
    worked = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, batch=3, batches=batches))
    assert status_of(decide(observe(worked, driver=driver), NOW)).last_stable is not None


def test_without_a_stable_version_an_edit_stops_the_driver_and_begins_no_upgrade() -> None:
    old = launched(app_with({IMAGE: A}), phase=Phase.RUNNING)
    plan = decide(observe(edited(old, {IMAGE: B}), **runs(old, 2)), NOW)
    assert acts(plan, do.DeleteDriver)
    assert status_of(plan).upgrade is None


# --- it begins -------------------------------------------------------------------------------------------------------


def test_the_intent_is_written_before_the_copy_is_ordered_and_the_old_version_runs_on() -> None:
    old = old_app()
    plan = decide(observe(edited(old, {IMAGE: B}), **runs(old)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.number, upgrade.lineage) == (UpgradePhase.COPYING, 1, 1)
    assert (upgrade.from_spec_hash, upgrade.to_spec_hash) == (spec_hash(old), spec_hash(app_with({IMAGE: B})))
    assert upgrade.rollback_snapshot == RollbackSnapshot(id=PIN, lineage=1, copy=COPY)
    (order,) = order_of(plan).orders.take
    assert (order.id, order.exact, order.holders, order.image) == (COPY, {}, (COPY,), A)
    assert index_of(plan, do.WriteStatus) < index_of(plan, do.OrderSnapshots)
    assert not acts(plan, do.DeleteDriver)
    assert "UpgradeCopying" in events(plan)


def test_the_queries_of_the_version_before_are_noted() -> None:
    old = old_app()
    queries = (QueryStatus(name="late"), QueryStatus(name="early", batch_id=7))
    known = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, queries=queries))
    plan = decide(observe(edited(known, {IMAGE: B}), **runs(old)), NOW)
    assert record(plan).queries == ("early", "late")


def test_so_they_are_if_its_driver_was_launched_again_a_moment_ago_and_none_of_them_has_started_yet() -> None:
    old = old_app()
    batches = (SnapshotBatch(name="early", batch_id=7), SnapshotBatch(name="late", batch_id=3))
    known = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, batches=batches))
    again = driver_of(old, waiting=waiting("ErrImagePull"))
    plan = decide(observe(edited(known, {IMAGE: B}), driver=again), NOW)
    assert record(plan).queries == ("early", "late")


def test_so_they_are_of_the_last_upgrade_from_it_whatever_else_the_lineage_has() -> None:
    first = new_app(UpgradePhase.REFUSED, queries=("early", "late"))
    batches = (SnapshotBatch(name="dropped", batch_id=2), SnapshotBatch(name="early", batch_id=7))
    known = msgspec.structs.replace(first, status=msgspec.structs.replace(first.status, batches=batches))
    plan = decide(observe(edited(known, {IMAGE: C}), driver=driver_of(old_app())), NOW)
    assert (record(plan).number, record(plan).queries) == (2, ("early", "late"))


def test_who_waits_for_the_spec_to_be_what_runs_is_not_told_so() -> None:
    old = old_app()
    status = status_of(decide(observe(edited(old, {IMAGE: B}), **runs(old)), NOW))
    ready = status.condition("Ready")
    assert ready is not None
    assert (status.phase, ready.status, ready.reason) == (Phase.RUNNING, "False", "UpgradeCopying")


class Begun(NamedTuple):
    phase: UpgradePhase
    mode: UpgradeMode
    lineage: int
    pinned: bool


BEGINNINGS: dict[str, tuple[dict[str, Any], dict[str, Any], Begun]] = {
    "snapshot, the driver runs": ({}, {}, Begun(UpgradePhase.COPYING, UpgradeMode.SNAPSHOT, 1, True)),
    "last state": ({"upgrade.mode": "LastState"}, {}, Begun(UpgradePhase.STOPPING, UpgradeMode.LAST_STATE, 1, False)),
    "stateless, said once": (
        {"upgrade.mode": "Stateless"},
        {},
        Begun(UpgradePhase.REFUSED, UpgradeMode.STATELESS, 1, False),
    ),
    "stateless, said of another lineage": (
        {"upgrade.mode": "Stateless"},
        {"annotations": {"tidegate.dev/abandon-state": "2"}},
        Begun(UpgradePhase.REFUSED, UpgradeMode.STATELESS, 1, False),
    ),
    "stateless, said twice": (
        {"upgrade.mode": "Stateless"},
        {"annotations": {"tidegate.dev/abandon-state": "1"}},
        Begun(UpgradePhase.STOPPING, UpgradeMode.STATELESS, 2, True),
    ),
    "a spec of which no pod can be made": (
        {"driver.podTemplate": {"spec": {"containers": "none"}}},
        {},
        Begun(UpgradePhase.REFUSED, UpgradeMode.SNAPSHOT, 1, False),
    ),
}


@pytest.mark.parametrize(("change", "metadata", "begun"), BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_how_an_upgrade_begins(change: dict[str, Any], metadata: dict[str, Any], begun: Begun) -> None:
    old = old_app()
    plan = decide(observe(edited(old, {IMAGE: B, **change}, **metadata), **runs(old)), NOW)
    upgrade = record(plan)
    assert Begun(upgrade.phase, upgrade.mode, upgrade.lineage, upgrade.rollback_snapshot is not None) == begun
    assert acts(plan, do.DeleteDriver) == (begun.phase is UpgradePhase.STOPPING)


def test_a_refused_upgrade_leaves_the_old_version_alone_and_says_so_to_whoever_waits() -> None:
    old = old_app()
    new = edited(old, {IMAGE: B, "upgrade.mode": "Stateless"})
    status = status_of(decide(observe(new, **runs(old)), NOW))
    stalled = status.condition("Stalled")
    assert stalled is not None
    assert (status.phase, stalled.status, stalled.reason) == (Phase.RUNNING, "True", "UpgradeRefused")
    assert "tidegate.dev/abandon-state=1" in stalled.message


def test_a_refusal_for_want_of_a_word_is_answered_by_the_word() -> None:
    new = under_test(
        UpgradePhase.REFUSED, {"upgrade.mode": "Stateless"}, mode=UpgradeMode.STATELESS, rollback_snapshot=None
    )
    assert new.status.upgrade is not None
    refused = msgspec.structs.replace(new.status.upgrade, reason="AbandonStateUnconfirmed")
    new = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, upgrade=refused))
    old = launched(app_with({IMAGE: A}), 2)
    assert not acts(decide(observe(new, **runs(old)), NOW), do.DeleteDriver)
    said = msgspec.structs.replace(
        new, metadata=msgspec.structs.replace(new.metadata, annotations={"tidegate.dev/abandon-state": "1"})
    )
    plan = decide(observe(said, **runs(old)), NOW)
    assert (record(plan).phase, record(plan).number, record(plan).lineage) == (UpgradePhase.STOPPING, 2, 2)
    assert acts(plan, do.DeleteDriver)


def test_a_refusal_without_a_stable_version_is_answered_by_another_mode() -> None:
    old = launched(app_with({IMAGE: A}), phase=Phase.RUNNING)
    refused = decide(observe(edited(old, {IMAGE: B, "upgrade.mode": "Stateless"}), **runs(old, 1)), NOW)
    assert record(refused).phase is UpgradePhase.REFUSED
    held = msgspec.structs.replace(old, status=status_of(refused))
    plan = decide(observe(edited(held, {IMAGE: B}), **runs(old, 1)), NOW)
    assert (record(plan).phase, record(plan).rollback_snapshot, record(plan).lineage) == (
        UpgradePhase.STOPPING,
        None,
        1,
    )
    assert acts(plan, do.DeleteDriver)


def test_an_edit_of_a_suspended_application_begins_when_it_goes_on() -> None:
    old = old_app()
    asleep = edited(old, {IMAGE: B, "suspend": True})
    assert asleep.status.upgrade is None
    assert not acts(decide(observe(asleep), NOW), do.CreateDriver)
    plan = decide(observe(edited(old, {IMAGE: B})), NOW)
    assert record(plan).phase is UpgradePhase.GATE
    assert launch_of(plan).pin is not None


@pytest.mark.parametrize("mode", ["Snapshot", "LastState"])
def test_a_restart_that_was_asked_for_is_no_upgrade(mode: str) -> None:
    old = old_app()
    again = edited(old, {IMAGE: A, "restartNonce": 1, "upgrade.mode": mode})
    plan = decide(observe(again, **runs(old)), NOW)
    assert acts(plan, do.DeleteDriver)
    status = status_of(plan)
    assert status.upgrade is None
    assert status.last_stable is not None
    assert status.last_stable.spec_hash == spec_hash(again)


def test_a_version_can_be_started_again_with_nothing_if_that_is_said_twice() -> None:
    old, change = old_app(), {IMAGE: A, "restartNonce": 1, "upgrade.mode": "Stateless"}
    assert record(decide(observe(edited(old, change), **runs(old)), NOW)).phase is UpgradePhase.REFUSED
    said = edited(old, change, annotations={"tidegate.dev/abandon-state": "1"})
    assert record(decide(observe(said, **runs(old)), NOW)).lineage == 2


def test_the_pin_of_the_upgrade_before_is_disposed_of_when_the_next_one_begins() -> None:
    done = upgraded(launched(app_with({IMAGE: B}), 2, phase=Phase.RUNNING), app_with({IMAGE: A}))
    plan = decide(observe(edited(done, {IMAGE: C}), **runs(done)), NOW)
    assert record(plan).obsolete == (COPY, PIN)
    assert record(plan).rollback_snapshot == RollbackSnapshot(
        id="up-u1-2-2-6b49d200", lineage=1, copy="up-u1-2-2-6b49d200-copy"
    )
    assert order_of(plan).orders.dispose == (COPY, PIN)


# --- the copy --------------------------------------------------------------------------------------------------------


COPIES: dict[str, tuple[SnapshotReport | None, UpgradePhase]] = {
    "no word of it yet": (None, UpgradePhase.COPYING),
    "under way": (SnapshotReport(COPY, SnapshotState.COPYING, files=1, of_files=9), UpgradePhase.COPYING),
    "the storage is away": (
        SnapshotReport(COPY, WAITING, Reason.STORAGE_UNAVAILABLE, "No answer."),
        UpgradePhase.COPYING,
    ),
    "complete": (SnapshotReport(COPY, READY), UpgradePhase.STOPPING),
    "removed by somebody": (SnapshotReport(COPY, SnapshotState.DISPOSED), UpgradePhase.STOPPING),
    "unreadable": (
        SnapshotReport(COPY, FAILED, Reason.UNREADABLE_CHECKPOINT, "What is this?"),
        UpgradePhase.REFUSED,
    ),
    "cleaned up too fast": (SnapshotReport(COPY, FAILED, Reason.CLEANED_TOO_FAST, "Gone."), UpgradePhase.REFUSED),
    "nothing there": (SnapshotReport(COPY, WAITING, Reason.NOTHING_COMMITTED), UpgradePhase.REFUSED),
}


@pytest.mark.parametrize(("report", "phase"), COPIES.values(), ids=COPIES.keys())
def test_what_becomes_of_the_copy_decides_whether_the_old_version_is_stopped(
    report: SnapshotReport | None, phase: UpgradePhase
) -> None:
    old = launched(app_with({IMAGE: A}))
    reports = () if report is None else (report,)
    o = observe(under_test(UpgradePhase.COPYING), **runs(old, 9, *reports))
    plan = decide(o, NOW)
    assert acts(plan, do.DeleteDriver) == (phase is UpgradePhase.STOPPING)
    assert record(plan).phase is phase
    if phase is not UpgradePhase.COPYING:
        assert plan.wake_after == 0.0


def test_an_order_that_the_agent_did_not_take_is_given_again_before_it_is_done_without_a_copy() -> None:
    old = launched(app_with({IMAGE: A}))
    new, seen = under_test(UpgradePhase.COPYING), runs(old, 9)
    given = ProcessState(status_written_at=NOW, orders_given=(NOW, process_of(seen["driver"])))
    plan = decide(observe(new, **seen, memory=given), NOW + 1)
    assert not acts(plan, do.OrderSnapshots)
    assert plan.wake_after == 15
    assert order_of(decide(observe(new, **seen, memory=given), NOW + 16)).orders.take[0].id == COPY


@pytest.mark.parametrize("by_it", [True, False])
def test_a_copy_whose_order_the_agent_refuses_is_done_without_and_it_is_told_why(by_it: bool) -> None:
    seen = runs(launched(app_with({IMAGE: A})), 9)
    process = process_of(seen["driver"]) if by_it else "another process"
    memory = ProcessState(orders_refused=(process, "HTTP 422: alone: not a known field"))
    plan = decide(observe(under_test(UpgradePhase.COPYING), **seen, memory=memory, deciding_since=NOW), NOW + 3600)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.STOPPING, "OrderRefused")
    assert ("accepts no orders (HTTP 422: alone: not a known field)." in record(plan).message) is by_it


@pytest.mark.parametrize(("ago", "phase"), [(1, UpgradePhase.COPYING), (3600, UpgradePhase.STOPPING)])
def test_a_copy_in_a_state_that_is_not_known_here_is_no_more_waited_for_than_one_of_which_nothing_is_heard(
    ago: float, phase: UpgradePhase
) -> None:
    seen = runs(launched(app_with({IMAGE: A})), 9, SnapshotReport(COPY, SnapshotState.UNKNOWN))
    plan = decide(observe(under_test(UpgradePhase.COPYING), **seen, deciding_since=NOW), NOW + ago)
    assert record(plan).phase is phase


@pytest.mark.parametrize(
    ("seconds", "phase"),
    [(1, UpgradePhase.COPYING), (59, UpgradePhase.COPYING), (60, UpgradePhase.STOPPING)],
)
def test_an_operator_that_has_just_taken_over_waits_for_the_agents_first_word_of_the_copy(
    seconds: int, phase: UpgradePhase
) -> None:
    began = NOW + 290
    new, silent = under_test(UpgradePhase.COPYING), {"driver": runs(launched(app_with({IMAGE: A})))["driver"]}
    plan = decide(observe(new, **silent, deciding_since=began), began + seconds)
    assert record(plan).phase is phase
    if phase is UpgradePhase.COPYING:
        assert plan.wake_after is not None
        assert plan.wake_after <= 60 - seconds


@pytest.mark.parametrize("rehearsal", [None, {"batches": 2}], ids=["no rehearsal", "a rehearsal"])
def test_an_edit_that_an_operator_finds_before_it_has_heard_any_agent_is_copied_for_all_the_same(
    rehearsal: dict[str, Any] | None,
) -> None:
    new = edited(old_app(), {IMAGE: B, **({"upgrade.rehearsal": rehearsal} if rehearsal else {})})
    driver = runs(old_app())["driver"]
    plan = decide(observe(new, driver=driver, deciding_since=NOW), NOW)
    assert (record(plan).phase, record(plan).rehearsal) == (UpgradePhase.COPYING, None)
    assert not acts(plan, do.DeleteDriver)
    known = decide(observe(new, driver=driver, silence="connection refused", deciding_since=NOW), NOW)
    assert record(known).phase is UpgradePhase.STOPPING


def test_a_copy_is_not_waited_for_until_a_clock_that_was_set_back_comes_to_where_it_was() -> None:
    new, silent = under_test(UpgradePhase.COPYING), {"driver": runs(launched(app_with({IMAGE: A})))["driver"]}
    plan = decide(observe(new, **silent, deciding_since=NOW + 9000), NOW + 90)
    assert record(plan).phase is UpgradePhase.STOPPING


@pytest.mark.parametrize(
    ("reason", "true"),
    [
        (Reason.STORAGE_UNAVAILABLE, "Stalled"),
        (Reason.CATALOG_LOST, "Stalled"),
        (Reason.NONE, "Reconciling"),
    ],
)
def test_a_copy_that_waits_for_a_person_is_stalled_and_says_what_to_do(reason: Reason, true: str) -> None:
    old = launched(app_with({IMAGE: A}))
    waits = SnapshotReport(COPY, WAITING, reason, "It is not there.")
    plan = decide(observe(under_test(UpgradePhase.COPYING), **runs(old, 9, waits)), NOW + 3600)
    assert verdict_of(plan)[:2] == (Phase.RUNNING, true)
    assert record(plan).phase is UpgradePhase.COPYING
    if true == "Stalled":
        condition = status_of(plan).condition("Stalled")
        assert condition is not None
        assert condition.reason == reason.value
        assert f"It is not there. {remedy_of(reason)}" in condition.message
        assert reason.value in events(plan)


def test_a_copy_that_was_reported_is_not_reported_again_because_it_has_made_progress() -> None:
    old = launched(app_with({IMAGE: A}))
    copies = SnapshotReport(COPY, SnapshotState.COPYING, files=3, of_files=10)
    plan = decide(observe(under_test(UpgradePhase.COPYING), **runs(old, 9, copies)), NOW)
    assert (verdict_of(plan)[2], events(plan)) == ("UpgradeCopying", [])
    assert plan.message.endswith("3 of 10 files are copied.")


@pytest.mark.parametrize("world", ["no driver", "silent for long", "deaf for long"])
def test_what_can_not_be_copied_before_the_stop_is_copied_after_it(world: str) -> None:
    old = launched(app_with({IMAGE: A}))
    seen = runs(old) if world != "no driver" else {}
    if world == "silent for long":
        seen.pop("agent")
    plan = decide(observe(under_test(UpgradePhase.COPYING), **seen), NOW + 60)
    assert record(plan).phase is (UpgradePhase.GATE if world == "no driver" else UpgradePhase.STOPPING)
    assert acts(plan, do.CreateDriver if world == "no driver" else do.DeleteDriver)


# --- the launch ------------------------------------------------------------------------------------------------------


def test_the_new_version_goes_on_in_the_same_lineage_and_keeps_where_the_old_one_ended() -> None:
    plan = decide(observe(under_test(UpgradePhase.STOPPING)), NOW)
    config = launch_of(plan)
    assert (config.lineage, config.start_from, config.executor.image) == (1, None, B)
    assert config.pin is not None
    assert (config.pin.snapshot, config.pin.image) == (PIN, A)
    assert (record(plan).phase, record(plan).epoch) == (UpgradePhase.GATE, 3)
    assert index_of(plan, do.RecordLaunch) < index_of(plan, do.CreateDriver)


@pytest.mark.parametrize(("retained", "batches", "expected"), [(2, 5, 25), (100, 5, 100), (2, 90, 110)])
def test_spark_keeps_more_batches_than_the_gate_needs_while_it_is_open(
    retained: int, batches: int, expected: int
) -> None:
    change = {"state.minBatchesToRetain": retained, "upgrade.stableBatches": batches}
    assert launch_of(decide(observe(under_test(UpgradePhase.STOPPING, change)), NOW)).min_batches_to_retain == expected


def test_a_stateless_upgrade_starts_from_nothing_in_a_new_lineage_and_the_old_one_stays_as_it_is() -> None:
    new = under_test(UpgradePhase.STOPPING, mode=UpgradeMode.STATELESS, lineage=2)
    plan = decide(observe(new), NOW)
    config = launch_of(plan)
    assert (config.lineage, config.start_from, config.pin) == (2, None, None)
    assert status_of(plan).lineage == 2


def test_a_launch_after_a_lost_pod_opens_the_gate_anew() -> None:
    plan = decide(observe(under_test()), NOW)
    since = record(plan).phase_start_time
    assert since is not None
    assert (record(plan).phase, record(plan).epoch, since.timestamp()) == (UpgradePhase.GATE, 2, NOW)
    assert launch_of(plan).pin is not None


# --- an edit on the way ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settled", [{}, {"batches": (SnapshotBatch(name="main", batch_id=41),)}, {"lost_message": "Gone."}]
)
@pytest.mark.parametrize("phase", [UpgradePhase.COMPLETED, UpgradePhase.FAILED])
def test_a_pin_that_is_not_complete_is_gone_on_with_by_the_next_driver_whatever_the_gate_said(
    phase: UpgradePhase, settled: dict[str, Any]
) -> None:
    new = launched(app_with({IMAGE: B}), 2, phase=Phase.STARTING)
    pin = RollbackSnapshot(id=PIN, lineage=1, **settled)
    if phase is UpgradePhase.COMPLETED:
        new = upgraded(new, app_with({IMAGE: A}))
    else:
        new = upgrading(new, app_with({IMAGE: A}), phase)
    assert new.status.upgrade is not None
    record_of = msgspec.structs.replace(new.status.upgrade, rollback_snapshot=pin)
    lost = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, upgrade=record_of))
    config = launch_of(decide(observe(lost), NOW))
    assert config.pin == (None if settled else Pin(PIN, image=A))


def test_an_edit_while_it_is_copied_begins_another_upgrade() -> None:
    old = launched(app_with({IMAGE: A}))
    plan = decide(observe(edited(under_test(UpgradePhase.COPYING), {IMAGE: C}), **runs(old)), NOW)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.COPYING, 2)
    assert record(plan).obsolete == (COPY, PIN)


REVERTS: dict[UpgradePhase, UpgradePhase] = {
    UpgradePhase.COPYING: UpgradePhase.WITHDRAWN,
    UpgradePhase.REFUSED: UpgradePhase.WITHDRAWN,
    UpgradePhase.STOPPING: UpgradePhase.WITHDRAWN,
    UpgradePhase.GATE: UpgradePhase.ROLLING_BACK,
    UpgradePhase.FAILED: UpgradePhase.ROLLING_BACK,
    UpgradePhase.ROLLED_BACK: UpgradePhase.WITHDRAWN,
}


@pytest.mark.parametrize(("before", "after"), REVERTS.items())
def test_changing_the_spec_back_withdraws_an_upgrade_or_takes_it_back_with_its_state(
    before: UpgradePhase, after: UpgradePhase
) -> None:
    new = under_test(before)
    plan = decide(observe(edited(new, {IMAGE: A}), **runs(new, 1)), NOW)
    assert record(plan).phase is after
    assert record(plan).lineage == (2 if after is UpgradePhase.ROLLING_BACK else 1)


@pytest.mark.parametrize("before", [UpgradePhase.GATE, UpgradePhase.FAILED])
@pytest.mark.parametrize(
    "without",
    [
        {"mode": UpgradeMode.LAST_STATE, "rollback_snapshot": None},
        {"rollback_snapshot": RollbackSnapshot(id=PIN, lineage=1, lost_message="Files are gone.")},
    ],
    ids=["last state", "lost"],
)
def test_without_a_rollback_snapshot_a_spec_that_is_changed_back_goes_on_from_the_newest_state(
    before: UpgradePhase, without: dict[str, Any]
) -> None:
    new = under_test(before, **without)
    plan = decide(observe(edited(new, {IMAGE: A}), **runs(new, 1)), NOW)
    assert (record(plan).phase, record(plan).lineage) == (UpgradePhase.WITHDRAWN, 1)
    assert acts(plan, do.DeleteDriver)


def test_a_version_that_was_withdrawn_can_be_tried_again() -> None:
    new = under_test(UpgradePhase.WITHDRAWN)
    old = launched(app_with({IMAGE: A}), 2)
    plan = decide(observe(new, **runs(old)), NOW)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.COPYING, 2)
