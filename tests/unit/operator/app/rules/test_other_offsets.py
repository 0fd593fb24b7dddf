"""A restart may read topics from elsewhere with the state that there is, and be rolled back from there."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import StreamingApp, StreamingAppStatus, UpgradeMode, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, driver_of, ended_with, observe, report_of, running_driver
from tidegate_testing.plans import acts, status_of, written
from tidegate_testing.upgrades import (
    IMAGE,
    NO_POD,
    A,
    B,
    C,
    edited,
    launch_of,
    old_app,
    record,
    runs,
    stable,
    under_test,
)

OFFSETS = '{"orders": {"0": 120, "1": 0}}'
COMPACT = '{"orders":{"0":120,"1":0}}'
OTHER, OTHER_COMPACT = '{"orders": {"0": 7, "1": 8}}', '{"orders":{"0":7,"1":8}}'
UNREADABLE = '{"orders":{"0":"x"}}'
STOPS = (do.DeleteDriver, do.RecordLaunch)


def asked(change: dict[str, Any] | None = None, lineage: int = 1, offsets: str = OFFSETS) -> StreamingApp:
    """Return version A, which runs in lineage 1, with other offsets in its spec and another change."""
    return edited(known(old_app()), {IMAGE: A, **order(lineage, offsets), **(AGAIN if change is None else change)})


AGAIN = {"restartNonce": 1}


def order(lineage: int = 1, offsets: str = OFFSETS) -> dict[str, Any]:
    return {"upgrade.startingOffsets": {"lineage": lineage, "offsets": offsets}}


def known(app: StreamingApp) -> StreamingApp:
    """Return the application with a status that was written before."""
    return with_status(app, observed_generation=1)


def with_status(app: StreamingApp, **fields: Any) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, **fields))


def stopped() -> Observation:
    """Return the application once the previous version has stopped for it."""
    seen = observe(asked(), **runs(old_app()))
    return observe(written(seen))


def test_a_restart_with_other_offsets_stops_the_version_and_keeps_what_it_ended_with() -> None:
    plan = decide(observe(asked(), **runs(old_app())), NOW)
    upgrade = record(plan)
    assert acts(plan, do.DeleteDriver)
    assert (upgrade.phase, upgrade.lineage, upgrade.starting_offsets) == (UpgradePhase.STOPPING, 2, OFFSETS)
    assert upgrade.rollback_snapshot is not None
    assert (upgrade.rollback_snapshot.lineage, upgrade.rollback_snapshot.copy) == (1, "")


def test_the_new_lineage_starts_with_the_state_of_the_one_before_and_the_offsets_at_every_launch() -> None:
    first = decide(stopped(), NOW)
    known = status_of(first)
    assert known.upgrade is not None
    assert known.upgrade.rollback_snapshot is not None
    assert (known.lineage, known.upgrade.phase) == (2, UpgradePhase.GATE)
    again = decide(observe(written(stopped())), NOW + 1000)
    for plan in (first, again):
        config = launch_of(plan)
        start = config.start_from
        assert start is not None
        assert (config.lineage, start.lineage, start.offsets) == (2, 1, COMPACT)
        assert (start.snapshot, config.pin) == (known.upgrade.rollback_snapshot.id, None)
        assert start.storage.uri == config.storage.uri


def test_reverting_the_spec_goes_back_to_the_state_and_to_the_offsets_that_it_had() -> None:
    launched = written(stopped())
    reverted = edited(launched, {IMAGE: A})
    undone = written(observe(reverted))
    assert undone.status.upgrade is not None
    plan = decide(observe(undone), NOW + 1000) if not undone.status.start_from else decide(observe(reverted), NOW)
    config = launch_of(plan)
    assert config.start_from is not None
    assert (config.lineage, config.start_from.lineage, config.start_from.offsets) == (3, 1, "")


@pytest.mark.parametrize("lineage", [2, 7])
def test_of_another_lineage_they_mean_nothing(lineage: int) -> None:
    plan = decide(observe(asked({IMAGE: B}, lineage), **runs(old_app())), NOW)
    assert (record(plan).phase, record(plan).starting_offsets) == (UpgradePhase.COPYING, "")


def test_without_another_version_nothing_is_done_about_them() -> None:
    assert not acts(decide(observe(asked({}), **runs(old_app())), NOW), *STOPS)


def test_another_version_may_start_with_them_as_well() -> None:
    upgrade = record(decide(observe(asked({IMAGE: B}), **runs(old_app())), NOW))
    assert (upgrade.phase, upgrade.starting_offsets) == (UpgradePhase.STOPPING, OFFSETS)


def test_a_version_that_takes_the_place_of_one_that_was_not_launched_starts_with_them_too() -> None:
    before = stopped()
    newer = edited(before.app, {IMAGE: B, "upgrade.startingOffsets": {"lineage": 1, "offsets": OFFSETS}})
    config = launch_of(decide(dataclasses.replace(before, app=newer, spec_hash=observe(newer).spec_hash), NOW))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.offsets) == (2, COMPACT)


def at_gate() -> StreamingApp:
    """Return the application after the launch of the version that reads from elsewhere."""
    return written(stopped())


def unused(status: StreamingAppStatus) -> str:
    """Return what is said of offsets that are not in use, empty if nothing is."""
    condition = status.condition("StartingOffsetsUnused")
    return condition.message if condition is not None else ""


# --- a rollback, and edits at the gate ---


def rolled_back() -> tuple[StreamingApp, StreamingApp]:
    """Return the application whose version failed at the gate, once the stable one was launched, and that one."""
    launched = at_gate()
    failed = running_driver(launched, running=False, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    failed = dataclasses.replace(failed, epoch=2)
    late = NOW + 10 * launched.spec.upgrade.timeout_seconds
    undone = written(observe(launched, driver=failed), late)
    return written(observe(undone), late), edited(undone, {IMAGE: A})


def test_a_rollback_of_a_restart_ends_and_the_rejected_number_is_not_taken_for_the_stable_version() -> None:
    app, before = rolled_back()
    assert app.status.upgrade is not None
    assert (app.status.upgrade.phase, app.status.lineage) == (UpgradePhase.ROLLING_BACK, 3)
    old = dataclasses.replace(running_driver(before, ready=True), epoch=app.status.epoch)
    done = written(observe(app, driver=old))
    assert done.status.upgrade is not None
    assert done.status.last_stable is not None
    assert done.status.upgrade.phase is UpgradePhase.ROLLED_BACK
    assert done.status.last_stable.spec_hash == spec_hash(before) != spec_hash(app)
    assert not acts(decide(observe(done, driver=old), NOW), *STOPS)


def test_a_restart_that_was_stable_is_rolled_back_by_hand() -> None:
    launched = at_gate()
    done = written(observe(launched, **runs_now(launched)))
    assert done.status.upgrade is not None
    assert done.status.upgrade.phase is UpgradePhase.COMPLETED
    assert done.status.upgrade.rollback_snapshot is not None
    wish = edited(done, {IMAGE: A, **AGAIN, **rollback_to(done.status.upgrade.rollback_snapshot.id)})
    undone = written(observe(wish, **runs_now(launched)))
    plan = decide(observe(undone), NOW)
    config = launch_of(plan)
    assert config.start_from is not None
    assert (record(plan).phase, config.lineage) == (UpgradePhase.ROLLING_BACK, 3)
    assert (config.start_from.lineage, config.start_from.offsets) == (1, "")
    assert config.spec_hash == spec_hash(old_app())


def rollback_to(snapshot: str) -> dict[str, Any]:
    return {"upgrade.startingOffsets": {"lineage": 1, "offsets": OFFSETS}, "upgrade.rollbackTo": snapshot}


def runs_now(app: StreamingApp) -> dict[str, Any]:
    """Return driver and agent of the version that was launched last."""
    seen, epoch = runs(app), app.status.epoch
    report = dataclasses.replace(seen["agent"].report, epoch=epoch, lineage=app.status.lineage)
    agent = dataclasses.replace(seen["agent"], report=report)
    return {"driver": dataclasses.replace(seen["driver"], epoch=epoch), "agent": agent}


@pytest.mark.parametrize("change", [{"restartNonce": 2}, {IMAGE: B}, {IMAGE: B, **order(2, OTHER)}])
def test_an_edit_at_the_gate_goes_on_in_the_lineage_that_was_opened_and_is_no_revert(change: dict[str, Any]) -> None:
    launched = at_gate()
    app = edited(launched, {IMAGE: A, **order(), **change})
    seen = runs_now(launched)
    seen["agent"] = None
    replaced = written(observe(app, **seen))
    upgrade = replaced.status.upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.lineage, upgrade.starting_offsets) == (UpgradePhase.STOPPING, 2, OFFSETS)
    assert "spec.upgrade.startingOffsets has no effect on it" in upgrade.message
    config = launch_of(decide(observe(replaced), NOW))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.offsets) == (2, COMPACT)


def test_the_version_that_runs_is_put_back_with_its_way_back() -> None:
    launched = at_gate()
    replaced = written(observe(edited(launched, {IMAGE: B, **order()}), **runs_now(launched)))
    again = edited(replaced, {IMAGE: A, **AGAIN, **order()})
    once_more = written(observe(again, **runs_now(launched)))
    back = written(observe(once_more, **runs_now(launched)))
    assert back.status.upgrade is not None
    assert back.status.upgrade.phase is UpgradePhase.GATE
    assert back.status.upgrade.rollback_snapshot is not None
    assert back.status.upgrade.rollback_snapshot.lineage == 1


def test_offsets_that_fit_none_of_its_topics_are_rolled_back_at_once() -> None:
    launched = at_gate()
    ended = running_driver(launched, running=False, ended=ended_with(Reason.SNAPSHOT_UNUSABLE, 0))
    after = written(observe(launched, driver=dataclasses.replace(ended, phase="Succeeded", epoch=2)))
    assert after.status.upgrade is not None
    assert (after.status.upgrade.phase, after.status.upgrade.lineage) == (UpgradePhase.ROLLING_BACK, 3)


# --- until the launch an edit counts ---


def version_stops(change: dict[str, Any], first: dict[str, Any] | None = None) -> StreamingApp:
    """Return the application as recorded after another edit, made before the driver of the new version was launched."""
    app = written(observe(asked() if first is None else edited(known(old_app()), first), **runs(old_app())))
    return written(observe(edited(app, change), **runs(old_app())))


@pytest.mark.parametrize("version", [{IMAGE: A, **AGAIN}, {IMAGE: B}])
def test_offsets_that_are_edited_before_the_launch_count(version: dict[str, Any]) -> None:
    app = version_stops({**version, **order(1, OTHER)})
    config = launch_of(decide(observe(app), NOW))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.lineage, config.start_from.offsets) == (2, 1, OTHER_COMPACT)


TAKEN_OUT: list[dict[str, Any]] = [
    {IMAGE: A, **AGAIN},
    {IMAGE: A, **AGAIN, **order(4)},
    {IMAGE: A, **AGAIN, **order(), "upgrade.mode": "Stateless"},
    {IMAGE: B},
    {IMAGE: B, **order(4)},
]


@pytest.mark.parametrize("change", TAKEN_OUT)
def test_offsets_that_are_taken_out_before_the_launch_do_not_count(change: dict[str, Any]) -> None:
    app = version_stops(change)
    app = written(observe(app, **runs(old_app())))
    assert app.status.upgrade is not None
    is_over = app.status.upgrade.phase is UpgradePhase.WITHDRAWN  # nothing is left of it but another number
    assert (is_over or not app.status.upgrade.starting_offsets, app.status.upgrade.lineage) == (True, 1)
    config = launch_of(decide(observe(app), NOW))
    assert (config.lineage, config.start_from) == (1, None)


def test_a_restart_whose_offsets_were_taken_out_is_one_and_the_next_one_goes_back_to_nothing() -> None:
    app = version_stops({IMAGE: A, **AGAIN})
    app = written(observe(app, **runs(old_app())))
    assert app.status.upgrade is not None
    assert app.status.last_stable is not None
    assert app.status.upgrade.phase is UpgradePhase.WITHDRAWN
    assert app.status.last_stable.spec_hash == spec_hash(app)
    restarted = written(observe(app), NOW + 1)
    following = edited(restarted, {IMAGE: A, "restartNonce": 2})
    for later in (2, 3, 4):
        following = written(observe(following, **runs_now(restarted)), NOW + later)
    assert following.status.upgrade is not None
    assert following.status.upgrade.phase is UpgradePhase.WITHDRAWN
    config = launch_of(decide(observe(following), NOW + 5))
    assert (config.spec_hash, config.lineage, config.start_from) == (spec_hash(following), 1, None)


def test_offsets_that_say_nothing_change_nothing_about_the_upgrade_under_way() -> None:
    app = version_stops({IMAGE: A, **AGAIN, **order(1, UNREADABLE)})
    config = launch_of(decide(observe(app), NOW))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.offsets) == (2, COMPACT)


def test_offsets_come_to_a_version_that_was_to_keep_no_state_to_go_back_to() -> None:
    last_state = {IMAGE: B, "upgrade.mode": "LastState"}
    app = version_stops({**last_state, **order()}, last_state)
    upgrade = app.status.upgrade
    assert upgrade is not None
    assert upgrade.rollback_snapshot is not None
    assert (upgrade.mode, upgrade.rollback_snapshot.lineage) == (UpgradeMode.SNAPSHOT, 1)
    config = launch_of(decide(observe(app), NOW))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.lineage, config.start_from.offsets) == (2, 1, COMPACT)


def test_nothing_is_rehearsed_and_that_is_said_of_an_application_that_runs() -> None:
    upgrade = record(decide(observe(asked({IMAGE: B, "upgrade.rehearsal": {}}), **runs(old_app())), NOW))
    assert upgrade.rehearsal is not None
    assert upgrade.phase is UpgradePhase.STOPPING
    assert "With spec.upgrade.startingOffsets nothing is copied" in upgrade.rehearsal.message


def test_a_version_that_was_rolled_back_for_newer_offsets_is_followed_by_them() -> None:
    # Who sets them at the gate of another upgrade names the lineage that there is, which that rollback leaves.
    first = known(under_test())
    newer = edited(first, {IMAGE: C, **order()})
    undone = written(observe(newer, **runs(first)))
    launched = written(observe(undone), NOW + 1)
    assert launched.status.upgrade is not None
    assert (launched.status.upgrade.phase, launched.status.lineage) == (UpgradePhase.ROLLING_BACK, 2)
    seen = runs_now(edited(launched, {IMAGE: A}))
    upgrade = record(decide(observe(launched, **seen), NOW + 2))
    assert upgrade.rollback_snapshot is not None
    assert (upgrade.lineage, upgrade.rollback_snapshot.lineage, upgrade.starting_offsets) == (3, 2, OFFSETS)
    # Nor are they forgotten while the driver stops, and they are in the launch.
    begun = written(observe(launched, **seen), NOW + 2)
    for later in (3, 4):
        begun = written(observe(begun, **seen), NOW + later)
    config = launch_of(decide(observe(begun), NOW + 5))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.lineage, config.start_from.offsets) == (3, 2, COMPACT)


def test_unreadable_offsets_at_a_gate_refuse_the_version_that_follows_until_they_are_corrected() -> None:
    first = known(under_test())
    undone = written(observe(edited(first, {IMAGE: C, **order(offsets=UNREADABLE)}), **runs(first)))
    app = written(observe(undone), NOW + 1)
    seen = runs_now(edited(app, {IMAGE: A}))
    for later in (2, 3, 4):
        app = written(observe(app, **seen), NOW + later)
        assert app.status.upgrade is not None
        assert (app.status.upgrade.phase, app.status.upgrade.reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    corrected = edited(app, {IMAGE: C, **order()})
    upgrade = record(decide(observe(corrected, **seen), NOW + 5))
    assert (upgrade.phase, upgrade.starting_offsets, upgrade.lineage) == (UpgradePhase.STOPPING, OFFSETS, 3)


# --- offsets that say nothing ---


def test_offsets_that_say_nothing_stop_nothing() -> None:
    plan = decide(observe(asked(offsets=UNREADABLE), **runs(old_app())), NOW)
    assert not acts(plan, *STOPS)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert "spec.upgrade.startingOffsets.offsets" in record(plan).message


def test_corrected_offsets_are_used_without_another_number() -> None:
    refused = written(observe(asked(offsets=UNREADABLE), **runs(old_app())))
    corrected = edited(refused, {IMAGE: A, **AGAIN, **order()})
    upgrade = record(decide(observe(corrected, **runs(old_app())), NOW))
    assert (upgrade.phase, upgrade.starting_offsets) == (UpgradePhase.STOPPING, OFFSETS)


@pytest.mark.parametrize("lineage", [1, 2])
def test_they_keep_nothing_that_was_stable_from_being_launched_again(lineage: int) -> None:
    app = asked({}, lineage, UNREADABLE)
    config = launch_of(decide(observe(app), NOW))
    assert (config.lineage, config.start_from) == (1, None)


def test_nor_the_version_that_was_launched_with_others() -> None:
    app = edited(at_gate(), {IMAGE: A, **AGAIN, **order(2, UNREADABLE)})
    config = launch_of(decide(observe(app), NOW + 1000))
    assert config.start_from is not None
    assert (config.lineage, config.start_from.offsets) == (2, COMPACT)


# --- what is not used is reported ---


def test_what_a_manifest_has_when_the_application_begins_is_of_another_one() -> None:
    new = app_with({IMAGE: A, **order()}, epoch=0)
    first = written(observe(new))
    begun = stable(with_status(first, lineage=1))
    plan = decide(observe(edited(begun, {IMAGE: B, **order()}), **runs_now(begun)), NOW)
    assert (record(plan).phase, record(plan).starting_offsets) == (UpgradePhase.COPYING, "")
    assert "is older than the status of this application" in unused(status_of(plan))


def test_so_is_what_it_has_when_the_status_was_lost_and_it_counts_once_it_was_set_again() -> None:
    lost = edited(with_status(old_app(), epoch=0, lineage=0, last_stable=None), {IMAGE: A, **order()})
    adopted = written(observe(lost, **runs(old_app())))
    found = stable(with_status(adopted, lineage=1))
    assert found.status.ignored_starting_offsets
    kept = decide(observe(edited(found, {IMAGE: A, **AGAIN, **order()}), **runs_now(found)), NOW)
    assert status_of(kept).upgrade is None
    without = written(observe(edited(found, {IMAGE: A}), **runs_now(found)))
    assert not without.status.ignored_starting_offsets
    plan = decide(observe(edited(without, {IMAGE: A, **AGAIN, **order()}), **runs_now(found)), NOW)
    assert record(plan).starting_offsets == OFFSETS


@pytest.mark.parametrize("generation", [0, -1], ids=["written by nobody", "the schema's default"])
def test_so_is_what_it_has_before_the_operator_first_sees_the_resource(generation: int) -> None:
    unseen = edited(with_status(old_app(), observed_generation=generation), {IMAGE: A, **order()})
    assert written(observe(unseen, **runs(old_app()))).status.ignored_starting_offsets


def test_without_a_stable_version_they_wait() -> None:
    app = with_status(asked(), last_stable=None)
    plan = decide(observe(app, **runs(old_app())), NOW)
    assert status_of(plan).upgrade is None
    assert "once the application has been stable" in unused(status_of(plan))


def test_nor_do_they_come_with_a_version_that_was_held_back_before_there_was_a_stable_one() -> None:
    refused = under_test(UpgradePhase.REFUSED, reason=Reason.ABANDON_STATE_UNCONFIRMED, rollback_snapshot=None)
    app = with_status(edited(known(refused), {IMAGE: C, **order()}), last_stable=None)
    upgrade = record(decide(observe(app, **runs(old_app())), NOW))
    assert (upgrade.phase, upgrade.starting_offsets, upgrade.lineage) == (UpgradePhase.STOPPING, "", 1)


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (asked({}), "change spec.restartNonce"),
        (asked({}, 3), "set lineage to 1"),
        (asked({"upgrade.mode": "Stateless"}), "no state is kept"),
        (asked({"state.partitions": 7}), "the state is repartitioned first"),
        (asked({}, offsets=UNREADABLE), "cannot be read"),
        (asked(), ""),
        (edited(known(old_app()), {IMAGE: A}), ""),
    ],
)
def test_of_offsets_that_are_not_in_use_it_is_said_why(app: StreamingApp, said: str) -> None:
    app = with_status(app, state_partitions=4)
    assert said in unused(written(observe(app, **runs(old_app()))).status)
    assert bool(said) == bool(unused(written(observe(app, **runs(old_app()))).status))


def test_of_those_that_were_used_nothing_is_said_however_long_they_stay() -> None:
    launched = at_gate()
    done = written(observe(launched, **runs_now(launched)))
    assert unused(launched.status) == unused(done.status) == ""
    plan = decide(observe(edited(done, {IMAGE: A, "restartNonce": 2, **order()}), **runs_now(launched)), NOW)
    assert status_of(plan).lineage == 2
    assert record(plan).starting_offsets == OFFSETS
    assert record(plan).phase is UpgradePhase.COMPLETED


def test_of_those_that_another_upgrade_left_behind_it_is_said_where_the_application_is() -> None:
    first = known(under_test())
    undone = written(observe(edited(first, {IMAGE: A, **order()}), **runs(first)))
    assert undone.status.upgrade is not None
    assert undone.status.upgrade.phase is UpgradePhase.ROLLING_BACK
    launched = written(observe(undone), NOW + 1)
    after = written(observe(launched, **runs_now(edited(launched, {IMAGE: A}))), NOW + 2)
    assert "set lineage to 2" in unused(after.status)


def test_what_somebody_writes_into_the_status_is_named_and_no_driver_is_made_of_it() -> None:
    launched = at_gate()
    assert launched.status.start_from is not None
    garbage = msgspec.structs.replace(launched.status.start_from, offsets="{")
    plan = decide(observe(with_status(launched, start_from=garbage)), NOW + 1000)
    assert not acts(plan, do.CreateDriver)
    assert "status.startFrom.offsets" in plan.message


def test_after_a_rollback_they_name_a_lineage_that_was_left() -> None:
    app, before = rolled_back()
    old = dataclasses.replace(running_driver(before, ready=True), epoch=app.status.epoch)
    assert "set lineage to 3" in unused(written(observe(app, driver=old)).status)


def test_so_they_do_for_as_long_as_nobody_sets_them_anew_whatever_upgrade_follows() -> None:
    app, before = rolled_back()
    old = dataclasses.replace(running_driver(before, ready=True), epoch=app.status.epoch)
    done = written(observe(app, driver=old))
    following = edited(done, {IMAGE: B, **order()})
    for _ in range(3):
        following = written(observe(following, driver=old))
    assert following.status.upgrade is not None
    assert following.status.upgrade.phase is UpgradePhase.STOPPING
    launched = written(observe(following))
    assert launched.status.upgrade is not None
    assert launched.status.upgrade.phase is UpgradePhase.GATE
    assert "set lineage to 3" in unused(following.status)
    assert "set lineage to 3" in unused(launched.status)
    again = decide(observe(edited(launched, {IMAGE: B, **order(3)}), **runs_now(launched)), NOW)
    assert "set lineage" not in unused(status_of(again))


def test_of_those_that_were_used_nothing_is_said_beside_a_version_that_was_refused_since() -> None:
    launched = at_gate()
    done = written(observe(launched, **runs_now(launched)))
    refused = written(observe(edited(done, {**NO_POD, **order()}), **runs_now(launched)))
    assert refused.status.upgrade is not None
    assert (refused.status.upgrade.phase, refused.status.upgrade.starting_offsets) == (UpgradePhase.REFUSED, "")
    again = written(observe(edited(refused, {**NO_POD, **order()}), **runs_now(launched)))
    assert unused(refused.status) == unused(again.status) == ""
    assert not again.status.ignored_starting_offsets


def test_of_a_lineage_that_was_not_there_yet_they_do_not_count_once_it_is_until_they_are_set_again() -> None:
    early = written(observe(asked({}, 2), **runs(old_app())))
    assert "set lineage to 1" in unused(early.status)
    there = with_status(early, lineage=2)
    restart = {IMAGE: A, **AGAIN, **order(2)}
    plan = decide(observe(edited(there, restart), **runs_now(there)), NOW)
    assert status_of(plan).upgrade is None
    assert "or than the lineage that it names" in unused(status_of(plan))
    without = written(observe(edited(there, {IMAGE: A}), **runs_now(there)))
    plan = decide(observe(edited(without, restart), **runs_now(there)), NOW)
    assert (record(plan).starting_offsets, record(plan).lineage) == (OFFSETS, 3)


@pytest.mark.parametrize("heard", ["at once", "later", "from the end of the driver"])
def test_beside_a_status_that_was_restored_from_an_earlier_lineage_they_are_to_be_set_again(heard: str) -> None:
    """Nobody knows whether they were set for the present lineage, or named it before it was there."""
    restored = asked({}, 2)
    driver = dataclasses.replace(running_driver(old_app(), ready=True), epoch=4)
    found = {"driver": driver, "agent": report_of(driver, lineage=2, epoch=4)}
    if heard == "later":
        restored = written(observe(restored, driver=driver))
    elif heard != "at once":
        reported = Termination(Reason.FENCED, "behind", 1, adopt_epoch=4, adopt_lineage=2)
        end = Exit(0, "Completed", to_json(reported), NOW - 5)
        restored = written(observe(restored, driver=driver_of(restored, phase="Succeeded", ended=end)))
    adopted = written(observe(restored, **found))
    assert (adopted.status.epoch, adopted.status.lineage) == (4, 2)
    assert "remove it from the spec, and add it again" in unused(adopted.status)
    without = written(observe(edited(adopted, {IMAGE: A}), **found))
    plan = decide(observe(edited(stable(without), {IMAGE: A, **AGAIN, **order(2)}), **found), NOW)
    assert (record(plan).starting_offsets, record(plan).lineage) == (OFFSETS, 3)
