"""What the storage says of epoch and lineage takes the place of what the status says. Pure."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import (
    Phase,
    RepartitionResult,
    RepartitionStatus,
    SnapshotBatch,
    StartedFrom,
    StreamingApp,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
)
from tidegate.app.actions import CreateDriver, DeleteDriver, RecordLaunch
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.record import without_rollback_snapshot
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    EXPECTS_BEGINNING,
    EXPECTS_STATE,
    OPENS_EMPTY,
    OPENS_FROM_SNAPSHOT,
    OPENS_NOTHING,
    OPENS_REPARTITIONED,
    DriverConfig,
    DriverState,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    PLATFORM,
    UID,
    app_with,
    driver_of,
    launched,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.plans import acts, settled, status_of, written
from tidegate_testing.upgrades import COPY, IMAGE, PIN, B, old_app, runs, under_test, upgraded, upgrading

BEGAN = StartedFrom(snapshot_name=PIN, id=PIN, app_uid=UID, lineage=3, uri="s3://streams/apps/shop/orders")


def fenced(**reported: Any) -> dict[str, Any]:
    """Return the fields of a driver's pod that was not to run."""
    termination = to_json(Termination(Reason.FENCED, "because", 1, **reported))
    return {"phase": "Succeeded", "running": False, "ended": Exit(0, "Completed", termination, NOW - 5)}


def with_status(app: StreamingApp, **fields: Any) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, **fields))


def launch_of(app: StreamingApp) -> DriverConfig:
    """Return what the next driver is told."""
    (create,) = [it for it in decide(observe(app), NOW + 3600).actions if isinstance(it, CreateDriver)]
    env = {item["name"]: item.get("value", "") for item in create.manifest["spec"]["containers"][0]["env"]}
    return from_json(DriverConfig, env[CONFIG_VARIABLE].replace("$$", "$"))


def test_a_lineage_that_the_status_has_not_is_taken_over_although_it_knows_the_epoch() -> None:
    app = launched(app_with(), epoch=10, lineage=0, batch=3)
    seen = observe(app, driver=driver_of(app, **fenced(adopt_epoch=9, adopt_lineage=2)))
    plan = decide(seen, NOW)
    assert plan.reason == Reason.EPOCH_ADOPTED
    assert acts(plan, DeleteDriver)
    reported = status_of(plan)
    assert (reported.epoch, reported.lineage, reported.batch) == (10, 2, None)
    again = launch_of(written(seen))
    assert (again.epoch, again.lineage, again.opening) == (11, 2, OPENS_NOTHING)


def test_what_a_driver_of_an_earlier_launch_was_told_is_over() -> None:
    app = launched(app_with(), epoch=10, lineage=3)
    late = driver_of(app, epoch=8, **fenced(adopt_epoch=9, adopt_lineage=2))
    assert status_of(decide(observe(app, driver=late), NOW)).lineage == 3


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.ROLLING_BACK])
def test_an_upgrade_under_way_in_a_lineage_that_is_not_the_applications_is_begun_anew(phase: UpgradePhase) -> None:
    app = with_status(under_test(phase), start_from=msgspec.structs.replace(BEGAN, lineage=9))
    stable = app.status.last_stable
    assert stable is not None
    version = {"spec_hash": stable.spec_hash} if phase is UpgradePhase.ROLLING_BACK else {}
    driver = driver_of(app, **version, **fenced(adopt_epoch=7, adopt_lineage=3))
    reported = status_of(decide(observe(app, driver=driver), NOW))
    assert (reported.epoch, reported.lineage, reported.upgrade, reported.start_from) == (7, 3, None, None)
    assert reported.last_stable == stable


def test_a_record_of_an_upgrade_that_is_over_stays_without_what_it_could_undo_in_its_lineage() -> None:
    app = upgraded(launched(app_with({IMAGE: B}), epoch=2, phase=Phase.RUNNING), old_app())
    seen = observe(app, driver=driver_of(app, **fenced(adopt_epoch=7, adopt_lineage=3)))
    assert app.status.upgrade is not None
    kept = msgspec.structs.replace(without_rollback_snapshot(app.status.upgrade), previous=None)
    assert PIN in kept.obsolete
    assert status_of(decide(seen, NOW)).upgrade == kept


