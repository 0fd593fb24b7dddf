"""An edit of which no driver pod can be made, in each phase of an upgrade: nothing stands still for it. Pure.

From the stop on it changes nothing: the record has the version under test. That of an earlier operator has its hash.
"""

from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import recorded_version, spec_hash
from tidegate.api.streaming_app import Phase, RollbackPolicy, UpgradeMode, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, ended_with, observe, running_driver, waiting
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.upgrades import (
    IMAGE,
    PIN,
    A,
    B,
    C,
    edited,
    events,
    launch_of,
    made_invalid,
    new_app,
    of_earlier_operator,
    old_app,
    record,
    runs,
    version_launched,
)


@pytest.mark.parametrize("mode", list(UpgradeMode))
@pytest.mark.parametrize("edited_to_last", [True, False])
def test_between_stop_and_launch_the_version_before_goes_on_at_once_where_it_stopped(
    mode: UpgradeMode, edited_to_last: bool
) -> None:
    lineage = 2 if mode is UpgradeMode.STATELESS else 1
    app = of_earlier_operator(new_app(UpgradePhase.STOPPING, mode=mode, lineage=lineage))
    bad = made_invalid(app, mode=mode if edited_to_last else UpgradeMode.SNAPSHOT)
    plan = decide(observe(bad), NOW)
    upgrade, config = record(plan), launch_of(plan)
    assert (upgrade.phase, upgrade.reason, upgrade.to_spec_hash) == (
        UpgradePhase.REFUSED,
        "InvalidSpec",
        spec_hash(bad),
    )
    assert version_launched(plan) == spec_hash(old_app())
    assert (config.lineage, config.pin, config.start_from) == (1, None, None)
    assert "UpgradeRefused" in events(plan)
    assert "spec.driver.podTemplate" in upgrade.message


def test_the_version_before_is_stalled_with_the_field_and_the_upgrade_begins_anew_when_the_spec_is_mended() -> None:
    bad = made_invalid(of_earlier_operator(new_app(UpgradePhase.STOPPING)))
    running = runs(old_app())
    refused = written(observe(bad))
    stalled = status_of(decide(observe(refused, **running), NOW)).condition("Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", "UpgradeRefused")
    assert "spec.driver.podTemplate" in stalled.message
    for image in (B, C):
        fixed = record(decide(observe(edited(refused, {IMAGE: image}), **running), NOW))
        assert (fixed.phase, fixed.number) == (UpgradePhase.COPYING, 2)
    back = record(decide(observe(edited(refused, {IMAGE: A}), **running), NOW))
    assert back.phase is UpgradePhase.WITHDRAWN


@pytest.mark.parametrize("phase", [UpgradePhase.GATE, UpgradePhase.FAILED, UpgradePhase.STOPPING])
def test_after_a_launch_the_version_before_goes_on_with_the_pin(phase: UpgradePhase) -> None:
    app = of_earlier_operator(new_app(phase, epoch=2))
    bad = made_invalid(app)
    plan = decide(observe(bad), NOW)
    upgrade, config = record(plan), launch_of(plan)
    assert (upgrade.phase, upgrade.reason, upgrade.to_spec_hash) == (
        UpgradePhase.ROLLING_BACK,
        "InvalidSpec",
        spec_hash(bad),
    )
    assert version_launched(plan) == spec_hash(old_app())
    assert config.start_from is not None
    assert (config.lineage, config.start_from.snapshot) == (2, PIN)
    assert "spec.driver.podTemplate" in upgrade.message


@pytest.mark.parametrize("image", [B, C])
def test_after_a_rollback_for_an_unusable_edit_the_mended_spec_is_an_upgrade(image: str) -> None:
    bad = made_invalid(of_earlier_operator(new_app(UpgradePhase.GATE)))
    launched = written(observe(bad))
    back = edited(launched, {IMAGE: A})
    rolled_back = written(observe(launched, **runs(back)))
    assert rolled_back.status.upgrade is not None
    assert rolled_back.status.upgrade.phase is UpgradePhase.ROLLED_BACK
    fixed = record(decide(observe(edited(rolled_back, {IMAGE: image}), **runs(back)), NOW))
    assert (fixed.phase, fixed.number) == (UpgradePhase.COPYING, 2)


