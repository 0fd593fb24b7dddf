"""The spec is changed again while an upgrade is under way: the newer version waits for nothing. Pure."""

import datetime
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, StreamingApp, UpgradeMode, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.actions import Plan
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.json_form import to_json
from tidegate_spark.contract.protocol import Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, driver_of, ended_with, launched, observe
from tidegate_testing.plans import acts, status_of, written
from tidegate_testing.upgrades import IMAGE, PIN, A, B, C, edited, events, launch_of, record, runs, under_test

LONG_AGO = datetime.datetime.fromtimestamp(NOW - 3600, datetime.UTC)


def after(app: StreamingApp, plan: Plan) -> StreamingApp:
    """Return the application as a plan leaves it."""
    return msgspec.structs.replace(app, status=status_of(plan))


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_before_the_stop_the_first_is_withdrawn_at_once_and_the_newer_one_starts(phase: UpgradePhase) -> None:
    old = launched(app_with({IMAGE: A}))
    plan = decide(observe(edited(under_test(phase), {IMAGE: C}), **runs(old)), NOW)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.COPYING, 2)
    assert record(plan).to_spec_hash == spec_hash(app_with({IMAGE: C}))
    assert not acts(plan, do.DeleteDriver)


def test_between_stop_and_launch_the_newer_one_takes_its_place_and_nothing_is_rolled_back() -> None:
    stopping = under_test(UpgradePhase.STOPPING, epoch=0)
    plan = decide(observe(edited(stopping, {IMAGE: C})), NOW)
    assert launch_of(plan).executor.image == C
    assert (launch_of(plan).lineage, launch_of(plan).start_from) == (1, None)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.GATE, 1)


@pytest.mark.parametrize("phase", [UpgradePhase.GATE, UpgradePhase.STOPPING])
def test_a_version_under_test_is_superseded_and_rolled_back_at_once(phase: UpgradePhase) -> None:
    new = under_test(phase, epoch=2)
    plan = decide(observe(edited(new, {IMAGE: C}), **runs(new, 2)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.reason, upgrade.lineage) == (UpgradePhase.ROLLING_BACK, "Superseded", 2)
    assert upgrade.to_spec_hash == spec_hash(app_with({IMAGE: B}))
    assert acts(plan, do.DeleteDriver)
    assert events(plan)[:1] == ["UpgradeRollingBack"]


def test_the_newer_version_starts_from_the_state_that_the_stable_one_had_without_waiting_for_that_to_run() -> None:
    gate = under_test(queries=("clicks", "orders"))
    newer = edited(gate, {IMAGE: C})
    newer = after(newer, decide(observe(newer, **runs(gate, 2)), NOW))
    back = decide(observe(newer), NOW)
    assert launch_of(back).executor.image == A
    newer = after(newer, back)
    pending = driver_of(launched(app_with({IMAGE: A}), 3), phase="Pending", uid="a-2")
    stop = decide(observe(newer, driver=pending), NOW)
    upgrade = record(stop)
    assert (upgrade.phase, upgrade.number, upgrade.queries) == (UpgradePhase.STOPPING, 2, ("clicks", "orders"))
    assert acts(stop, do.DeleteDriver)
    launch = decide(observe(after(newer, stop)), NOW)
    config = launch_of(launch)
    assert (config.executor.image, config.lineage) == (C, 2)
    assert config.start_from == launch_of(back).start_from
    assert config.start_from is not None
    assert (config.start_from.snapshot, config.start_from.lineage) == (PIN, 1)
    assert record(launch).phase is UpgradePhase.GATE


WORK_STAYS: dict[str, tuple[UpgradePhase, dict[str, Any], dict[str, Any]]] = {
    "it was given up on, and not rolled back": (UpgradePhase.FAILED, {}, {}),
    "it has run for longer than it had for its test": (UpgradePhase.GATE, {"start_time": LONG_AGO}, {}),
    "no state was kept": (UpgradePhase.GATE, {"rollback_snapshot": None}, {}),
    "nobody wants a rollback": (UpgradePhase.GATE, {}, {"upgrade.rollbackPolicy": "Never"}),
    "it started without the state": (UpgradePhase.GATE, {"mode": UpgradeMode.STATELESS}, {}),
}


@pytest.mark.parametrize("case", WORK_STAYS)
def test_what_it_did_later_or_where_nothing_can_be_gone_back_to_the_newer_one_continues_with_it(case: str) -> None:
    phase, fields, change = WORK_STAYS[case]
    new = under_test(phase, **fields)
    plan = decide(observe(edited(new, {IMAGE: C, **change}), **runs(new, 2)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.reason, upgrade.number) == (UpgradePhase.STOPPING, "Superseded", 1)
    assert (upgrade.epoch, upgrade.lineage) == (2, 1)
    assert upgrade.to_spec_hash == spec_hash(app_with({IMAGE: C, **change}))
    assert upgrade.rollback_snapshot == (new.status.upgrade.rollback_snapshot if new.status.upgrade else None)
    assert acts(plan, do.DeleteDriver)


WITHOUT_STATE: dict[str, Any] = {IMAGE: C, "upgrade.mode": "Stateless"}
CONFIRMED = {"annotations": {ABANDON_ANNOTATION: "1"}}


def test_a_newer_one_that_is_to_start_without_state_replaces_it_once_that_is_confirmed() -> None:
    new = under_test()
    plan = decide(observe(edited(new, WITHOUT_STATE, **CONFIRMED), **runs(new, 2)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.reason, upgrade.number) == (UpgradePhase.STOPPING, "Superseded", 1)
    assert (upgrade.mode, upgrade.epoch, upgrade.lineage) == (UpgradeMode.STATELESS, 2, 2)
    assert upgrade.to_spec_hash == spec_hash(app_with(WITHOUT_STATE))
    assert acts(plan, do.DeleteDriver)


@pytest.mark.parametrize("confirmed", [None, "7"])
@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED])
def test_until_then_it_changes_nothing_and_the_condition_names_what_is_to_be_confirmed(
    phase: UpgradePhase, confirmed: str | None
) -> None:
    new = under_test(phase, epoch=2)
    metadata = {"annotations": {ABANDON_ANNOTATION: confirmed}} if confirmed else {}
    plan = decide(observe(edited(new, WITHOUT_STATE, **metadata), **runs(new, 2, lag_rows=7)), NOW)
    assert not acts(plan, do.DeleteDriver)
    upgrade, stalled = record(plan), status_of(plan).condition("Stalled")
    assert (upgrade.to_spec_hash, upgrade.mode) == (spec_hash(new), UpgradeMode.SNAPSHOT)
    assert upgrade.phase is (UpgradePhase.FAILED if phase is UpgradePhase.FAILED else UpgradePhase.GATE)
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", "AbandonStateUnconfirmed")
    assert f"{ABANDON_ANNOTATION}=1" in stalled.message


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE])
def test_the_version_under_test_is_launched_beside_an_edit_that_nobody_has_confirmed(phase: UpgradePhase) -> None:
    new = under_test(phase)
    plan = decide(observe(edited(new, WITHOUT_STATE)), NOW)
    config = launch_of(plan)
    assert (config.executor.image, config.lineage, record(plan).phase) == (B, 1, UpgradePhase.GATE)