def test_a_lineage_that_started_from_something_else_is_gone_on_with_and_the_order_for_it_is_void() -> None:
    app = with_status(launched(app_with(), epoch=10, lineage=3), start_from=BEGAN)
    assert launch_of(app).opening == OPENS_FROM_SNAPSHOT
    reported = fenced(adopt_epoch=9, adopt_lineage=3, adopt_opening=True)
    seen = observe(app, driver=driver_of(app, **reported))
    after = written(seen)
    assert (after.status.lineage, after.status.start_from) == (3, None)
    # The pod that told so is still there: it goes, and nothing is told again.
    plan = decide(observe(after, driver=driver_of(after, **reported)), NOW)
    assert (acts(plan, DeleteDriver), status_of(plan).lineage) == (True, 3)
    assert (launch_of(after).lineage, launch_of(after).opening) == (3, OPENS_NOTHING)


def test_what_an_earlier_resource_left_is_taken_over_also_if_it_ended_in_the_first_launch() -> None:
    app = launched(app_with({"startFrom": {"adopt": True}}), epoch=1)
    assert launch_of(app).adopt
    seen = observe(app, driver=driver_of(app, **fenced(adopt_epoch=1, adopt_lineage=1, adopted_from="u-0")))
    plan = decide(seen, NOW)
    assert "the earlier one with uid u-0" in plan.message
    assert acts(plan, DeleteDriver)
    assert launch_of(written(seen)).epoch == 2


# --- of the driver that runs ---


def running(app: StreamingApp, epoch: int, lineage: int, state: DriverState = DriverState.RUNNING) -> dict[str, Any]:
    driver = running_driver(app, epoch=epoch, ready=True)
    return {"driver": driver, "agent": report_of(driver, state, lineage=lineage)}


def test_a_driver_that_runs_gives_a_status_that_was_lost_its_epoch_and_lineage() -> None:
    app = app_with(status=StreamingAppStatus())
    plan = decide(observe(app, **running(app, 9, 2)), NOW)
    reported = status_of(plan)
    assert (reported.epoch, reported.lineage, reported.phase) == (9, 2, Phase.RUNNING)
    assert Reason.EPOCH_ADOPTED in [it.reason for it in plan.actions if isinstance(it, PublishEvent)]
    assert not acts(plan, DeleteDriver, RecordLaunch)


def test_a_driver_whose_agent_is_silent_gives_it_no_lineage() -> None:
    app = app_with(status=StreamingAppStatus())
    driver = running_driver(app, epoch=9, ready=True)
    reported = status_of(decide(observe(app, driver=driver, silence="the connection timed out"), NOW))
    assert (reported.epoch, reported.lineage) == (9, 0)


@pytest.mark.parametrize(
    ("epoch", "lineage", "state"),
    [(9, 2, DriverState.STARTING), (9, 0, DriverState.RUNNING), (4, 2, DriverState.RUNNING)],
)
def test_who_has_not_the_storage_or_is_of_an_earlier_epoch_changes_nothing(
    epoch: int, lineage: int, state: DriverState
) -> None:
    app = launched(app_with(), epoch=5, lineage=3)
    assert status_of(decide(observe(app, **running(app, epoch, lineage, state)), NOW)).lineage == 3


def test_an_older_status_forgets_what_it_meant_to_do_when_the_driver_tells_where_it_is_and_begins_anew() -> None:
    app = under_test(UpgradePhase.STOPPING, epoch=2)
    plan = decide(observe(app, **running(app, 9, 3)), NOW)
    reported = status_of(plan)
    assert reported.upgrade is not None
    assert (reported.epoch, reported.lineage, reported.upgrade.lineage, reported.upgrade.epoch) == (9, 3, 3, 0)
    assert not acts(plan, DeleteDriver)


# --- what a launch may open ---


