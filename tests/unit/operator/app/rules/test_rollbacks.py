"""How an upgrade is taken back: to the last stable version, with the state that it had, once. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import (
    Phase,
    RollbackSnapshot,
    SnapshotBatch,
    StreamingApp,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.protocol import DriverConfig, EarlierPin, Pin, QueryReport, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    launched,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.plans import acts, status_of, written
from tidegate_testing.upgrades import (
    COPY,
    IMAGE,
    NO_POD,
    PIN,
    A,
    B,
    C,
    edited,
    launch_of,
    old_app,
    record,
    runs,
    stable,
    stable_of,
    upgraded,
    upgrading,
)

OWN = Storage("s3://streams/apps/shop/orders")


def rolling_back(image: str = B, epoch: int = 0, change: dict[str, Any] | None = None, **fields: Any) -> StreamingApp:
    """Return the application whose version B is to be taken back; ``epoch`` is that of the rollback's launch."""
    app = launched(app_with({IMAGE: image, **(change or {})}), max(2, epoch), phase=Phase.RUNNING)
    known = {"lineage": 2, "epoch": epoch, "reason": "ApplicationFailed"}
    phase = fields.pop("phase", UpgradePhase.ROLLING_BACK)
    new = upgrading(app, app_with({IMAGE: A}), phase, **{**known, **fields})
    assert new.status.upgrade is not None
    about_b = msgspec.structs.replace(new.status.upgrade, to_spec_hash=spec_hash(app_with({IMAGE: B})))
    return msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, upgrade=about_b))


def version(image: str, epoch: int) -> StreamingApp:
    return launched(app_with({IMAGE: image}), epoch)


def test_the_last_stable_version_goes_on_in_a_new_lineage_that_starts_from_the_pin() -> None:
    plan = decide(observe(rolling_back()), NOW)
    config = launch_of(plan)
    assert (config.executor.image, config.epoch, config.lineage, config.pin) == (A, 3, 2, None)
    start = config.start_from
    assert start is not None
    assert (start.storage, start.snapshot, start.lineage, start.image) == (OWN, PIN, 1, A)
    assert (start.fork, start.holder) == (True, f"rollback-{PIN}")
    status = status_of(plan)
    assert (status.lineage, status.applied_spec_hash, record(plan).epoch) == (2, spec_hash(version(A, 1)), 3)
    assert status.start_from is not None
    assert (status.start_from.id, status.start_from.lineage, status.start_from.snapshot_lineage) == (PIN, 2, 1)


@pytest.mark.parametrize(
    ("known", "queries", "batch"),
    [
        ({"batches": (SnapshotBatch(name="main", batch_id=9), SnapshotBatch(name="side", batch_id=4))}, (), 9),
        # What the pin holds is not known, or not of each query, or it is lost: nothing is shown that may not be so.
        ({"batches": ()}, (), None),
        ({"batches": (SnapshotBatch(name="main", batch_id=9),)}, ("main", "side"), None),
        ({"batches": (SnapshotBatch(name="main", batch_id=9),), "lost_message": "gone"}, (), None),
    ],
)
def test_the_last_batch_that_is_shown_is_the_pins_and_not_what_the_version_that_is_rolled_back_has_done(
    known: dict[str, Any], queries: tuple[str, ...], batch: int | None
) -> None:
    app = rolling_back(rollback_snapshot=RollbackSnapshot(id=PIN, lineage=1, **known), queries=queries)
    plan = decide(observe(msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, batch=20))), NOW)
    status = status_of(plan)
    assert (status.lineage, status.batch) == (2, batch)


def test_a_pin_that_is_complete_only_while_the_rollback_runs_is_shown_then_until_there_is_a_newer_batch() -> None:
    pin = RollbackSnapshot(id=PIN, lineage=1, batches=(SnapshotBatch(name="main", batch_id=9),))
    app = rolling_back(epoch=3, rollback_snapshot=pin)
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, lineage=2, batch=None))
    old = version(A, 3)
    shown = [status_of(decide(observe(app, **runs(old, number)), NOW)).batch for number in (-1, 10)]
    assert shown == [9, 10]


def test_what_is_no_version_is_the_specs_also_then() -> None:
    change = {"executor.instances": 7, "driver.stopGracePeriodSeconds": 77, "restart.maxFailures": 1}
    config = launch_of(decide(observe(rolling_back(change=change)), NOW))
    assert (config.executor.instances, config.stop_grace_seconds, config.restart.max_failures) == (7, 77, 1)


