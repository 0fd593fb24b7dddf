"""What a launched version has done beside an edit of which no pod can be made: within its time, and after. Pure.

The version itself is recorded, and goes on beside the edit; of the record of an earlier operator it is not known.
"""

import dataclasses
import datetime
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import (
    LastExit,
    Phase,
    RollbackPolicy,
    RollbackSnapshot,
    StreamingApp,
    UpgradeMode,
    UpgradePhase,
)
from tidegate.app import actions as do
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, ended_with, launched, observe, running_driver, waiting
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.upgrades import (
    IMAGE,
    NO_POD,
    PIN,
    B,
    C,
    edited,
    launch_of,
    made_invalid,
    new_app,
    of_earlier_operator,
    old_app,
    record,
    runs,
    upgrading,
    version_launched,
)

DAYS = 3 * 86400.0
LONG_AGO = datetime.datetime.fromtimestamp(NOW - DAYS, datetime.UTC)


def at_gate(**fields: Any) -> StreamingApp:
    """Version B, launched a moment ago with epoch 2, its first one, by an operator that recorded its hash alone."""
    app = of_earlier_operator(new_app(**{"phase": UpgradePhase.GATE, "reason": "Launched", **fields}))
    return with_status(app, epoch=2, applied_spec_hash=spec_hash(app))


def with_status(app: StreamingApp, **fields: Any) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, **fields))


def stands_still(plan: do.Plan) -> bool:
    assert (acts(plan, do.CreateDriver), acts(plan, do.DeleteDriver)) == (False, False)
    stalled = status_of(plan).condition("Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", "InvalidSpec")
    return "spec.driver.podTemplate" in stalled.message


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED])
def test_a_pod_that_is_lost_after_the_time_of_the_gate_undoes_nothing(phase: UpgradePhase) -> None:
    bad = made_invalid(of_earlier_operator(new_app(phase, epoch=2)))
    plan = decide(observe(bad), NOW + DAYS)
    assert record(plan).phase is phase
    assert stands_still(plan)
    assert verdict_of(plan)[0] is Phase.PENDING


def test_an_application_that_was_suspended_meanwhile_goes_back_by_nobodys_word_either() -> None:
    bad = made_invalid(at_gate())
    suspended = msgspec.structs.replace(bad, spec=msgspec.structs.replace(bad.spec, suspend=True))
    known = written(observe(suspended), NOW + DAYS)
    resumed = msgspec.structs.replace(known, spec=bad.spec)
    assert stands_still(decide(observe(resumed), NOW + DAYS))


@pytest.mark.parametrize(
    ("fields", "epoch"),
    [
        ({"phase": UpgradePhase.STOPPING}, 2),  # another version took the place of one that ran for days
        ({"phase": UpgradePhase.FAILED}, 2),
        ({}, 5),  # launched again
        ({"reason": "InputArrived"}, 2),
    ],
)
def test_where_the_record_began_anew_the_time_counts_from_the_beginning_of_the_upgrade(
    fields: dict[str, Any], epoch: int
) -> None:
    app = with_status(at_gate(start_time=LONG_AGO, **{k: v for k, v in fields.items() if k == "reason"}), epoch=epoch)
    assert app.status.upgrade is not None
    upgrade = msgspec.structs.replace(app.status.upgrade, **fields)
    assert stands_still(decide(observe(made_invalid(with_status(app, upgrade=upgrade))), NOW))


@pytest.mark.parametrize("seconds", [0, DAYS])
def test_a_version_that_ran_for_days_and_cannot_be_launched_again_itself_is_not_undone_by_the_time_either(
    seconds: float,
) -> None:
    spec = {IMAGE: B, "driver.podTemplate": NO_POD["driver.podTemplate"]}
    app = launched(app_with(spec), 2, phase=Phase.RUNNING)
    app = upgrading(app, old_app(), UpgradePhase.GATE, start_time=LONG_AGO, reason="InputArrived")
    plan = decide(observe(app), NOW + seconds)
    assert record(plan).phase is UpgradePhase.GATE
    assert stands_still(plan)


def test_a_long_copy_before_the_launch_takes_nothing_of_the_time_of_the_gate() -> None:
    plan = decide(observe(made_invalid(at_gate(start_time=LONG_AGO))), NOW)
    assert (record(plan).phase, version_launched(plan)) == (UpgradePhase.ROLLING_BACK, spec_hash(old_app()))


