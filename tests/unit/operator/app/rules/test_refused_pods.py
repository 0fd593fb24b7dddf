"""What the API server finds wrong with the pods of the spec: before anything is stopped, and at a launch. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, RehearsalStatus, RollbackPolicy, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.observation import Observation, PodRejection
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, launched, observe, running_driver
from tidegate_testing.plans import acts, status_of, verdict_of, written
from tidegate_testing.pod_refusals import WRONG
from tidegate_testing.upgrades import (
    BEGUN,
    IMAGE,
    A,
    B,
    edited,
    events,
    new_app,
    of_earlier_operator,
    old_app,
    record,
    runs,
    stable,
    version_launched,
)

TYPO: dict[str, Any] = {IMAGE: B, "driver.podTemplate": {"spec": {"tolerationz": []}}}
TYPO_OF_EXECUTORS: dict[str, Any] = {IMAGE: B, "executor.podTemplate": {"spec": {"tolerationz": []}}}
WORDS = WRONG["unknown field"].server_message


def rejection(role: str) -> PodRejection:
    return PodRejection(role, WORDS)


def refused(o: Observation, server_message: str = WORDS, **fields: Any) -> Observation:
    """Return the observation with the driver's pod refused a moment ago."""
    reported = f"The API server refuses pod orders-driver: {server_message}. Correct what it names; Tidegate retries."
    known = Refusal(
        "orders-driver",
        o.spec_hash,
        o.app.status.epoch,
        Reason.LAUNCH_REFUSED,
        reported,
        NOW - 1,
        1,
        server_message=server_message,
    )
    return dataclasses.replace(o, memory=ProcessState(refusal=dataclasses.replace(known, **fields)))


def driver_is_created(plan: do.Plan) -> do.CreateDriver:
    (create,) = [action for action in plan.actions if isinstance(action, do.CreateDriver)]
    return create


# --- what is tried before anything is stopped for it ---


@pytest.mark.parametrize(("change", "role"), [(TYPO, "driver"), (TYPO_OF_EXECUTORS, "executor")])
def test_an_upgrade_to_a_pod_that_would_be_refused_stops_nothing_and_names_the_field(
    change: dict[str, Any], role: str
) -> None:
    bad = edited(old_app(), change)
    plan = decide(observe(bad, rejection=rejection(role), **runs(old_app())), NOW)
    assert not acts(plan, do.DeleteDriver)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert verdict_of(plan) == (Phase.RUNNING, "Stalled", "UpgradeRefused")
    assert record(plan).message == (
        f'The API server refuses the {role} pod of the spec: unknown field "spec.{role}.podTemplate.spec.tolerationz". '
        "The previous version continues."
    )


def test_a_pod_whose_list_has_an_item_without_a_name_is_refused_like_any_other() -> None:
    proxy = {"name": "proxy", "image": "x", "ports": [{"name": "http"}]}
    bad = edited(old_app(), {IMAGE: B, "driver.podTemplate": {"spec": {"containers": [proxy]}}})
    server_message = 'Pod "orders-driver" is invalid: spec.containers[1].ports[0].containerPort: Required value'
    plan = decide(observe(bad, rejection=PodRejection("driver", server_message), **runs(old_app())), NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert "spec.driver.podTemplate.spec.containers[0].ports[0].containerPort: Required value" in record(plan).message


def test_without_a_stable_version_the_driver_is_left_as_it_is() -> None:
    first = launched(app_with({IMAGE: A}), phase=Phase.RUNNING)
    bad = edited(first, TYPO)
    plan = decide(observe(bad, rejection=rejection("driver"), driver=running_driver(first, ready=True)), NOW)
    assert (acts(plan, do.DeleteDriver), plan.reason) == (False, "InvalidSpec")
    assert "spec.driver.podTemplate.spec.tolerationz" in plan.message


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED])
def test_a_version_under_test_is_not_stopped_for_it(phase: UpgradePhase) -> None:
    tested = new_app(phase, epoch=2)
    bad = edited(tested, TYPO)
    plan = decide(observe(bad, rejection=rejection("driver"), driver=running_driver(tested, ready=True)), NOW)
    # What was still being stopped for it runs already.
    then = UpgradePhase.GATE if phase is UpgradePhase.STOPPING else phase
    assert (acts(plan, do.DeleteDriver), record(plan).phase, plan.reason) == (False, then, "InvalidSpec")


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING])
def test_what_turns_out_to_be_wrong_before_the_stop_is_refused_and_stops_nothing(phase: UpgradePhase) -> None:
    begun = new_app(phase, rehearsal=RehearsalStatus(start_time=BEGUN))
    bad = observe(begun, rejection=rejection("driver"))
    plan = decide(dataclasses.replace(bad, **runs(old_app())), NOW)
    assert (acts(plan, do.DeleteDriver), plan.reason) == (False, "UpgradeRefused")
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "InvalidSpec")
    assert "The previous version continues." in record(plan).message
    assert record(plan).rehearsal is None
    lost = decide(bad, NOW)
    assert (record(lost).phase, version_launched(lost)) == (UpgradePhase.REFUSED, spec_hash(old_app()))