def test_the_lineage_does_not_change_before_the_launch_that_opens_it() -> None:
    new = rolling_back()
    plan = decide(observe(new, driver=running_driver(version(B, 2), delete_by=NOW + 30)), NOW)
    assert status_of(plan).lineage == 1
    assert plan.reason == "UpgradeRollingBack"


def test_a_launch_that_came_to_nothing_is_followed_by_one_in_the_same_lineage_with_the_same_beginning() -> None:
    first = decide(observe(rolling_back()), NOW)
    app = msgspec.structs.replace(rolling_back(), status=status_of(first))
    config = launch_of(decide(observe(app), NOW + 300))
    assert (config.epoch, config.lineage) == (4, 2)
    assert config.start_from == launch_of(first).start_from


def test_a_pin_that_could_not_be_started_from_is_tried_again_when_somebody_removes_the_driver() -> None:
    launch = decide(observe(rolling_back()), NOW)
    back = msgspec.structs.replace(rolling_back(), status=status_of(launch))
    old = msgspec.structs.replace(version(A, 3), metadata=back.metadata)
    ended = driver_of(old, phase="Succeeded", ended=ended_with(Reason.SNAPSHOT_UNUSABLE, 0))
    plan = decide(observe(back, driver=ended), NOW)
    assert (status_of(plan).phase, plan.reason) == (Phase.FAILED, "SnapshotUnusable")
    assert "kubectl delete pod orders-driver -n shop" in plan.message
    assert not acts(plan, do.DeleteDriver)
    again = msgspec.structs.replace(back, status=status_of(plan))
    config = launch_of(decide(observe(again), NOW))
    assert (config.executor.image, config.epoch, config.lineage) == (A, 4, 2)
    assert config.start_from is not None
    assert config.start_from.snapshot == PIN


def test_a_launch_that_was_refused_is_tried_again_as_it_was() -> None:
    first = decide(observe(rolling_back()), NOW)
    app = msgspec.structs.replace(rolling_back(), status=status_of(first))
    refusal = Refusal("orders-driver", first.spec_hash, 3, Reason.LAUNCH_REFUSED, "quota", NOW - 60, 1)
    again = decide(observe(app, memory=ProcessState(refusal=refusal)), NOW)
    assert launch_of(again) == launch_of(first)
    assert again.rule == "wait_after_refused_launch"


def test_a_refusal_of_the_version_that_failed_is_none_of_the_one_before() -> None:
    refusal = Refusal("orders-driver", spec_hash(version(B, 2)), 2, Reason.LAUNCH_REFUSED, "quota", NOW - 1, 9)
    assert launch_of(decide(observe(rolling_back(), memory=ProcessState(refusal=refusal)), NOW)).epoch == 3


def test_it_is_over_when_the_last_stable_version_runs_and_that_is_no_good_news() -> None:
    new = rolling_back(epoch=3)
    plan = decide(observe(new, **runs(version(A, 3), 0)), NOW)
    assert record(plan).phase is UpgradePhase.ROLLED_BACK
    status = status_of(plan)
    stalled = status.condition("Stalled")
    assert stalled is not None
    assert (status.phase, stalled.status, stalled.reason) == (Phase.RUNNING, "True", "UpgradeRolledBack")
    assert "tried again only after a change of the spec" in stalled.message


@pytest.mark.parametrize("seen", ["nothing", "it starts", "the failed version's pod"])
def test_it_is_not_over_before(seen: str) -> None:
    new = rolling_back(epoch=3)
    drivers = {
        "nothing": None,
        "it starts": driver_of(version(A, 3)),
        "the failed version's pod": running_driver(version(B, 2), ready=True),
    }
    plan = decide(observe(new, driver=drivers[seen]), NOW)
    assert record(plan).phase is UpgradePhase.ROLLING_BACK


def test_a_spec_that_was_rolled_back_is_not_tried_again_whatever_happens_to_the_driver() -> None:
    app = rolling_back(epoch=3, phase=UpgradePhase.ROLLED_BACK)
    left = decide(observe(app, **runs(version(A, 3))), NOW)
    assert not acts(left, do.DeleteDriver, do.CreateDriver)
    gone = decide(observe(app), NOW + 300)
    assert launch_of(gone).executor.image == A
    assert record(gone).phase is UpgradePhase.ROLLED_BACK