def test_input_after_a_pause_is_in_the_record_because_its_time_begins_anew() -> None:
    idle = at_gate(idle_start_time=LONG_AGO)
    late = runs(idle, 1, lag_rows=100)
    assert record(decide(observe(idle, **late), NOW)).reason == "InputArrived"


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED])
@pytest.mark.parametrize("spec", [{}, {"rollback_policy": RollbackPolicy.NEVER}])
def test_a_fixed_spec_or_a_rollback_by_hand_ends_the_standstill(phase: UpgradePhase, spec: dict[str, Any]) -> None:
    bad = observe(made_invalid(at_gate(phase=phase, epoch=2), **spec))
    assert stands_still(decide(bad, NOW + DAYS))
    known = written(bad, NOW + DAYS)
    wished = msgspec.structs.replace(known.spec.upgrade, rollback_to=PIN)
    by_hand = msgspec.structs.replace(known, spec=msgspec.structs.replace(known.spec, upgrade=wished))
    plan = decide(observe(by_hand), NOW + DAYS)
    config = launch_of(plan)
    assert config.start_from is not None
    assert (version_launched(plan), config.lineage, config.start_from.snapshot) == (spec_hash(old_app()), 2, PIN)
    # At the gate the recorded version's own time is over.
    for image in (C,) if phase is UpgradePhase.GATE else (B, C):
        fixed = edited(known, {IMAGE: image})
        assert version_launched(decide(observe(fixed), NOW + DAYS)) == spec_hash(fixed)


def test_an_earlier_versions_finish_is_not_taken_for_that_of_the_one_that_was_launched() -> None:
    new = with_status(at_gate(), last_exit=LastExit(reason="Completed", completion_time=LONG_AGO))
    assert record(decide(observe(made_invalid(new)), NOW)).phase is UpgradePhase.ROLLING_BACK


def test_an_evicted_pod_is_removed_and_nothing_is_promised_to_follow() -> None:
    new = at_gate()
    lost = running_driver(new, running=False, phase="Failed", reason="Evicted", disruption="TerminationByKubelet")
    plan = decide(observe(made_invalid(new), driver=lost), NOW + DAYS)
    assert (record(plan).phase, acts(plan, do.DeleteDriver)) == (UpgradePhase.GATE, True)
    assert "has ended and is deleted; nothing follows yet. No driver pod can be built" in plan.message
    assert "spec.driver.podTemplate" in plan.message


@pytest.mark.parametrize("seconds", [600, 86400])
@pytest.mark.parametrize("edit", [True, False])
def test_a_process_that_ran_is_not_rolled_back_because_it_is_started_again_slowly(seconds: float, edit: bool) -> None:
    new = at_gate(idle_start_time=LONG_AGO)
    end = ended_with(Reason.STOPPED, 143)
    driver = running_driver(new, running=False, restarts=1, ended=end, waiting=waiting("ErrImagePull"))
    plan = decide(observe(made_invalid(new) if edit else new, driver=driver), NOW + seconds)
    assert (record(plan).phase, acts(plan, do.DeleteDriver)) == (UpgradePhase.GATE, False)


@pytest.mark.parametrize("seconds", [60, DAYS])
@pytest.mark.parametrize("pin", [None, RollbackSnapshot(id=PIN, lineage=1)])
def test_a_version_whose_pod_was_refused_has_certainly_committed_nothing(
    seconds: float, pin: RollbackSnapshot | None
) -> None:
    mode = UpgradeMode.SNAPSHOT if pin else UpgradeMode.LAST_STATE
    app = at_gate(rollback_snapshot=pin, mode=mode)
    refusal = Refusal("orders-driver", spec_hash(app), 2, Reason.LAUNCH_REFUSED, "quota", NOW, 1)
    plan = decide(observe(made_invalid(app, mode=mode), memory=ProcessState(refusal=refusal)), NOW + seconds)
    assert (record(plan).phase, version_launched(plan)) == (UpgradePhase.ROLLING_BACK, spec_hash(old_app()))
    assert launch_of(plan).lineage == (2 if pin else 1)


@pytest.mark.parametrize("seconds", [60, DAYS])
def test_a_pod_that_is_there_is_left_alone_although_no_process_of_it_began(seconds: float) -> None:
    app = at_gate()
    driver = running_driver(app, running=False, phase="Pending", waiting=waiting("ImagePullBackOff"))
    plan = decide(observe(made_invalid(app), driver=driver), NOW + seconds)
    assert (record(plan).phase, acts(plan, do.DeleteDriver)) == (UpgradePhase.GATE, False)
    assert stands_still(plan)


@pytest.mark.parametrize(
    ("refusal", "epoch"),
    [
        ({}, 3),  # it was launched before
        ({"epoch": 1}, 2),
        ({"recorded": False}, 2),  # of a launch that had no epoch yet
        ({"pod_name": "orders-repartition-2"}, 2),
    ],
)
def test_any_other_refusal_tells_nothing_of_what_it_committed(refusal: dict[str, Any], epoch: int) -> None:
    app = with_status(at_gate(rollback_snapshot=None, mode=UpgradeMode.LAST_STATE), epoch=epoch)
    known = Refusal("orders-driver", spec_hash(app), epoch, Reason.LAUNCH_REFUSED, "quota", NOW, 1)
    memory = ProcessState(refusal=dataclasses.replace(known, **refusal))
    plan = decide(observe(made_invalid(app, mode=UpgradeMode.LAST_STATE), memory=memory), NOW)
    assert (record(plan).phase, verdict_of(plan)[2]) == (UpgradePhase.GATE, "InvalidSpec")
