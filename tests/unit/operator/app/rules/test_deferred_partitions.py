"""A change of ``state.partitions`` that is made while no stable version runs. Pure."""

from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash, version_of
from tidegate.api.streaming_app import (
    Phase,
    RepartitionStatus,
    StreamingApp,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.app import actions as do
from tidegate.app.actions import Plan
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_testing.observations import NOW, app_with, ended_with, launched, observe, running_driver
from tidegate_testing.plans import status_of, written
from tidegate_testing.upgrades import (
    COPY,
    IMAGE,
    NO_POD,
    A,
    B,
    C,
    edited,
    events,
    launch_of,
    of_earlier_operator,
    old_app,
    record,
    runs,
    under_test,
    version_launched,
)

PARTITIONS = "state.partitions"
KEPT = "StatePartitionsKept"


def in_four(app: StreamingApp, **fields: Any) -> StreamingApp:
    status = msgspec.structs.replace(app.status, state_partitions=4, **fields)
    return msgspec.structs.replace(app, status=status)


def at_gate(**fields: Any) -> StreamingApp:
    """Return version B, which is under test on state in four partitions."""
    return in_four(under_test(**fields), batch=9)


def asking(app: StreamingApp, change: dict[str, Any]) -> StreamingApp:
    return edited(app, change, generation=app.metadata.generation + 1)


def stops(plan: Plan) -> bool:
    return any(isinstance(action, do.DeleteDriver) for action in plan.actions)


def said(plan: Plan) -> str:
    reported = [action for action in plan.actions if isinstance(action, PublishEvent)]
    (message,) = [event.message for event in reported if event.reason == KEPT]
    return message


def reconciling(status: StreamingAppStatus) -> tuple[str, str]:
    condition = status.condition("Reconciling")
    assert condition is not None
    assert condition.status == "True"
    return condition.reason, condition.message


# --- while a version is under test ---


def test_a_number_that_is_changed_while_another_version_is_at_its_gate_stops_nothing() -> None:
    gate = at_gate()
    plan = decide(observe(asking(gate, {IMAGE: B, PARTITIONS: 8}), **runs(gate, 1)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.to_spec_hash, upgrade.repartition) == (UpgradePhase.GATE, spec_hash(gate), None)
    assert not stops(plan)
    reason, message = reconciling(status_of(plan))
    assert (reason, "keeps its 4 partitions" in message, "repartitioned to 8" in message) == ("UpgradeGate", True, True)
    assert said(plan) in message


def test_what_else_changes_does_not_wait_and_runs_on_the_state_in_the_number_that_it_has() -> None:
    gate = at_gate()
    newer = asking(gate, {IMAGE: C, PARTITIONS: 8})
    plan = decide(observe(newer, **runs(gate, 1)), NOW)
    assert stops(plan)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.ROLLING_BACK, "Superseded")
    back = decide(observe(msgspec.structs.replace(newer, status=status_of(plan))), NOW)
    later = decide(observe(msgspec.structs.replace(newer, status=status_of(back))), NOW)
    config = launch_of(later)
    assert (config.lineage, config.state_partitions, config.executor.image) == (2, 4, C)
    assert (record(later).phase, record(later).repartition) == (UpgradePhase.GATE, None)


def test_when_the_version_is_stable_its_state_is_copied_and_asked_about_before_anything_is_stopped() -> None:
    gate = at_gate()
    newer = asking(gate, {IMAGE: B, PARTITIONS: 8})
    plan = decide(observe(newer, **runs(gate, 5)), NOW)
    done = status_of(plan)
    assert done.last_stable is not None
    assert (record(plan).phase, done.last_stable.spec) == (UpgradePhase.COMPLETED, version_of(gate.spec))
    assert reconciling(done)
    after = decide(observe(msgspec.structs.replace(newer, status=done), **runs(gate, 5)), NOW)
    upgrade = record(after)
    assert (upgrade.phase, upgrade.repartition) == (
        UpgradePhase.COPYING,
        RepartitionStatus(partitions=8, previous_partitions=4),
    )
    assert not stops(after)


def test_a_version_that_fails_while_the_number_waits_is_not_tried_once_more_with_that_number() -> None:
    gate = at_gate()
    newer = asking(gate, {IMAGE: B, PARTITIONS: 8})
    driver = running_driver(gate, running=False, ready=False, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    plan = decide(observe(newer, driver=driver), NOW)
    assert (record(plan).phase, record(plan).to_spec_hash) == (UpgradePhase.ROLLING_BACK, spec_hash(newer))


def test_with_an_edit_of_which_no_pod_can_be_made_the_version_before_goes_on_at_once_as_well() -> None:
    app = in_four(under_test(UpgradePhase.STOPPING, mode=UpgradeMode.LAST_STATE, rollback_snapshot=None), batch=9)
    plan = decide(observe(asking(of_earlier_operator(app), {**NO_POD, PARTITIONS: 8})), NOW)
    assert (record(plan).phase, version_launched(plan)) == (UpgradePhase.REFUSED, spec_hash(app_with({IMAGE: A})))
    status = status_of(plan)
    assert (status.phase, status.applied_spec_hash) == (Phase.STARTING, version_launched(plan))


def test_the_number_that_the_version_before_had_is_a_change_back_also_while_another_one_waits() -> None:
    gate = at_gate()
    plan = decide(observe(asking(gate, {IMAGE: A, PARTITIONS: 8}), **runs(gate, 1)), NOW)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.ROLLING_BACK, "SpecReverted")
    assert upgrade.to_spec_hash == spec_hash(gate)  # so version A with the other number is still to be tried


def test_a_version_that_is_being_stopped_for_something_else_is_not_repartitioned_unasked() -> None:
    stopping = in_four(under_test(UpgradePhase.STOPPING), batch=9)
    newer = asking(stopping, {IMAGE: B, PARTITIONS: 8})
    plan = decide(observe(newer), NOW)
    assert not any(isinstance(action, do.CreateRepartition) for action in plan.actions)
    assert (record(plan).phase, launch_of(plan).state_partitions) == (UpgradePhase.GATE, 4)


@pytest.mark.parametrize("was_stable", [True, False])
@pytest.mark.parametrize("before", [4, 8])
def test_a_version_that_starts_with_nothing_has_its_number_also_if_the_mode_was_set_back_before_its_launch(
    was_stable: bool, before: int
) -> None:
    fields = {"mode": UpgradeMode.STATELESS, "lineage": 2, "epoch": 0, "rollback_snapshot": None}
    stopping = in_four(under_test(UpgradePhase.STOPPING, {PARTITIONS: before}, **fields), batch=9)
    if not was_stable:
        stopping = in_four(stopping, last_stable=None)
    plan = decide(observe(asking(stopping, {IMAGE: B, PARTITIONS: 8})), NOW)
    config = launch_of(plan)
    assert (config.lineage, config.state_partitions, status_of(plan).state_partitions) == (2, 8, 8)
    assert KEPT not in events(plan)


# --- before any version was stable ---


def first() -> StreamingApp:
    return in_four(launched(app_with(), phase=Phase.RUNNING), batch=3)


def test_before_the_first_version_is_stable_the_number_waits_and_nothing_is_stopped() -> None:
    app = first()
    plan = decide(observe(asking(app, {PARTITIONS: 8}), **runs(app, 1)), NOW)
    assert not stops(plan)
    assert (status_of(plan).upgrade, status_of(plan).state_partitions) == (None, 4)
    reason, message = reconciling(status_of(plan))
    assert (reason, said(plan) in message) == (KEPT, True)


def test_once_the_first_version_is_stable_its_state_is_repartitioned_without_another_word() -> None:
    app = first()
    newer = asking(app, {PARTITIONS: 8})
    learned = status_of(decide(observe(newer, **runs(app, 5)), NOW))
    assert learned.last_stable is not None
    assert learned.last_stable.spec_hash == spec_hash(app)
    plan = decide(observe(msgspec.structs.replace(newer, status=learned), **runs(app, 5)), NOW)
    assert (record(plan).phase, record(plan).repartition) == (
        UpgradePhase.COPYING,
        RepartitionStatus(partitions=8, previous_partitions=4),
    )


def test_a_number_that_waits_beside_an_edit_of_which_no_pod_can_be_made_is_refused_once() -> None:
    refused = UpgradeStatus(
        phase=UpgradePhase.REFUSED,
        mode=UpgradeMode.STATELESS,
        number=1,
        from_spec_hash=spec_hash(first()),
        to_spec_hash=spec_hash(app_with(NO_POD)),
        lineage=1,
        reason=Reason.INVALID_SPEC,
    )
    app = in_four(first(), upgrade=refused)
    newer = asking(app, {**NO_POD, PARTITIONS: 8})
    once = status_of(decide(observe(newer, **runs(app, 1)), NOW))
    assert once.upgrade is not None
    assert (once.upgrade.phase, once.upgrade.number) == (UpgradePhase.REFUSED, 2)
    again = decide(observe(msgspec.structs.replace(newer, status=once), **runs(app, 1)), NOW)
    assert not any(isinstance(action, do.WriteStatus | PublishEvent) for action in again.actions)


# --- while the agent says nothing ---


@pytest.mark.parametrize("seconds", [0, 61, 3600])
def test_what_runs_is_not_stopped_before_its_agent_has_told_what_its_state_is(seconds: int) -> None:
    app = in_four(old_app(), batch=9)
    newer = asking(app, {IMAGE: A, PARTITIONS: 8})
    driver = running_driver(app, ready=True)
    waiting = written(observe(newer, driver=driver))
    o = observe(waiting, driver=driver)
    assert not stops(decide(o, NOW + seconds))
    upgrade = written(o, NOW + seconds).status.upgrade
    assert upgrade is not None
    assert upgrade.phase is UpgradePhase.COPYING


def test_a_copy_that_is_gone_before_it_told_refuses_the_upgrade() -> None:
    app = in_four(
        under_test(
            UpgradePhase.COPYING, {PARTITIONS: 8}, repartition=RepartitionStatus(partitions=8, previous_partitions=4)
        )
    )
    gone = SnapshotReport(COPY, SnapshotState.DISPOSED)
    plan = decide(observe(app, **runs(old_app(), 9, gone)), NOW)
    assert (record(plan).phase, record(plan).reason, stops(plan)) == (UpgradePhase.REFUSED, "CopyRemoved", False)


# --- what is said after one edit after another ---


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((8,), "keeps its 4 partitions until the running version is stable; then it is repartitioned to 8"),
        ((8, 3), "keeps its 4 partitions until the running version is stable; then it is repartitioned to 3"),
        ((8, 4, 3), "keeps its 4 partitions until the running version is stable; then it is repartitioned to 3"),
        ((8, 4), ""),
        ((4,), ""),
    ],
)
@pytest.mark.parametrize("under_a_test", [True, False])
def test_what_is_said_is_about_the_newest_edit_alone(
    numbers: tuple[int, ...], message: str, under_a_test: bool
) -> None:
    running = at_gate() if under_a_test else first()
    app, change = running, {IMAGE: B} if under_a_test else {}
    for number in numbers:
        app = asking(app, {**change, PARTITIONS: number})
        o = observe(app, **runs(running, 1))
        plan, app = decide(o, NOW), written(o)
    assert (message in said(plan)) if message else (KEPT not in events(plan))
    condition = app.status.condition("Ready")
    assert condition is not None
    assert ("partitions" in condition.message) == bool(message)


def test_an_edit_that_is_known_is_not_told_again() -> None:
    app = first()
    newer = asking(app, {PARTITIONS: 8})
    known = written(observe(newer, **runs(app, 1)))
    assert KEPT not in events(decide(observe(known, **runs(app, 1)), NOW))