@pytest.mark.parametrize("change", [{IMAGE: C}, {"restartNonce": 1}])
def test_once_it_changes_it_is_tried_again_with_a_pin_of_the_new_lineage(change: dict[str, Any]) -> None:
    back = rolling_back(epoch=3, phase=UpgradePhase.ROLLED_BACK)
    status = msgspec.structs.replace(back.status, lineage=2)
    plan = decide(observe(app_with({IMAGE: B, **change}, status=status), **runs(version(A, 3))), NOW)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.COPYING, 2)
    assert record(plan).rollback_snapshot == RollbackSnapshot(
        id="up-u1-3-2-6b49d200", lineage=2, copy="up-u1-3-2-6b49d200-copy"
    )
    assert PIN in record(plan).obsolete


@pytest.mark.parametrize("phase", [UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK])
def test_a_version_from_which_the_spec_was_reverted_is_tried_again_when_it_is_asked_for_again(
    phase: UpgradePhase,
) -> None:
    gate = upgrading(launched(app_with({IMAGE: B}), 2, phase=Phase.RUNNING), version(A, 1), UpgradePhase.GATE)
    reverted = edited(gate, {IMAGE: A})
    app = msgspec.structs.replace(reverted, status=status_of(decide(observe(reverted, **runs(gate, 2)), NOW)))
    app = msgspec.structs.replace(app, status=status_of(decide(observe(app), NOW)))
    assert app.status.upgrade is not None
    assert (app.status.upgrade.phase, app.status.upgrade.reason) == (UpgradePhase.ROLLING_BACK, "SpecReverted")
    upgrade = msgspec.structs.replace(app.status.upgrade, phase=phase)
    again = edited(with_upgrade(app, upgrade), {IMAGE: B})
    plan = decide(observe(again, **runs(version(A, 3), 2)), NOW)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.COPYING, 2)
    assert record(plan).to_spec_hash == spec_hash(app_with({IMAGE: B}))


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED])
@pytest.mark.parametrize("driver", [True, False], ids=["its driver is there", "its driver is gone"])
def test_a_spec_that_is_reverted_together_with_another_number_gets_its_state_back(
    phase: UpgradePhase, driver: bool
) -> None:
    app = launched(app_with({IMAGE: B}), 2, phase=Phase.RUNNING)
    new = upgrading(app, app_with({IMAGE: A}), phase, epoch=2)
    reverted = edited(new, {IMAGE: A, "restartNonce": 1})
    plan = decide(observe(reverted, **(runs(new, 2) if driver else {})), NOW)
    upgrade, last = record(plan), status_of(plan).last_stable
    assert (upgrade.phase, upgrade.reason, upgrade.lineage) == (UpgradePhase.ROLLING_BACK, "SpecReverted", 2)
    assert last is not None
    assert last.spec_hash == spec_hash(reverted)
    if driver:
        assert acts(plan, do.DeleteDriver)
        plan = decide(observe(msgspec.structs.replace(reverted, status=status_of(plan))), NOW)
    config = launch_of(plan)
    assert config.start_from is not None
    assert (config.executor.image, config.lineage, config.start_from.snapshot) == (A, 2, PIN)
    back = msgspec.structs.replace(reverted, status=status_of(plan))
    done = record(decide(observe(back, **runs(back, 2)), NOW))
    assert done.phase is UpgradePhase.ROLLED_BACK


def with_upgrade(app: StreamingApp, upgrade: UpgradeStatus) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=upgrade))


def test_an_edit_before_the_rollback_was_launched_waits_for_it() -> None:
    plan = decide(observe(rolling_back(image=C)), NOW)
    assert launch_of(plan).executor.image == A
    assert record(plan).phase is UpgradePhase.ROLLING_BACK


def test_an_edit_after_that_begins_another_upgrade_from_where_the_rollback_begins() -> None:
    launched_back = decide(observe(rolling_back()), NOW)
    app = app_with({IMAGE: C}, status=status_of(launched_back))
    plan = decide(observe(app), NOW)
    config = launch_of(plan)
    assert (config.executor.image, config.lineage) == (C, 2)
    assert config.start_from == launch_of(launched_back).start_from
    assert config.pin is not None
    assert config.pin.snapshot == "up-u1-3-2-6b49d200"


def test_a_rollback_says_after_which_launch_it_was_decided_also_at_a_later_attempt() -> None:
    app = rolling_back()
    launched_back = decide(observe(app), NOW)
    assert launch_of(launched_back).follows_epoch == app.status.epoch
    again = msgspec.structs.replace(app, status=status_of(launched_back))
    config = launch_of(decide(observe(again), NOW + 3600))
    assert (config.epoch, config.follows_epoch) == (app.status.epoch + 2, app.status.epoch)


