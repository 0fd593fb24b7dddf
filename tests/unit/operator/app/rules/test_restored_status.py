"""An older status that a backup brings back has no running driver stopped for the version that it names. Pure.

The driver shows that it was launched later. Nothing is done about it before its agent is heard or known to be silent.
"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import recorded_version, spec_hash
from tidegate.api.streaming_app import (
    Phase,
    RepartitionStatus,
    StableSpec,
    StreamingApp,
    StreamingAppStatus,
    UpgradePhase,
)
from tidegate.app.actions import CreateDriver, DeleteDriver, OrderSnapshots
from tidegate.app.builders.references import Reference
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import ANNOTATION_SPEC_HASH, DriverState, QueryReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, ended_with, launched, observe, report_of, running_driver
from tidegate_testing.plans import acts, settled, status_of
from tidegate_testing.upgrades import PIN, launch_of, upgraded, upgrading

OLD = app_with({"application.args": ["old"]})
MISSING = CheckedReferences(missing=(Reference("ConfigMap", "settings", "", "spec.application.env[A]"),))


def restored(change: dict[str, Any]) -> StreamingApp:
    """Return an application whose spec runs in epoch 5, with the status of epoch 2, when another version was stable."""
    stable = StableSpec(spec_hash=spec_hash(OLD), spec=recorded_version(OLD.spec), lineage=1)
    known = {"applied_spec_hash": stable.spec_hash, "last_stable": stable, "phase": Phase.RUNNING}
    return launched(app_with(change), epoch=2, **known)


def known_of(agent: str, driver: PodRecord) -> dict[str, Any]:
    """Return what an observation has of the agent of a driver in lineage 2: it was heard, or is known to be silent."""
    return {"agent": report_of(driver, lineage=2)} if agent == "heard" else {"silence": "the connection timed out"}


def settled_without(o: Observation, *excluded: type) -> Observation:
    """Return what is known after the next decision was carried out, in which none of these actions may be."""
    plan = decide(o, NOW)
    assert (plan.rule, acts(plan, *excluded)) == (plan.rule, False)
    return settled(o)


@pytest.mark.parametrize("agent", ["heard", "silent"])
@pytest.mark.parametrize(
    ("change", "around"),
    [
        ({"application.args": ["new"]}, {}),
        ({"application.args": ["x" * 1000] * 480}, {}),
        ({"application.args": ["new"], "upgrade.mode": "Stateless"}, {}),
        ({"application.args": ["new"]}, {"references": MISSING}),
    ],
    ids=["an edit", "larger than the limit", "without state, unconfirmed", "with what is gone since"],
)
def test_what_runs_and_is_what_the_spec_says_goes_on(
    change: dict[str, Any], around: dict[str, Any], agent: str
) -> None:
    app = restored(change)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, **around, **known_of(agent, driver))
    for _ in range(5):
        o = settled_without(o, DeleteDriver, CreateDriver)
    assert (o.app.status.epoch, o.app.status.applied_spec_hash, o.app.status.phase) == (5, o.spec_hash, Phase.RUNNING)


def test_what_runs_is_not_to_be_stopped_for_ever_where_somebody_gives_up_its_very_lineage() -> None:
    app = restored({"application.args": ["new"], "upgrade.mode": "Stateless"})
    metadata = msgspec.structs.replace(app.metadata, annotations={ABANDON_ANNOTATION: "2"})
    app = msgspec.structs.replace(app, metadata=metadata)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(5):
        o = settled_without(o, DeleteDriver, CreateDriver)
    upgrade = o.app.status.upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.epoch, upgrade.lineage) == (UpgradePhase.GATE, 5, 2)


@pytest.mark.parametrize("gone", ["its container ended", "its pod is gone"])
@pytest.mark.parametrize(
    ("change", "around"),
    [
        ({"application.args": ["x" * 1000] * 480}, {}),
        ({"application.args": ["new"], "upgrade.mode": "Stateless"}, {}),
        ({"application.args": ["new"]}, {"references": MISSING}),
    ],
    ids=["larger than the limit", "without state, unconfirmed", "with what is gone since"],
)
def test_what_ran_beside_it_is_not_followed_by_the_version_of_the_older_status_when_it_ends(
    change: dict[str, Any], around: dict[str, Any], gone: str
) -> None:
    app = restored(change)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2), **around)
    for _ in range(5):
        o = settled(o)
    ended = replace(driver, running=False, ready=False, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    o = replace(o, agent=None, driver=None if gone == "its pod is gone" else ended)
    for _ in range(3):
        plan = decide(o, NOW)
        made = [action.manifest for action in plan.actions if isinstance(action, CreateDriver)]
        versions = {each["metadata"]["annotations"][ANNOTATION_SPEC_HASH] for each in made}
        assert (plan.rule, versions <= {o.spec_hash}, acts(plan, DeleteDriver)) == (plan.rule, True, False)
        o = settled(o)
    upgrade = o.app.status.upgrade
    assert upgrade is None or upgrade.phase is not UpgradePhase.REFUSED


# --- an agent that was not heard yet ----------------------------------------------------------------------------------


@pytest.mark.parametrize("recorded", [None, *UpgradePhase])
@pytest.mark.parametrize("version", ["stable", "edited", "another"])
def test_nothing_is_done_about_a_driver_of_a_later_launch_before_its_agent_is_heard(
    recorded: UpgradePhase | None, version: str
) -> None:
    """What an older status says of an upgrade would stop it; its report voids that, and is there in a few seconds."""
    app = restored({"application.args": ["new"]})
    if recorded is not None:
        upgrade = upgrading(app, OLD, recorded).status.upgrade
        app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=upgrade))
    of = {"stable": OLD, "edited": app, "another": app_with({"application.args": ["between"]})}
    driver = running_driver(of[version], epoch=5, ready=True)
    o = observe(app, driver=driver, deciding_since=NOW - 5)
    plan = decide(o, NOW)
    assert (plan.rule, plan.actions) == ("wait_to_hear_later_driver", ())
    assert plan.wake_after is not None
    heard = replace(o, agent=report_of(driver, lineage=2))
    assert status_of(decide(heard, NOW)).lineage == 2


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.ROLLING_BACK])
@pytest.mark.parametrize("state", ["starting", "heard while it starts", "ended"])
def test_an_upgrade_of_before_the_launch_of_a_driver_that_is_not_ready_takes_nothing_back(
    state: str, phase: UpgradePhase
) -> None:
    """The version that it tests, or rolls back, may have been stable since, for weeks."""
    app = restored({"application.args": ["third"]})
    tested = app_with({"application.args": ["second"]})
    upgrade = upgrading(tested, OLD, phase, to_spec=recorded_version(tested.spec)).status.upgrade
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=upgrade))
    driver = running_driver(app, epoch=5, ready=False)
    if state == "ended":
        driver = replace(driver, running=False, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    agent = report_of(driver, state=DriverState.STARTING) if state.startswith("heard") else None
    o = observe(app, driver=driver, agent=agent, deciding_since=NOW - 5)
    for _ in range(4):
        o = settled_without(o, DeleteDriver, CreateDriver)
        known = o.app.status.upgrade
        assert known is not None
        assert known.to_spec_hash == o.spec_hash
        assert known.rollback_snapshot is None or known.rollback_snapshot.id != PIN
    assert (o.app.status.epoch, launch_of(decide(replace(o, driver=None, agent=None), NOW + 3600)).lineage) == (5, 1)


def test_a_driver_of_a_later_launch_is_stopped_when_it_is_to_be_suspended_though_its_agent_was_not_heard_yet() -> None:
    app = restored({"application.args": ["old"], "suspend": True})
    o = observe(app, driver=running_driver(OLD, epoch=5, ready=True), deciding_since=NOW - 5)
    assert acts(decide(o, NOW), DeleteDriver)


def test_an_agent_that_is_neither_heard_nor_known_to_be_silent_is_not_waited_for_for_ever() -> None:
    app = restored({"application.args": ["old"]})
    o = observe(app, driver=running_driver(OLD, epoch=5, ready=True), deciding_since=NOW - 60)
    assert status_of(decide(o, NOW)).epoch == 5


# --- an edit beside it ------------------------------------------------------------------------------------------------


STATELESS = {"application.args": ["new"], "upgrade.mode": "Stateless"}
COPYING, REFUSED = UpgradePhase.COPYING, UpgradePhase.REFUSED


@pytest.mark.parametrize("recorded", [None, *UpgradePhase])
@pytest.mark.parametrize("change", [{"application.args": ["new"]}, STATELESS], ids=["an edit", "without state"])
def test_no_driver_of_the_stable_version_is_stopped_for_an_edit_that_is_to_be_copied_for_or_refused(
    recorded: UpgradePhase | None, change: dict[str, Any]
) -> None:
    """The driver shows a later launch; whatever the older status says of an upgrade, what it runs for goes on."""
    app = restored(change)
    if recorded is not None:
        upgrade = upgrading(app, OLD, recorded).status.upgrade
        app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=upgrade))
    driver = running_driver(OLD, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(3):
        o = settled_without(o, DeleteDriver)
    status = o.app.status
    assert (status.epoch, status.lineage, status.last_stable) == (5, 2, app.status.last_stable)


@pytest.mark.parametrize(
    ("change", "phase", "reason"),
    [
        ({"application.args": ["new"]}, COPYING, Reason.SPEC_CHANGED),
        (STATELESS, REFUSED, Reason.ABANDON_STATE_UNCONFIRMED),
    ],
)
def test_the_upgrade_to_an_edit_starts_from_what_the_driver_reports(
    change: dict[str, Any], phase: UpgradePhase, reason: Reason
) -> None:
    driver = running_driver(OLD, epoch=5, ready=True)
    plan = decide(observe(restored(change), driver=driver, agent=report_of(driver, lineage=2)), NOW)
    upgrade = status_of(plan).upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.reason, upgrade.lineage) == (phase, reason, 2)
    assert {Reason.EPOCH_ADOPTED, f"Upgrade{phase.value}"} <= {
        action.reason for action in plan.actions if isinstance(action, PublishEvent)
    }


@pytest.mark.parametrize("agent", ["heard", "silent"])
def test_a_status_that_is_lost_beside_an_unconfirmed_start_without_state_has_no_driver_stopped(agent: str) -> None:
    app = app_with(STATELESS, status=StreamingAppStatus())
    driver = running_driver(OLD, epoch=5, ready=True)
    o = observe(app, driver=driver, **known_of(agent, driver))
    for _ in range(3):
        o = settled_without(o, DeleteDriver)
    upgrade = o.app.status.upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, Reason.ABANDON_STATE_UNCONFIRMED)


def test_a_new_application_that_is_to_start_without_state_is_not_held_back_by_the_driver_of_an_earlier_one() -> None:
    app = app_with(STATELESS, status=StreamingAppStatus())
    driver = running_driver(OLD, epoch=5, ready=True, app_uid="of-an-earlier-one")
    assert status_of(decide(observe(app, driver=driver), NOW)).upgrade is None


# --- what was rolled back since ---------------------------------------------------------------------------------------


def test_a_version_that_failed_and_was_rolled_back_since_is_not_rolled_back_once_more() -> None:
    """The stable version has run on for long, in the lineage that the rollback opened: all of that would be undone."""
    failed = upgrading(app_with({"application.args": ["new"]}), OLD, UpgradePhase.FAILED).status.upgrade
    app = restored({"application.args": ["old"]})
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=failed))
    driver = running_driver(OLD, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(3):
        o = settled_without(o, DeleteDriver)
    assert (o.app.status.lineage, o.app.status.upgrade) == (2, None)


def test_a_wish_for_a_rollback_that_was_answered_since_does_not_take_the_state_back_once_more() -> None:
    app = upgraded(restored({"application.args": ["new"], "upgrade.rollbackTo": PIN}), OLD)
    driver = running_driver(OLD, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(3):
        o = settled(o)
        assert o.app.status.upgrade is not None
        assert o.app.status.upgrade.phase is UpgradePhase.COMPLETED
    assert launch_of(decide(replace(o, driver=None, agent=None), NOW + 3600)).lineage == 2


def test_a_rollback_snapshot_of_another_lineage_does_not_stay_in_the_storage_for_ever() -> None:
    app = upgraded(restored({"application.args": ["new"]}), OLD)
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    deleted: set[str] = set()
    for _ in range(3):
        plan = decide(o, NOW)
        orders = [action.orders for action in plan.actions if isinstance(action, OrderSnapshots)]
        deleted |= {name for order in orders for name in order.dispose}
        o = settled(o)
    assert o.app.status.upgrade is not None
    assert (o.app.status.upgrade.rollback_snapshot, o.app.status.upgrade.previous) == (None, None)
    assert PIN in deleted


@pytest.mark.parametrize("mode", ["Snapshot", "LastState"])
@pytest.mark.parametrize("phase", UpgradePhase)
def test_no_driver_is_stopped_for_a_version_that_was_under_test_then_and_that_the_spec_has_no_more(
    phase: UpgradePhase, mode: str
) -> None:
    """It was rolled back since, and the edit that followed cannot be launched."""
    tested = app_with({"application.args": ["tested"], "upgrade.mode": mode})
    app = restored({"application.args": ["x" * 1000] * 480, "upgrade.mode": mode})
    upgrade = upgrading(tested, OLD, phase).status.upgrade
    assert upgrade is not None
    upgrade = msgspec.structs.replace(upgrade, to_spec=recorded_version(tested.spec))
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, upgrade=upgrade))
    driver = running_driver(OLD, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(3):
        o = settled_without(o, DeleteDriver)
        assert o.app.status.upgrade is not None
        assert (o.app.status.upgrade.phase, o.app.status.upgrade.to_spec_hash) == (REFUSED, spec_hash(app))


# --- with another number of partitions --------------------------------------------------------------------------------


def repartitioned() -> StreamingApp:
    """Return an application whose state was repartitioned into lineage 2, with its status of before any stable one."""
    four, five = (app_with({"state.partitions": number}) for number in (4, 5))
    known = {"applied_spec_hash": spec_hash(four), "phase": Phase.RUNNING, "state_partitions": 4, "batch": 3}
    return launched(five, epoch=2, **known)


def test_the_number_of_partitions_in_an_older_status_is_not_that_of_the_lineage_in_which_the_driver_runs() -> None:
    app = repartitioned()
    driver = running_driver(app, epoch=5, ready=True)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2))
    for _ in range(5):
        o = settled_without(o, DeleteDriver, CreateDriver)
        assert (o.app.status.lineage, o.app.status.state_partitions) == (2, 5)


def test_a_driver_in_another_lineage_that_runs_the_former_number_goes_on_with_it() -> None:
    app = repartitioned()
    driver = running_driver(app, epoch=5, ready=True, spec_hash=app.status.applied_spec_hash)
    query = QueryReport("main", batch_id=9, committed=9, state_partitions=4)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=2, queries=(query,)))
    plan = decide(o, NOW)
    assert (plan.rule, acts(plan, DeleteDriver, CreateDriver)) == (plan.rule, False)
    o = settled(o)
    assert (o.app.status.lineage, o.app.status.state_partitions) == (2, 4)


def test_a_version_that_runs_on_the_former_number_is_stopped_where_an_older_status_has_the_state_repartitioned() -> (
    None
):
    """It was launched when the status was lost, and nothing was known of a number: nothing would stop it otherwise."""
    four, five = (app_with({"state.partitions": number}) for number in (4, 5))
    stable = StableSpec(spec_hash=spec_hash(four), spec=recorded_version(four.spec), lineage=1)
    known = {"applied_spec_hash": stable.spec_hash, "last_stable": stable, "phase": Phase.RUNNING}
    app = launched(five, epoch=2, state_partitions=4, **known)
    driver = running_driver(app, epoch=5, ready=True)
    query = QueryReport("main", batch_id=9, committed=9, state_partitions=4)
    o = observe(app, driver=driver, agent=report_of(driver, lineage=1, queries=(query,)))
    o = settled(settled(o))
    assert o.app.status.upgrade is not None
    assert (o.app.status.epoch, o.app.status.upgrade.phase) == (5, UpgradePhase.STOPPING)
    plan = decide(o, NOW)
    assert (plan.rule, acts(plan, DeleteDriver)) == ("stop_driver_of_changed_spec", True)


@pytest.mark.parametrize(
    "reported", [{"lineage": 2}, {"state": DriverState.STARTING}, None], ids=["2", "none", "silent"]
)
@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING])
def test_the_driver_that_was_launched_after_a_repartition_is_not_stopped_for_the_older_record_of_it(
    phase: UpgradePhase, reported: dict[str, Any] | None
) -> None:
    four, five = (app_with({"state.partitions": number}) for number in (4, 5))
    pending = RepartitionStatus(partitions=5, previous_partitions=4)
    known = launched(five, epoch=2, state_partitions=4, phase=Phase.RUNNING)
    app = upgrading(known, four, phase, epoch=0, repartition=pending)
    driver = running_driver(app, epoch=5, ready=reported is None)
    known_of_it = {"silence": "no answer"} if reported is None else {"agent": report_of(driver, **reported)}
    o = observe(app, driver=driver, **known_of_it)
    for _ in range(3):
        o = settled_without(
            replace(o, silence="" if o.agent else "the connection timed out"), DeleteDriver, CreateDriver
        )


@pytest.mark.parametrize("stored", ["", "[]", "{", '"a"'])
@pytest.mark.parametrize("phase", list(UpgradePhase))
def test_a_stable_version_that_nobody_can_read_is_gone_without_and_stops_no_decision(
    phase: UpgradePhase, stored: str
) -> None:
    """By a newer operator, or by somebody's hand."""
    new = launched(app_with({}), epoch=2, phase=Phase.RUNNING)
    app = upgrading(new, OLD, phase, epoch=2 if phase in (UpgradePhase.GATE, UpgradePhase.FAILED) else 0)
    assert app.status.last_stable is not None
    unread = msgspec.structs.replace(app.status.last_stable, spec=stored)
    app = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, last_stable=unread))
    for seen in ({}, {"driver": running_driver(app, ready=True)}, {"driver": running_driver(OLD, ready=True)}):
        assert decide(observe(app, **seen), NOW).rule