def test_where_nothing_runs_the_stable_version_goes_on_at_once() -> None:
    bad = edited(of_earlier_operator(new_app(UpgradePhase.STOPPING)), TYPO)
    plan = decide(observe(bad, rejection=rejection("driver")), NOW)
    assert (record(plan).phase, version_launched(plan)) == (UpgradePhase.REFUSED, spec_hash(old_app()))
    assert "spec.driver.podTemplate.spec.tolerationz" in record(plan).message


def test_a_new_application_is_not_launched_with_executors_that_would_be_refused() -> None:
    plan = decide(observe(app_with(TYPO_OF_EXECUTORS, finalizers=[]), rejection=rejection("executor")), NOW)
    assert (acts(plan, do.CreateDriver), status_of(plan).epoch) == (False, 0)
    assert verdict_of(plan) == (Phase.PENDING, "Stalled", "InvalidSpec")
    assert "spec.executor.podTemplate.spec.tolerationz" in plan.message
    assert plan.wake_after == 300.0


def test_a_version_that_was_stable_is_launched_as_it_always_was() -> None:
    back = stable(launched(app_with(TYPO), phase=Phase.SUSPENDED))
    assert not driver_is_created(decide(observe(back), NOW)).strict


def test_the_first_driver_of_a_version_has_no_field_that_no_pod_has_and_one_that_follows_has_what_that_had() -> None:
    app = app_with(TYPO)
    first = decide(observe(app), NOW)
    assert driver_is_created(first).strict
    known = launched(app)
    lost = observe(msgspec.structs.replace(known, status=status_of(first)))
    assert not driver_is_created(decide(lost, NOW)).strict, "by an operator of before, perhaps, and nobody heeded it"
    tried_again = decide(refused(lost, at=NOW - 60), NOW)
    assert driver_is_created(tried_again).strict
    by_another_operator = observe(msgspec.structs.replace(known, status=status_of(tried_again)))
    assert driver_is_created(decide(by_another_operator, NOW)).strict
    not_answered = dataclasses.replace(lost, memory=ProcessState(not_created="no answer"))
    assert driver_is_created(decide(not_answered, NOW)).strict


# --- what is refused at a launch ---


def test_a_launch_that_is_refused_names_the_field_and_the_remedy() -> None:
    app = launched(app_with(TYPO))
    plan = decide(refused(observe(app)), NOW)
    assert (verdict_of(plan), plan.message) == (
        (Phase.PENDING, "Stalled", "LaunchRefused"),
        'The API server refuses pod orders-driver: unknown field "spec.driver.podTemplate.spec.tolerationz". '
        "Correct spec.driver.podTemplate.spec.tolerationz; Tidegate retries.",
    )
    again = decide(refused(observe(app), at=NOW - 60), NOW)
    assert (acts(again, do.CreateDriver), again.message) == (True, plan.message)


def test_what_is_not_about_the_pod_itself_is_said_as_the_api_server_says_it() -> None:
    plan = decide(refused(observe(launched(app_with(TYPO))), server_message="", message="exceeded quota."), NOW)
    assert (plan.reason, plan.message) == ("LaunchRefused", "exceeded quota.")


def at_gate(rollback: RollbackPolicy = RollbackPolicy.ON_FAILURE) -> StreamingApp:
    """Version B, with a pod that is refused, launched a moment ago after version A was stable."""
    stopping = edited(new_app(UpgradePhase.STOPPING), TYPO)
    assert stopping.status.upgrade is not None
    upgrade = msgspec.structs.replace(stopping.status.upgrade, to_spec_hash=spec_hash(stopping))
    stopping = msgspec.structs.replace(stopping, status=msgspec.structs.replace(stopping.status, upgrade=upgrade))
    policy = msgspec.structs.replace(stopping.spec.upgrade, rollback_policy=rollback)
    return written(
        observe(msgspec.structs.replace(stopping, spec=msgspec.structs.replace(stopping.spec, upgrade=policy)))
    )


def test_an_upgrade_says_that_its_pod_is_refused_and_what_follows() -> None:
    app = at_gate()
    launch_refused = refused(observe(app))
    plan = decide(launch_refused, NOW)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.GATE, "Launched")
    assert record(plan).message == (
        f"The new version has not started. {plan.message} If it is not stable within 1800 s "
        "(spec.upgrade.timeoutSeconds), it is rolled back."
    )
    said = dataclasses.replace(launch_refused, app=written(launch_refused))
    assert not [event for event in events(decide(said, NOW)) if event.startswith("Upgrade")]
    back = decide(said, NOW + 2000)
    assert record(back).phase is UpgradePhase.ROLLING_BACK
    assert "no driver pod of it was created (LaunchRefused)" in record(back).message
    started = decide(observe(said.app, driver=running_driver(said.app)), NOW)
    assert record(started).message == "The new version was started."


def test_an_upgrade_that_is_not_rolled_back_says_so_while_its_pod_is_refused() -> None:
    plan = decide(refused(observe(at_gate(RollbackPolicy.NEVER))), NOW)
    stays = "spec.upgrade.rollbackPolicy is Never: the new version is not rolled back automatically."
    assert stays in record(plan).message
    assert "it is rolled back" not in record(plan).message