def next_rollback(app: StreamingApp) -> DriverConfig:
    """Return the launch of the rollback of the version that takes the place of a rollback's driver."""
    launch = decide(observe(app), NOW)
    assert launch_of(launch).executor.image == C
    failed = version_under_test_failed(msgspec.structs.replace(app, status=status_of(launch)))
    back = msgspec.structs.replace(failed, spec=app_with({IMAGE: C}).spec)
    return launch_of(decide(observe(back), NOW))


def version_under_test_failed(app: StreamingApp) -> StreamingApp:
    """Return the application whose version C is to be taken back."""
    pod = driver_of(app, phase="Failed", ended=ended_with(Reason.APPLICATION_FAILED, 1), uid="c-1")
    plan = decide(observe(app, driver=pod), NOW)
    assert record(plan).phase is UpgradePhase.ROLLING_BACK
    return msgspec.structs.replace(app, status=status_of(plan))


def test_where_nothing_was_seen_to_run_in_a_rollbacks_lineage_the_next_one_knows_what_that_was_to_start_from() -> None:
    launched_back = decide(observe(rolling_back()), NOW)
    start = next_rollback(app_with({IMAGE: C}, status=status_of(launched_back))).start_from
    assert start is not None
    assert (start.snapshot, start.lineage, start.holder) == ("up-u1-3-2-6b49d200", 2, "rollback-up-u1-3-2-6b49d200")
    assert start.otherwise == (EarlierPin(PIN, f"rollback-{PIN}", 1),)


def test_the_next_rollback_also_knows_which_batches_an_older_copy_of_that_lacks() -> None:
    new = rolling_back()
    committed = (SnapshotBatch(name="main", batch_id=41), SnapshotBatch(name="side", batch_id=7))
    ran = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, lineage=1, batches=committed))
    launched_back = decide(observe(ran), NOW)
    assert launch_of(launched_back).expects_left == {"main": 41, "side": 7}
    config = next_rollback(app_with({IMAGE: C}, status=status_of(launched_back)))
    assert config.start_from is not None
    assert (config.start_from.lineage, config.expects_left) == (2, {})
    assert config.expects_otherwise == ({"main": 41, "side": 7},)


def test_where_something_did_the_next_rollback_starts_from_its_end_and_nothing_else() -> None:
    launched_back = decide(observe(rolling_back()), NOW)
    back = msgspec.structs.replace(rolling_back(), status=status_of(launched_back))
    ran = decide(observe(back, **runs(version(A, 3), 0)), NOW)
    config = next_rollback(app_with({IMAGE: C}, status=status_of(ran)))
    start = config.start_from
    assert start is not None
    assert (start.snapshot, start.lineage, start.otherwise, config.expects_otherwise) == (
        "up-u1-3-2-6b49d200",
        2,
        (),
        (),
    )


def test_what_a_rollback_may_have_to_start_from_is_not_disposed_of_before_the_upgrade_after_it() -> None:
    launched_back = decide(observe(rolling_back()), NOW)
    anew = {IMAGE: C, "upgrade.mode": "Stateless"}  # its driver runs in a lineage of its own, and fills no other
    app = app_with(anew, annotations={"tidegate.dev/abandon-state": "2"}, status=status_of(launched_back))
    launch = decide(observe(app), NOW)
    assert (launch_of(launch).lineage, launch_of(launch).start_from) == (3, None)
    assert record(launch).obsolete == (COPY,)
    ended = record(launch)
    assert ended.rollback_snapshot is not None
    assert [pin.id for pin in ended.rollback_snapshot.fallbacks] == [PIN]
    done = msgspec.structs.replace(ended, phase=UpgradePhase.COMPLETED)
    later = msgspec.structs.replace(status_of(launch), upgrade=done)
    after = app_with({IMAGE: "shop/orders:9"}, status=later)
    assert record(decide(observe(after), NOW)).obsolete == (COPY, PIN, ended.rollback_snapshot.id)


