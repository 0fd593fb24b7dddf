"""An application that starts from a snapshot, or has run, and of which the status or the storage is lost. Pure.

Its storage knows what it started with. It goes on there, or stands still; it never starts empty.
"""

from typing import Any

import msgspec
import pytest

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot, StreamSnapshotStatus
from tidegate.api.streaming_app import (
    Phase,
    QueryStatus,
    SnapshotBatch,
    StartedFrom,
    StreamingApp,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
)
from tidegate.app.actions import CreateDriver, DeleteDriver, RecordLaunch
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    EXPECTS_BEGINNING,
    EXPECTS_NOTHING,
    EXPECTS_STATE,
    OPENS_EMPTY,
    OPENS_FROM_SNAPSHOT,
    OPENS_NOTHING,
    DriverConfig,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, driver_of, launched, observe
from tidegate_testing.plans import acts, settled, status_of, verdict_of, written
from tidegate_testing.snapshot_observations import begun, deleted, ready_snapshot, snapshot
from tidegate_testing.upgrades import IMAGE, B, old_app, under_test

ORIGIN_APP = launched(app_with(name="orders", uid="u-0"))
ORIGIN = ready_snapshot(ORIGIN_APP)
FORK = app_with({"startFrom": {"snapshotRef": {"name": "nightly"}}}, name="variant", uid="u-9")
"""It has the finalizer, and no status."""
FAILED = snapshot(begun(ORIGIN_APP, phase=SnapshotPhase.FAILED))
RECORD = StartedFrom(
    snapshot_name="nightly", id="nightly-aabbccdd", app_uid="u-0", lineage=1, uri="s3://streams/apps/shop/orders"
)


def config_of(o: Observation) -> DriverConfig:
    (create,) = [action for action in decide(o, NOW + 3600).actions if isinstance(action, CreateDriver)]
    env = {item["name"]: item.get("value", "") for item in create.manifest["spec"]["containers"][0]["env"]}
    return from_json(DriverConfig, env[CONFIG_VARIABLE].replace("$$", "$"))


def ended(reason: Reason, **reported: Any) -> dict[str, Any]:
    """Return the fields of a driver's pod that ended for good."""
    termination = to_json(Termination(reason, "because", 1, **reported))
    return {"phase": "Succeeded", "running": False, "ended": Exit(0, "Completed", termination, NOW - 5)}


def asking(origin: StreamSnapshot | None = None, **driver: Any) -> Observation:
    """Return what is seen of a fork whose driver was launched to ask the storage."""
    app = written(observe(FORK, origin=None))
    return observe(app, driver=driver_of(app, **driver), origin=origin)


# --- the status is lost, and the snapshot with it ---


@pytest.mark.parametrize(
    "origin", [None, snapshot(StreamSnapshotStatus()), FAILED, deleted(ORIGIN)], ids=["gone", "new", "failed", "going"]
)
def test_a_fork_that_lost_its_status_and_its_snapshot_has_its_storage_asked(origin: StreamSnapshot | None) -> None:
    o = observe(FORK, origin=origin)
    asked = config_of(o)
    assert (asked.lineage, asked.opening, asked.start_from) == (0, OPENS_NOTHING, None)
    assert asked.expects == EXPECTS_BEGINNING
    (record,) = [action for action in decide(o, NOW).actions if isinstance(action, RecordLaunch)]
    assert (record.status.lineage, record.status.start_from, record.status.state_partitions) == (0, None, 0)


def test_it_goes_on_where_the_storage_says_whatever_there_is_of_the_snapshot_by_then() -> None:
    reported = ended(Reason.FENCED, adopt_epoch=9, adopt_lineage=1, adopt_found=True)
    seen = asking(**reported)
    assert verdict_of(decide(seen, NOW)) == (Phase.STARTING, "Reconciling", Reason.EPOCH_ADOPTED)
    app = written(seen)
    assert (app.status.epoch, app.status.lineage, app.status.start_from) == (9, 1, None)
    # Another snapshot of the name is nothing that it started with.
    for origin in (None, ORIGIN):
        again = config_of(observe(app, origin=origin))
        assert (again.epoch, again.lineage, again.opening, again.start_from) == (10, 1, OPENS_NOTHING, None)
        assert again.expects == EXPECTS_BEGINNING