def test_the_version_under_test_keeps_its_offsets_beside_an_edit_that_nobody_has_confirmed() -> None:
    offsets = '{"orders": {"0": 7}}'
    asked = {"upgrade.startingOffsets": {"lineage": 1, "offsets": offsets}}
    new = under_test(UpgradePhase.STOPPING, asked, epoch=0, lineage=2, starting_offsets=offsets)
    plan = decide(observe(edited(new, {**WITHOUT_STATE, **asked})), NOW)
    assert (launch_of(plan).executor.image, launch_of(plan).lineage) == (B, 2)
    assert record(plan).starting_offsets == offsets


def test_once_it_is_stable_such_an_edit_is_refused_and_nothing_is_stopped() -> None:
    new = under_test()
    passed = decide(observe(edited(new, WITHOUT_STATE), **runs(new, 9)), NOW)
    assert record(passed).phase is UpgradePhase.COMPLETED
    assert passed.wake_after == 0.0
    refused = decide(observe(edited(after(new, passed), WITHOUT_STATE), **runs(new, 9)), NOW)
    assert (record(refused).phase, record(refused).reason) == (UpgradePhase.REFUSED, "AbandonStateUnconfirmed")
    assert not acts(refused, do.DeleteDriver)


def test_if_it_fails_it_is_rolled_back_and_such_an_edit_is_refused() -> None:
    new = under_test()
    app = edited(new, WITHOUT_STATE)
    failed = driver_of(new, phase="Failed", running=False, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    app = after(app, decide(observe(app, driver=failed), NOW))
    assert app.status.upgrade is not None
    assert (app.status.upgrade.phase, app.status.upgrade.to_spec_hash) == (UpgradePhase.ROLLING_BACK, spec_hash(new))
    back = decide(observe(app), NOW)
    assert launch_of(back).executor.image == A
    refused = decide(observe(after(app, back), **runs(launched(app_with({IMAGE: A}), 3), 2)), NOW)
    assert (record(refused).phase, record(refused).reason) == (UpgradePhase.REFUSED, "AbandonStateUnconfirmed")
    assert not acts(refused, do.DeleteDriver)


def test_what_follows_on_a_version_without_state_needs_no_other_confirmation() -> None:
    new = under_test(change={"upgrade.mode": "Stateless"}, mode=UpgradeMode.STATELESS, lineage=2)
    new = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, lineage=2))
    plan = decide(observe(edited(new, WITHOUT_STATE, **CONFIRMED), **runs(new, 2)), NOW)
    assert (record(plan).phase, record(plan).lineage) == (UpgradePhase.STOPPING, 2)
    assert acts(plan, do.DeleteDriver)