def test_as_many_rollbacks_as_follow_one_another_without_a_driver_know_of_all_before() -> None:
    new, committed = rolling_back(), (SnapshotBatch(name="main", batch_id=41),)
    ran = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, lineage=1, batches=committed))
    status = status_of(decide(observe(ran), NOW))
    for number in range(2, 14):
        image = f"shop/orders:{number + 10}"
        launch = decide(observe(app_with({IMAGE: image}, status=status)), NOW)
        failed = version_under_test_failed(app_with({IMAGE: image}, status=status_of(launch)))
        again = decide(observe(failed), NOW)
        status = status_of(again)
        assert status.start_from is not None
        assert status.start_from.snapshot_lineage == number
        known = [pin.lineage for pin in status.start_from.fallbacks]
        assert known == list(range(number - 1, 0, -1))[:8]
        # Only in the first one there was anything.
        assert all(pin.batches == (committed if pin.lineage == 1 else ()) for pin in status.start_from.fallbacks)


@pytest.mark.parametrize("spec", ["", "[]", '{"application.image":7}'])
def test_a_version_that_can_not_be_read_any_more_is_not_guessed(spec: str) -> None:
    new = rolling_back()
    damaged = msgspec.structs.replace(stable_of(version(A, 1)), spec=spec)
    new = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, last_stable=damaged))
    plan = decide(observe(new), NOW)
    assert not acts(plan, do.CreateDriver)
    assert (status_of(plan).phase, plan.reason) == (Phase.PENDING, "UpgradeRollingBack")


# --- by hand ---------------------------------------------------------------------------------------------------------


def asked(app: StreamingApp, pin: str = PIN) -> StreamingApp:
    """Return the application with somebody's wish to take an upgrade back."""
    upgrade = msgspec.structs.replace(app.spec.upgrade, rollback_to=pin)
    return msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, upgrade=upgrade))


def in_phase(phase: UpgradePhase) -> StreamingApp:
    app = launched(app_with({IMAGE: B}), 2, phase=Phase.RUNNING)
    return upgraded(app, version(A, 1)) if phase is UpgradePhase.COMPLETED else upgrading(app, version(A, 1), phase)


@pytest.mark.parametrize(
    ("phase", "is_obeyed"),
    [
        (UpgradePhase.STOPPING, False),
        (UpgradePhase.GATE, True),
        (UpgradePhase.COMPLETED, True),
        (UpgradePhase.FAILED, True),
        (UpgradePhase.ROLLING_BACK, False),
        (UpgradePhase.ROLLED_BACK, False),
        (UpgradePhase.WITHDRAWN, False),
    ],
)
def test_naming_the_pin_takes_an_upgrade_back_that_was_launched(phase: UpgradePhase, is_obeyed: bool) -> None:
    plan = decide(observe(asked(in_phase(phase)), **runs(version(B, 2), 1)), NOW)
    assert (record(plan).reason == "RollbackRequested") == is_obeyed
    if is_obeyed:
        assert (record(plan).phase, record(plan).lineage) == (UpgradePhase.ROLLING_BACK, 2)
        assert status_of(plan).last_stable == stable_of(version(A, 1))
        assert acts(plan, do.DeleteDriver)


UNCONFIRMED = {IMAGE: C, "upgrade.mode": "Stateless"}


def refused_at_once() -> StreamingApp:
    """Return the application after an upgrade from A to B and the refusal of C, before B was touched."""
    done = in_phase(UpgradePhase.COMPLETED)
    plan = decide(observe(edited(done, UNCONFIRMED), **runs(version(B, 2))), NOW)
    assert record(plan).phase is UpgradePhase.REFUSED
    assert not acts(plan, do.OrderSnapshots)
    return edited(msgspec.structs.replace(done, status=status_of(plan)), UNCONFIRMED)


def test_an_upgrade_that_is_refused_at_once_leaves_the_way_back_of_the_one_before() -> None:
    refused = refused_at_once()
    kept = refused.status.upgrade
    assert kept is not None
    assert (kept.number, kept.rollback_snapshot, kept.previous) == (
        2,
        RollbackSnapshot(id=PIN, lineage=1, copy=COPY),
        stable_of(version(A, 1)),
    )
    assert decide(observe(refused, **runs(version(B, 2))), NOW).actions == ()
    plan = decide(observe(asked(refused), **runs(version(B, 2))), NOW)
    assert (record(plan).phase, status_of(plan).last_stable) == (UpgradePhase.ROLLING_BACK, stable_of(version(A, 1)))
    back = msgspec.structs.replace(asked(refused), status=status_of(plan))
    launch = decide(observe(back), NOW)
    config = launch_of(launch)
    assert (config.executor.image, config.lineage) == (A, 2)
    back = msgspec.structs.replace(back, status=status_of(launch))
    over = decide(observe(back, **runs(version(A, 3))), NOW)
    assert record(over).phase is UpgradePhase.ROLLED_BACK