@pytest.mark.parametrize(
    "phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING, UpgradePhase.COMPLETED, UpgradePhase.REFUSED]
)
def test_a_stable_version_that_runs_is_not_touched(phase: UpgradePhase) -> None:
    bad = made_invalid(new_app(phase))
    plan = decide(observe(bad, **runs(old_app())), NOW)
    assert not acts(plan, do.DeleteDriver)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")


@pytest.mark.parametrize(
    "phase",
    [
        UpgradePhase.COPYING,
        UpgradePhase.REHEARSING,
        UpgradePhase.REFUSED,
        UpgradePhase.ROLLING_BACK,
        UpgradePhase.ROLLED_BACK,
    ],
)
def test_in_every_other_phase_the_stable_version_is_launched_as_well(phase: UpgradePhase) -> None:
    plan = decide(observe(made_invalid(new_app(phase, epoch=0))), NOW)
    assert version_launched(plan) == spec_hash(old_app())


@pytest.mark.parametrize("mode", list(UpgradeMode))
def test_between_stop_and_launch_the_recorded_version_follows(mode: UpgradeMode) -> None:
    app = new_app(UpgradePhase.STOPPING, mode=mode, lineage=2 if mode is UpgradeMode.STATELESS else 1)
    plan = decide(observe(made_invalid(app, mode=mode)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.to_spec_hash, version_launched(plan)) == (
        UpgradePhase.GATE,
        spec_hash(app),
        spec_hash(app),
    )
    assert "spec.driver.podTemplate" in plan.message


@pytest.mark.parametrize("phase", [UpgradePhase.GATE, UpgradePhase.FAILED])
@pytest.mark.parametrize("days", [0, 3])
def test_a_version_under_test_whose_pod_is_lost_is_launched_again(phase: UpgradePhase, days: int) -> None:
    app = new_app(phase)
    plan = decide(observe(made_invalid(app, timeout_seconds=10 * 86400)), NOW + days * 86400)
    assert (record(plan).phase, version_launched(plan)) == (phase, spec_hash(app))


@pytest.mark.parametrize("recorded", [True, False])
def test_what_runs_at_the_gate_keeps_running(recorded: bool) -> None:
    new = new_app(UpgradePhase.GATE) if recorded else of_earlier_operator(new_app(UpgradePhase.GATE))
    plan = decide(observe(made_invalid(new), **runs(new, 0)), NOW)
    assert not acts(plan, do.DeleteDriver)
    assert record(plan) == new.status.upgrade
    assert verdict_of(plan) == (Phase.RUNNING, "Stalled", "InvalidSpec")
    assert "spec.driver.podTemplate" in plan.message


@pytest.mark.parametrize(
    ("phase", "then"),
    [
        (UpgradePhase.STOPPING, "The upgrade under way continues with the version in status.upgrade.toSpec."),
        (UpgradePhase.GATE, "The upgrade under way continues with the version in status.upgrade.toSpec."),
        (UpgradePhase.FAILED, "The version in status.upgrade.toSpec has failed and stays until the spec is corrected."),
    ],
)
def test_the_message_says_what_becomes_of_the_version_under_test(phase: UpgradePhase, then: str) -> None:
    new = new_app(phase, epoch=2)
    assert f". {then}" in decide(observe(made_invalid(new), **runs(new, 0)), NOW).message


def test_no_upgrade_is_said_to_continue_with_the_step_that_ends_it() -> None:
    new = new_app(UpgradePhase.GATE)
    assert "continues" not in decide(observe(made_invalid(new), **runs(new)), NOW).message
    failed = running_driver(new, running=False, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    plan = decide(observe(made_invalid(new), driver=failed), NOW)
    assert record(plan).phase is UpgradePhase.ROLLING_BACK
    assert "status.upgrade.toSpec" not in plan.message


def test_a_version_becomes_stable_beside_the_edit_and_then_the_edit_is_refused() -> None:
    new = new_app(UpgradePhase.GATE)
    known = written(observe(made_invalid(new), **runs(new)))
    assert known.status.upgrade is not None
    assert known.status.last_stable is not None
    assert (known.status.upgrade.phase, known.status.upgrade.to_spec) == (UpgradePhase.COMPLETED, "")
    assert (known.status.last_stable.spec_hash, known.status.upgrade.to_spec_hash) == (spec_hash(new), spec_hash(new))
    stalled = known.status.condition("Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", "InvalidSpec")
    plan = decide(observe(known, **runs(new)), NOW)
    assert (record(plan).phase, record(plan).to_spec_hash) == (UpgradePhase.REFUSED, spec_hash(known))
    assert not acts(plan, do.DeleteDriver)


@pytest.mark.parametrize(("seconds", "phase"), [(100, UpgradePhase.GATE), (130, UpgradePhase.ROLLING_BACK)])
def test_what_does_not_start_at_the_gate_is_rolled_back_as_without_the_edit(
    seconds: float, phase: UpgradePhase
) -> None:
    new = new_app(UpgradePhase.GATE)
    driver = running_driver(new, running=False, waiting=waiting("ImagePullBackOff"))
    plan = decide(observe(made_invalid(new), driver=driver), NOW - 10 + seconds)
    assert record(plan).phase is phase
    assert acts(plan, do.DeleteDriver) == (phase is UpgradePhase.ROLLING_BACK)


@pytest.mark.parametrize("seconds", [60, 86400])
def test_what_fails_beside_the_edit_is_rolled_back_as_without_it(seconds: float) -> None:
    new = new_app(UpgradePhase.GATE)
    driver = running_driver(new, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"))
    plan = decide(observe(made_invalid(new), driver=driver), NOW + seconds)
    assert (record(plan).phase, record(plan).to_spec_hash) == (UpgradePhase.ROLLING_BACK, spec_hash(new))


def test_the_version_is_in_the_record_from_the_stop_on_and_a_newer_one_takes_its_place() -> None:
    old = old_app()
    new = edited(old, {IMAGE: B, "upgrade.mode": "LastState"})
    begun = written(observe(new, **runs(old)))
    newer = written(observe(edited(begun, {IMAGE: C, "upgrade.mode": "LastState"}), **runs(old)))
    specs = [app.status.upgrade.to_spec if app.status.upgrade is not None else "" for app in (begun, newer)]
    assert specs == [recorded_version(new.spec), recorded_version(newer.spec)]


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({}, {"rollback_policy": RollbackPolicy.NEVER}),
        ({"rollback_snapshot": None, "mode": UpgradeMode.LAST_STATE}, {"mode": UpgradeMode.LAST_STATE}),
    ],
)
def test_what_is_not_rolled_back_by_itself_is_not_for_an_edit_either(
    fields: dict[str, Any], spec: dict[str, Any]
) -> None:
    app = of_earlier_operator(new_app(UpgradePhase.GATE, **fields))
    plan = decide(observe(made_invalid(app, **spec)), NOW)
    assert record(plan).phase is UpgradePhase.GATE
    assert verdict_of(plan) == (Phase.PENDING, "Stalled", "InvalidSpec")
    assert "spec.driver.podTemplate" in plan.message


def test_a_suspended_application_stands_still_for_another_reason() -> None:
    app = made_invalid(new_app(UpgradePhase.STOPPING))
    suspended = msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, suspend=True))
    plan = decide(observe(suspended), NOW)
    assert (record(plan).phase, verdict_of(plan)) == (UpgradePhase.STOPPING, (Phase.SUSPENDED, "Ready", "Suspended"))