def test_where_no_pod_can_be_made_of_the_stable_version_the_newer_one_does_not_wait_for_it() -> None:
    new = under_test()
    assert new.status.last_stable is not None
    unreadable = msgspec.structs.replace(new.status.last_stable, spec='{"application.image":7}')
    new = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, last_stable=unreadable))
    plan = decide(observe(edited(new, {IMAGE: C}), **runs(new, 2)), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.STOPPING, "Superseded")


def test_where_no_process_of_it_began_the_newer_one_follows_without_a_rollback() -> None:
    new = under_test()
    never = driver_of(new, phase="Pending", uid="b-1")
    plan = decide(observe(edited(new, {IMAGE: C}), driver=never), NOW)
    assert (record(plan).phase, record(plan).lineage) == (UpgradePhase.STOPPING, 1)
    assert acts(plan, do.DeleteDriver)


def test_an_edit_that_cannot_be_launched_supersedes_nothing() -> None:
    gate = under_test()
    plan = decide(observe(edited(gate, {"driver.podTemplate": {"spec": {"containers": "none"}}}), **runs(gate, 2)), NOW)
    assert not acts(plan, do.DeleteDriver)


def test_a_version_that_has_done_its_work_is_not_undone() -> None:
    new = under_test()
    ended = Exit(0, "Completed", to_json(Termination(Reason.COMPLETED, "done", 2)), NOW)
    done = driver_of(new, phase="Succeeded", uid="b-1", running=False, ended=ended)
    plan = decide(observe(edited(new, {IMAGE: C}), driver=done), NOW)
    assert (record(plan).phase, record(plan).lineage) == (UpgradePhase.STOPPING, 1)


def test_a_version_that_was_superseded_is_tried_when_the_spec_is_set_back_to_it() -> None:
    gate = under_test()
    app = edited(gate, {IMAGE: C})
    app = after(app, decide(observe(app, **runs(gate, 2)), NOW))
    app = edited(app, {IMAGE: B})
    back = decide(observe(app), NOW)
    assert launch_of(back).executor.image == A
    plan = decide(observe(after(app, back), **runs(launched(app_with({IMAGE: A}), 3), 2)), NOW)
    assert record(plan).to_spec_hash == spec_hash(app_with({IMAGE: B}))
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.COPYING, 2)


SET_BACK: dict[str, dict[str, Any]] = {
    "with a rollback snapshot": {},
    "from nothing": {"mode": UpgradeMode.STATELESS},
    "in a lineage that would be given up": {"mode": UpgradeMode.STATELESS, "lineage": 2},
}


@pytest.mark.parametrize("fields", SET_BACK.values(), ids=SET_BACK.keys())
def test_a_version_that_the_spec_is_set_back_to_before_its_driver_was_stopped_goes_on_with_its_test(
    fields: dict[str, Any],
) -> None:
    gate = under_test(start_time=LONG_AGO, **fields)
    replaced = edited(gate, {IMAGE: C})
    # The operator ends between the intent and the act.
    replaced = after(replaced, decide(observe(replaced, **runs(gate, 2, lag_rows=7)), NOW))
    app = edited(replaced, {IMAGE: B})
    for _ in range(2):
        plan = decide(observe(app, **runs(gate, 2, lag_rows=7)), NOW)
        assert not acts(plan, do.DeleteDriver)
        app = after(app, plan)
    upgrade, known = app.status.upgrade, gate.status.upgrade
    assert upgrade is not None
    assert known is not None
    assert (upgrade.phase, upgrade.epoch, upgrade.lineage) == (UpgradePhase.GATE, 2, 1)
    assert (upgrade.rollback_snapshot, upgrade.obsolete) == (known.rollback_snapshot, ())
    # Of what it has done for long, an edit a moment later undoes nothing.
    newer = decide(observe(edited(app, {IMAGE: C}), **runs(gate, 2)), NOW)
    assert record(newer).phase is UpgradePhase.STOPPING


def test_a_version_that_had_finished_and_is_asked_for_again_while_its_pod_goes_is_launched() -> None:
    gate = under_test()
    pod = driver_of(gate, phase="Succeeded", ended=ended_with(Reason.COMPLETED, 0))
    other = written(observe(edited(gate, {IMAGE: C}, generation=3), driver=pod))
    going = driver_of(gate, phase="Succeeded", ended=ended_with(Reason.COMPLETED, 0), delete_by=NOW + 30)
    back = written(observe(edited(other, {IMAGE: B}, generation=4), driver=going), NOW + 5)
    assert back.status.upgrade is not None
    assert (back.status.phase, back.status.upgrade.phase) == (Phase.COMPLETED, UpgradePhase.STOPPING)
    plan = decide(observe(back), NOW + 60)
    assert (launch_of(plan).executor.image, record(plan).phase) == (B, UpgradePhase.GATE)