def test_so_it_does_when_the_edit_that_was_refused_is_withdrawn() -> None:
    refused = refused_at_once()
    plan = decide(observe(edited(refused, {IMAGE: B}), **runs(version(B, 2))), NOW)
    assert record(plan).phase is UpgradePhase.WITHDRAWN
    withdrawn = edited(msgspec.structs.replace(refused, status=status_of(plan)), {IMAGE: B})
    plan = decide(observe(asked(withdrawn), **runs(version(B, 2))), NOW)
    assert (record(plan).phase, record(plan).to_spec_hash) == (UpgradePhase.ROLLING_BACK, spec_hash(version(B, 2)))


def test_the_next_upgrade_that_begins_disposes_of_it() -> None:
    refused = refused_at_once()
    plan = decide(observe(edited(refused, {IMAGE: C}), **runs(version(B, 2))), NOW)
    assert (record(plan).phase, record(plan).obsolete) == (UpgradePhase.COPYING, (COPY, PIN))
    assert record(plan).previous is None


@pytest.mark.parametrize("phase", [UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN])
def test_a_pin_that_is_not_complete_is_completed_after_a_refusal_too(phase: UpgradePhase) -> None:
    refused = refused_at_once()
    assert refused.status.upgrade is not None
    record_of = msgspec.structs.replace(refused.status.upgrade, phase=phase)
    app = msgspec.structs.replace(refused, status=msgspec.structs.replace(refused.status, upgrade=record_of))
    app = edited(app, {IMAGE: B}) if phase is UpgradePhase.WITHDRAWN else app
    assert launch_of(decide(observe(app), NOW)).pin == Pin(PIN, image=A)


def reported_of(plan: do.Plan, reason: str) -> list[PublishEvent]:
    return [each for each in plan.actions if isinstance(each, PublishEvent) and each.reason == reason]


def test_naming_another_pin_does_nothing_and_is_told_once() -> None:
    mistyped, seen = asked(in_phase(UpgradePhase.COMPLETED), "up-u1-0-0"), runs(version(B, 2))
    plan = decide(observe(mistyped, **seen), NOW)
    assert record(plan).phase is UpgradePhase.COMPLETED
    assert not acts(plan, do.DeleteDriver)
    (reported,) = reported_of(plan, "RollbackIgnored")
    assert reported.warning
    assert "spec.upgrade.rollbackTo names up-u1-0-0" in reported.message
    assert PIN in reported.message
    knows = msgspec.structs.replace(mistyped, status=status_of(plan))
    for seconds in (1, 86400):
        assert not reported_of(decide(observe(knows, **seen), NOW + seconds), "RollbackIgnored")
    other = asked(knows, "up-u1-0-1")
    assert reported_of(decide(observe(other, **seen), NOW), "RollbackIgnored")


def test_naming_a_pin_before_there_was_an_upgrade_is_told_once() -> None:
    app = asked(stable(launched(app_with({IMAGE: A}), phase=Phase.RUNNING)))
    plan = decide(observe(app, **runs(app)), NOW)
    (reported,) = reported_of(plan, "RollbackIgnored")
    assert "but there is nothing to roll back" in reported.message
    knows = msgspec.structs.replace(app, status=status_of(plan))
    assert not reported_of(decide(observe(knows, **runs(app)), NOW), "RollbackIgnored")
    begun = decide(observe(asked(edited(knows, {IMAGE: B})), **runs(app)), NOW)
    assert record(begun).rollback_to == PIN


@pytest.mark.parametrize("phase", [UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN])
def test_naming_the_pin_of_an_upgrade_that_was_not_launched_is_told(phase: UpgradePhase) -> None:
    pin = RollbackSnapshot(id=PIN, lineage=1)
    app = upgrading(launched(app_with({IMAGE: B})), version(A, 1), phase, epoch=0, rollback_snapshot=pin)
    app = edited(app, {IMAGE: A}) if phase is UpgradePhase.WITHDRAWN else app
    plan = decide(observe(asked(app), **runs(version(A, 1))), NOW)
    (reported,) = reported_of(plan, "RollbackIgnored")
    assert "but there is nothing to roll back" in reported.message