def test_a_launch_says_why_it_may_be_in_another_lineage() -> None:
    assert launch_of(launched(app_with(), epoch=3)).opening == OPENS_NOTHING
    stateless = under_test(UpgradePhase.STOPPING, mode=UpgradeMode.STATELESS, lineage=2, rollback_snapshot=None)
    assert (launch_of(stateless).lineage, launch_of(stateless).opening) == (2, OPENS_EMPTY)
    done = RepartitionStatus(partitions=8, previous_partitions=4, lineage=2, result=RepartitionResult.COMPLETED.value)
    repartitioned = under_test(UpgradePhase.STOPPING, lineage=2, repartition=done)
    assert (launch_of(repartitioned).lineage, launch_of(repartitioned).opening) == (2, OPENS_REPARTITIONED)


def test_a_version_at_its_gate_expects_what_it_has_committed_in_a_lineage_that_a_repartition_made() -> None:
    done = RepartitionStatus(partitions=8, previous_partitions=4, lineage=2, result=RepartitionResult.COMPLETED.value)
    gate = with_status(under_test(UpgradePhase.GATE, lineage=2, repartition=done), lineage=2, batch=10)
    began = build_driver_config(gate, 3, 2, PLATFORM)
    assert (began.opening, began.expects, began.expects_batches) == (OPENS_REPARTITIONED, EXPECTS_BEGINNING, {})
    known = with_status(gate, batches=(SnapshotBatch(name="main", batch_id=12),))
    committed = build_driver_config(known, 3, 2, PLATFORM)
    assert (committed.expects, committed.expects_batches) == (EXPECTS_STATE, {"main": 12})
    # Of the lineage before it, before the first launch in the new one.
    stopped = build_driver_config(with_status(known, lineage=1), 3, 2, PLATFORM)
    assert (stopped.expects, stopped.expects_batches) == (EXPECTS_BEGINNING, {})


def test_one_that_was_refused_opens_nothing() -> None:
    app = with_status(old_app(), lineage=1)
    refused = under_test(UpgradePhase.REFUSED, mode=UpgradeMode.STATELESS)
    assert refused.status.upgrade is not None
    assert launch_of(with_status(app, upgrade=refused.status.upgrade)).opening == OPENS_NOTHING


@pytest.mark.parametrize("mode", [UpgradeMode.SNAPSHOT, UpgradeMode.STATELESS])
def test_a_version_whose_driver_runs_already_is_put_to_the_test_with_nothing_to_roll_back_to(mode: UpgradeMode) -> None:
    """Nothing stops a driver of the version that is to run, so that the upgrade would wait for ever."""
    app = under_test(UpgradePhase.STOPPING, mode=mode)
    seen = observe(app, **runs(app, committed=1))
    plan = decide(seen, NOW)
    upgrade = status_of(plan).upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.epoch, upgrade.rollback_snapshot) == (UpgradePhase.GATE, 2, None)
    assert set(upgrade.obsolete) == {PIN, COPY}
    assert not acts(plan, DeleteDriver)


def test_a_driver_of_another_version_is_still_to_stop() -> None:
    app = under_test(UpgradePhase.STOPPING, to_spec_hash="another")
    upgrade = status_of(decide(observe(app, **runs(app, committed=1)), NOW)).upgrade
    assert upgrade is None or upgrade.phase is not UpgradePhase.GATE


def test_a_lineage_that_is_taken_over_has_not_the_number_of_partitions_that_the_former_one_was_to_keep() -> None:
    """It has the wanted one already, and would be repartitioned once more."""
    old, tested = (app_with({"application.args": args, "state.partitions": 4}) for args in (["old"], ["new"]))
    edited = app_with({"application.args": ["new"], "state.partitions": 3})
    gate = upgrading(tested, old, UpgradePhase.GATE).status
    app = with_status(launched(edited, epoch=3), last_stable=gate.last_stable, upgrade=gate.upgrade, state_partitions=4)
    behind = driver_of(app, spec_hash=spec_hash(tested), **fenced(adopt_epoch=5, adopt_lineage=3))
    o = observe(app, driver=behind)
    assert "keeps its 4 partitions" in decide(o, NOW).message
    for driver in (behind, None):
        o = settled(replace(o, driver=driver))
        upgrade = o.app.status.upgrade
        assert o.app.status.lineage == 3
        assert upgrade is None or upgrade.repartition is None