def test_a_fork_that_started_from_an_earlier_snapshot_of_the_name_does_not_take_turns_with_its_storage() -> None:
    o = observe(FORK, origin=ORIGIN)
    assert config_of(o).opening == OPENS_FROM_SNAPSHOT
    app = written(o)
    other = {"adopt_epoch": 9, "adopt_lineage": 1, "adopt_found": True}
    app = written(observe(app, driver=driver_of(app, **ended(Reason.FENCED, **other)), origin=ORIGIN))
    app = written(observe(app, origin=ORIGIN))
    assert (app.status.epoch, app.status.start_from) == (10, RECORD)
    otherwise = ended(Reason.FENCED, **{**other, "adopt_opening": True})
    app = written(observe(app, driver=driver_of(app, **otherwise), origin=ORIGIN))
    assert (app.status.lineage, app.status.start_from) == (1, None)
    again = config_of(observe(app, origin=ORIGIN))
    assert (again.lineage, again.opening, again.expects) == (1, OPENS_NOTHING, EXPECTS_BEGINNING)


def test_where_its_storage_is_empty_it_stands_still_and_looks_again() -> None:
    seen = asking(**ended(Reason.STORAGE_EMPTY))
    plan = decide(seen, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", Reason.STORAGE_EMPTY)
    assert not acts(plan, DeleteDriver, CreateDriver)
    assert "spec.startFrom.snapshotRef is Ready again" in plan.message
    later = decide(settled(seen), NOW + 3600)
    assert acts(later, DeleteDriver)
    asked = config_of(observe(written(seen), origin=None))
    assert (asked.lineage, asked.expects) == (0, EXPECTS_BEGINNING)


def test_where_its_storage_is_empty_it_starts_from_the_snapshot_at_once_when_that_is_back() -> None:
    seen = asking(ORIGIN, **ended(Reason.STORAGE_EMPTY))
    assert acts(decide(seen, NOW), DeleteDriver)
    app = written(seen)
    assert (app.status.lineage, app.status.start_from) == (0, None)
    o = observe(app, origin=ORIGIN)
    again = config_of(o)
    assert (again.lineage, again.opening, again.expects) == (1, OPENS_FROM_SNAPSHOT, EXPECTS_NOTHING)
    assert written(o).status.start_from == RECORD


@pytest.mark.parametrize(("epoch", "lineage"), [(9, 1), (9, 2), (1, 2)])
def test_a_runtime_that_names_what_it_was_not_told_has_found_a_claim(epoch: int, lineage: int) -> None:
    seen = asking(**ended(Reason.FENCED, adopt_epoch=epoch, adopt_lineage=lineage))
    assert seen.driver is not None
    assert seen.driver.epoch == 1
    assert verdict_of(decide(seen, NOW)) == (Phase.STARTING, "Reconciling", Reason.EPOCH_ADOPTED)
    app = written(seen)
    assert (app.status.epoch, app.status.lineage) == (epoch, lineage)


def test_a_runtime_that_names_what_it_was_told_may_have_found_nothing_and_is_not_believed() -> None:
    unproven = ended(Reason.FENCED, adopt_epoch=1, adopt_lineage=1)
    seen = asking(**unproven)
    plan = decide(seen, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", Reason.STORAGE_EMPTY)
    assert "Upgrade the image of spec.application.image" in plan.message
    assert decide(settled(seen), NOW + 3600).actions == ()
    back = asking(ORIGIN, **unproven)
    assert acts(decide(back, NOW), DeleteDriver)
    assert config_of(observe(written(back), origin=ORIGIN)).opening == OPENS_FROM_SNAPSHOT


def test_one_that_is_to_give_its_state_up_starts_with_nothing_in_a_lineage_of_its_own() -> None:
    stateless = under_test(UpgradePhase.STOPPING, mode=UpgradeMode.STATELESS, lineage=2, rollback_snapshot=None)
    status = StreamingAppStatus(epoch=3, upgrade=stateless.status.upgrade)
    asked = config_of(observe(msgspec.structs.replace(FORK, status=status)))
    assert (asked.lineage, asked.opening, asked.expects) == (2, OPENS_EMPTY, EXPECTS_NOTHING)


def test_one_whose_status_was_lost_before_it_gave_its_state_up_does_not_look_for_that_in_the_new_lineage() -> None:
    stateless = under_test(UpgradePhase.STOPPING, mode=UpgradeMode.STATELESS, lineage=2, rollback_snapshot=None)
    assert stateless.status.upgrade is not None
    upgrade = msgspec.structs.replace(stateless.status.upgrade, epoch=0)
    # The last words of the driver that stopped for it told the batch.
    first = msgspec.structs.replace(FORK, status=StreamingAppStatus(epoch=3, batch=8, upgrade=upgrade))
    assert config_of(observe(first)).expects == EXPECTS_NOTHING
    begun = msgspec.structs.replace(upgrade, phase=UpgradePhase.GATE, epoch=4)
    status = StreamingAppStatus(epoch=4, lineage=2, batch=1, upgrade=begun)
    assert config_of(observe(msgspec.structs.replace(FORK, status=status))).expects == EXPECTS_STATE


# --- the status and the store's address are lost together ---


def test_nothing_says_that_it_has_run_but_a_person_who_has_it_take_over_what_there_is() -> None:
    forgotten = moved(app_with())
    assert config_of(observe(forgotten)).expects == EXPECTS_NOTHING
    assert config_of(observe(moved(app_with({"startFrom": {"adopt": True}})))).adopt


def test_a_fork_starts_from_its_snapshot_again_or_has_the_other_store_asked() -> None:
    again = config_of(observe(moved(FORK), origin=ORIGIN))
    assert (again.lineage, again.opening, again.expects) == (1, OPENS_FROM_SNAPSHOT, EXPECTS_NOTHING)
    asked = config_of(observe(moved(FORK), origin=None))
    assert (asked.lineage, asked.expects) == (0, EXPECTS_BEGINNING)


# --- the storage is another one ---


def moved(app: StreamingApp, **fields: Any) -> StreamingApp:
    """Return an application whose spec names another store since it was launched."""
    spec = msgspec.structs.replace(app.spec.storage, endpoint="http://other-store:9000")
    status = msgspec.structs.replace(app.status, **fields)
    return msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, storage=spec), status=status)