def test_a_wish_that_was_fulfilled_and_stays_in_the_spec_is_not_told_of_at_the_next_upgrade() -> None:
    asked_for = decide(observe(asked(in_phase(UpgradePhase.COMPLETED)), **runs(version(B, 2))), NOW)
    over = msgspec.structs.replace(record(asked_for), phase=UpgradePhase.ROLLED_BACK, epoch=3)
    status = msgspec.structs.replace(status_of(asked_for), upgrade=over, lineage=2)
    next_one = asked(app_with({IMAGE: C}, status=status))
    begun = decide(observe(next_one, **runs(version(A, 3))), NOW)
    assert record(begun).phase is UpgradePhase.COPYING
    on_its_way = msgspec.structs.replace(next_one, status=status_of(begun))
    after = decide(observe(on_its_way, **runs(version(A, 3))), NOW)
    assert not reported_of(begun, "RollbackIgnored")
    assert not reported_of(after, "RollbackIgnored")


@pytest.mark.parametrize("phase", [UpgradePhase.GATE, UpgradePhase.COMPLETED, UpgradePhase.FAILED])
def test_a_pin_that_is_named_and_lost_is_said_as_long_as_it_is_named(phase: UpgradePhase) -> None:
    app = in_phase(phase)
    assert app.status.upgrade is not None
    lost = msgspec.structs.replace(
        app.status.upgrade, rollback_snapshot=RollbackSnapshot(id=PIN, lineage=1, lost_message="A file is gone.")
    )
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=lost))
    plan = decide(observe(asked(app), **runs(version(B, 2), 1)), NOW)
    condition = status_of(plan).condition("Stalled")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "RollbackSnapshotLost")
    assert "spec.upgrade.rollbackTo" in condition.message
    assert "A file is gone." in condition.message
    assert not acts(plan, do.DeleteDriver)
    assert len(reported_of(plan, "RollbackSnapshotLost")) == 1
    knows = msgspec.structs.replace(app, status=status_of(plan))
    assert not reported_of(decide(observe(asked(knows), **runs(version(B, 2), 1)), NOW), "RollbackSnapshotLost")
    gave_up = status_of(decide(observe(knows, **runs(version(B, 2), 1)), NOW)).condition("Stalled")
    assert gave_up is not None
    assert gave_up.status == "False"


def test_a_version_that_was_started_again_since_is_not_tried_again_when_it_is_rolled_back_by_hand() -> None:
    done = in_phase(UpgradePhase.COMPLETED)
    again = app_with({IMAGE: B, "restartNonce": 1}, status=done.status)
    again = msgspec.structs.replace(
        again,
        status=msgspec.structs.replace(
            done.status, last_stable=stable_of(again), epoch=3, applied_spec_hash=spec_hash(again)
        ),
    )
    asked_for = decide(observe(asked(again), **runs(again)), NOW)
    assert (record(asked_for).phase, record(asked_for).to_spec_hash) == (UpgradePhase.ROLLING_BACK, spec_hash(again))
    back = msgspec.structs.replace(asked(again), status=status_of(asked_for))
    launch = decide(observe(back), NOW)
    assert launch_of(launch).executor.image == A
    back = msgspec.structs.replace(back, status=status_of(launch))
    over = decide(observe(back, **runs(version(A, 4))), NOW)
    assert record(over).phase is UpgradePhase.ROLLED_BACK
    settled = msgspec.structs.replace(back, status=status_of(over))
    assert decide(observe(settled, **runs(version(A, 4))), NOW).actions == ()


def test_a_finished_application_does_not_tell_who_waits_for_the_spec_that_it_was_what_ran() -> None:
    back = rolling_back(phase=UpgradePhase.ROLLED_BACK)
    old = msgspec.structs.replace(version(A, 2), metadata=back.metadata)
    finished = driver_of(old, phase="Succeeded", ended=ended_with(Reason.COMPLETED, 0))
    status = status_of(decide(observe(back, driver=finished), NOW))
    stalled = status.condition("Stalled")
    assert stalled is not None
    assert (status.phase, stalled.status, stalled.reason) == (Phase.COMPLETED, "True", "UpgradeRolledBack")


def test_a_wish_that_was_fulfilled_is_not_fulfilled_again_by_the_next_upgrade() -> None:
    done = upgraded(launched(app_with({IMAGE: C}), 4), version(A, 3))
    assert done.status.upgrade is not None
    number_two = msgspec.structs.replace(
        done.status.upgrade, rollback_snapshot=RollbackSnapshot(id="up-u1-3-2-6b49d200", lineage=2)
    )
    app = msgspec.structs.replace(done, status=msgspec.structs.replace(done.status, upgrade=number_two))
    plan = decide(observe(asked(app), **runs(version(C, 4))), NOW)
    assert record(plan).phase is UpgradePhase.COMPLETED