@pytest.mark.parametrize(
    ("fields", "expects"),
    [
        ({}, EXPECTS_NOTHING),
        ({"batch": 0}, EXPECTS_STATE),
        ({"batch": 0, "lineage": 0}, EXPECTS_STATE),
        # Of a lineage that was made of another one, a batch is known before there is anything in it.
        ({"lineage": 2, "batch": 7}, EXPECTS_BEGINNING),
        ({"lineage": 2}, EXPECTS_BEGINNING),
        ({"start_from": RECORD}, EXPECTS_NOTHING),
        ({"start_from": msgspec.structs.replace(RECORD, started=True)}, EXPECTS_STATE),
    ],
)
def test_what_has_run_expects_its_state_whatever_store_the_spec_names(fields: dict[str, Any], expects: str) -> None:
    assert config_of(observe(moved(launched(app_with()), **fields))).expects == expects


COMMITTED = (SnapshotBatch(name="main", batch_id=7), SnapshotBatch(name="side", batch_id=3))
QUERIES = (QueryStatus(name="main", batch_id=7), QueryStatus(name="newest", batch_id=9, starts_empty=True))


@pytest.mark.parametrize(
    ("fields", "batches"),
    [
        ({}, {}),
        ({"batch": 7, "batches": COMMITTED}, {"main": 7, "side": 3}),
        # An operator of before wrote down one number for all queries, which says of none where it ended.
        ({"batch": 7}, {}),
        # Its queries do, also of an application that was suspended when the operator was upgraded.
        ({"batch": 7, "queries": QUERIES}, {"main": 7}),
        ({"batch": 7, "queries": QUERIES, "batches": COMMITTED}, {"main": 7, "side": 3}),
        # Before anything is in the lineage, or without its number, nothing is sure.
        ({"lineage": 2, "batch": 7, "batches": COMMITTED}, {}),
        ({"lineage": 0, "batch": 7, "batches": COMMITTED}, {}),
        ({"batch": 7, "batches": COMMITTED, "start_from": RECORD}, {"main": 7, "side": 3}),
    ],
)
def test_what_has_run_expects_the_last_batches_that_were_reported(
    fields: dict[str, Any], batches: dict[str, int]
) -> None:
    assert config_of(observe(moved(launched(app_with()), **fields))).expects_batches == batches