def test_a_stateless_upgrade_is_rolled_back_to_the_lineage_that_was_given_up() -> None:
    app = launched(app_with({IMAGE: B}), 2, lineage=2)
    new = upgrading(app, version(A, 1), UpgradePhase.GATE, mode=UpgradeMode.STATELESS, lineage=2)
    driver = running_driver(new, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    failed = decide(observe(new, driver=driver), NOW)
    assert (record(failed).phase, record(failed).lineage) == (UpgradePhase.ROLLING_BACK, 3)
    back = decide(observe(msgspec.structs.replace(new, status=status_of(failed))), NOW)
    start = launch_of(back).start_from
    assert start is not None
    assert (launch_of(back).lineage, start.lineage) == (3, 1)


def test_the_driver_of_another_application_of_the_name_says_nothing_about_a_version() -> None:
    new = in_phase(UpgradePhase.GATE)
    foreign = dataclasses.replace(running_driver(new, ready=True), app_uid="u-0")
    plan = decide(
        observe(new, driver=foreign, agent=report_of(foreign, queries=(QueryReport("main", committed=9),))), NOW
    )
    assert record(plan).phase is UpgradePhase.GATE


def test_a_start_from_nothing_by_the_number_alone_stays_one_under_test_when_the_mode_is_set_back() -> None:
    old = old_app()
    app = launched(app_with({IMAGE: A, "restartNonce": 7}), 2, phase=Phase.RUNNING, lineage=2)
    tested = upgrading(app, old, UpgradePhase.GATE, mode=UpgradeMode.STATELESS, lineage=2)
    status = status_of(decide(observe(tested, **runs(tested, 0)), NOW))
    assert status.upgrade is not None
    assert (status.upgrade.phase, status.last_stable) == (UpgradePhase.GATE, stable_of(old))


# --- by hand, together with another edit ------------------------------------------------------------------------------


def asked_for(app: StreamingApp, driver: dict[str, Any]) -> StreamingApp:
    """Return the application after a rollback to version A was asked for, with A in the spec, and A was launched."""
    app = written(observe(edited(app, {IMAGE: A, "upgrade.rollbackTo": PIN}), **driver))
    assert app.status.upgrade is not None
    assert app.status.upgrade.phase is UpgradePhase.ROLLING_BACK
    plan = decide(observe(app), NOW)
    start = launch_of(plan).start_from
    assert start is not None
    assert start.snapshot == PIN
    return msgspec.structs.replace(app, status=status_of(plan))


def test_a_rollback_that_is_asked_for_with_the_previous_spec_after_a_refused_edit_comes_to_its_end() -> None:
    new = version(B, 2)
    refused = written(observe(edited(upgraded(new, app_with({IMAGE: A})), NO_POD), **runs(new)))
    assert refused.status.upgrade is not None
    assert refused.status.upgrade.phase is UpgradePhase.REFUSED
    app = asked_for(refused, runs(new))
    app = written(observe(app, **runs(app)))
    assert app.status.upgrade is not None
    assert app.status.upgrade.phase is UpgradePhase.ROLLED_BACK
    app = written(observe(app, **runs(app)))
    assert app.status.upgrade is not None
    assert app.status.upgrade.phase is UpgradePhase.WITHDRAWN


def test_a_rollback_to_the_version_that_runs_since_its_number_was_set_back_stops_it_and_starts_from_the_pin() -> None:
    before, new = app_with({IMAGE: A}), app_with({IMAGE: A, "restartNonce": 1})  # which read from other offsets
    done = upgrading(launched(new, 2, phase=Phase.RUNNING), before, UpgradePhase.COMPLETED, previous=stable_of(before))
    done = msgspec.structs.replace(done, status=msgspec.structs.replace(done.status, last_stable=stable_of(new)))
    again = written(observe(edited(done, {IMAGE: A}), **runs(done)))
    again = written(observe(again))
    assert (again.status.epoch, again.status.applied_spec_hash) == (3, spec_hash(before))
    wanted = edited(again, {IMAGE: A, "upgrade.rollbackTo": PIN})
    assert acts(decide(observe(wanted, **runs(again)), NOW), do.DeleteDriver)
    app = asked_for(again, runs(again))
    plan = decide(observe(app, **runs(app)), NOW)
    assert not acts(plan, do.DeleteDriver)
    assert record(plan).phase is UpgradePhase.ROLLED_BACK