def test_an_older_copy_stands_still_and_keeps_the_batch_that_it_is_compared_with() -> None:
    app = written(observe(moved(launched(app_with({IMAGE: B})), batch=7, batches=COMMITTED)))
    seen = observe(app, driver=driver_of(app, **ended(Reason.STORAGE_OLDER)))
    plan = decide(seen, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", Reason.STORAGE_OLDER)
    assert config_of(observe(written(seen))).expects_batches == {"main": 7, "side": 3}


def test_a_stable_version_expects_its_state_although_its_batch_was_lost() -> None:
    assert old_app().status.batch is None
    assert config_of(observe(old_app())).expects == EXPECTS_STATE


@pytest.mark.parametrize("reason", [Reason.STORAGE_EMPTY, Reason.STORAGE_OLDER])
def test_an_edit_to_a_store_without_the_newest_state_is_rolled_back_to_the_one_that_has_it(reason: Reason) -> None:
    app = under_test(UpgradePhase.GATE, {"storage.endpoint": "http://other-store:9000"})
    seen = observe(app, driver=driver_of(app, **ended(reason, committed=0)))
    rolled = status_of(decide(seen, NOW)).upgrade
    assert rolled is not None
    assert (rolled.phase, rolled.reason) == (UpgradePhase.ROLLING_BACK, reason)
    back = config_of(observe(written(seen)))
    assert back.start_from is not None
    assert (back.storage.endpoint, back.start_from.storage.endpoint, back.expects) == ("", "", EXPECTS_BEGINNING)


def test_an_edit_of_what_never_was_stable_stands_still_until_it_is_withdrawn() -> None:
    app = moved(launched(app_with({IMAGE: B})), batch=3)
    app = written(observe(app))
    seen = observe(app, driver=driver_of(app, **ended(Reason.STORAGE_EMPTY)))
    plan = decide(seen, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", Reason.STORAGE_EMPTY)
    assert "Revert the edit of spec.storage" in plan.message
    assert status_of(plan).batch == 3


@pytest.mark.parametrize(("confirmed", "lineage"), [("2", 3), ("1", 2)])
def test_what_started_empty_and_is_lost_is_given_up_once_more_if_its_very_lineage_is_named(
    confirmed: str, lineage: int
) -> None:
    tested = under_test(UpgradePhase.GATE, mode=UpgradeMode.STATELESS, lineage=2, rollback_snapshot=None)
    status = msgspec.structs.replace(tested.status, lineage=2, batch=4)
    named = {ABANDON_ANNOTATION: confirmed}
    edit = {IMAGE: B, "restartNonce": 7, "upgrade.mode": "Stateless"}
    again = app_with(edit, status=status, annotations=named)
    upgrade = status_of(decide(observe(again), NOW)).upgrade
    assert upgrade is not None
    assert (upgrade.mode, upgrade.lineage) == (UpgradeMode.STATELESS, lineage)
