"""What ``spec.suspend`` does. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import Phase
from tidegate.app.actions import ConfirmDriverGone, CreateDriver, DeleteDriver, DeleteExecutor, RecordLaunch
from tidegate.app.rules.plan import decide
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    executor_of,
    launched,
    observe,
    running_driver,
)
from tidegate_testing.plans import acts, status_of, verdict_of

SUSPENDED = launched(app_with({"suspend": True}), phase=Phase.RUNNING)


def test_a_running_application_is_stopped_at_a_batch_boundary() -> None:
    driver = running_driver(SUSPENDED)
    plan = decide(observe(SUSPENDED, driver=driver), NOW)
    assert (plan.rule, plan.reason) == ("stop_driver_of_suspended", "Suspending")
    assert DeleteDriver(driver) in plan.actions


def test_while_it_stops_nothing_more_is_asked_of_it() -> None:
    plan = decide(observe(SUSPENDED, driver=running_driver(SUSPENDED, delete_by=NOW + 60)), NOW)
    assert plan.reason == "Suspending"
    assert not acts(plan, DeleteDriver)


def test_without_pods_it_is_suspended_and_as_it_should_be() -> None:
    plan = decide(observe(SUSPENDED), NOW)
    assert verdict_of(plan) == (Phase.SUSPENDED, "Ready", "Suspended")
    assert (status_of(plan).epoch, status_of(plan).lineage) == (1, 1)


def test_it_is_not_said_to_be_suspended_before_its_driver_was_looked_for_by_its_name() -> None:
    plan = decide(observe(SUSPENDED), NOW)
    names = [type(action).__name__ for action in plan.actions]
    assert names.index("ConfirmDriverGone") < names.index("WriteStatus")
    later = launched(app_with({"suspend": True}), phase=Phase.SUSPENDED)
    assert not acts(decide(observe(later), NOW), ConfirmDriverGone)
    assert not acts(decide(observe(app_with({"suspend": True}, finalizers=[])), NOW), ConfirmDriverGone)
    lost = app_with({"suspend": True})
    assert acts(decide(observe(lost), NOW), ConfirmDriverGone)


def test_its_executors_go_too() -> None:
    executor = executor_of(SUSPENDED, 1)
    plan = decide(observe(SUSPENDED, executors=(executor,)), NOW)
    assert plan.reason == "Suspending"
    assert DeleteExecutor(executor) in plan.actions


def test_it_is_not_called_suspended_while_a_pod_that_has_ended_is_still_there() -> None:
    executor = dataclasses.replace(executor_of(SUSPENDED, 1), phase="Succeeded", running=False, delete_by=NOW + 30)
    assert decide(observe(SUSPENDED, executors=(executor,)), NOW).reason == "Suspending"


def test_an_executor_that_does_not_go_with_its_lost_node_is_named_after_a_while() -> None:
    o = observe(SUSPENDED, executors=(executor_of(SUSPENDED, 1, delete_by=NOW + 30),))
    waits = decide(o, NOW)
    assert (waits.reason, waits.wake_after) == ("Suspending", 90.0)
    late = decide(o, NOW + 90)
    assert verdict_of(late) == (Phase.STOPPING, "Stalled", "PodNotGone")
    assert "out-of-service" in late.message


@pytest.mark.parametrize("change", [{}, {"application.args": ["--new"]}])
def test_set_back_to_false_it_goes_on_at_once_on_the_same_state(change: dict[str, Any]) -> None:
    status = launched(app_with(), phase=Phase.SUSPENDED).status
    plan = decide(observe(app_with(change, status=status)), NOW)
    (record,) = [a for a in plan.actions if isinstance(a, RecordLaunch)]
    assert (record.status.epoch, record.status.lineage, record.unplanned) == (2, 1, False)
    assert acts(plan, CreateDriver)


def test_one_that_is_created_suspended_makes_no_pod() -> None:
    plan = decide(observe(app_with({"suspend": True})), NOW)
    assert plan.reason == "Suspended"
    assert not acts(plan, CreateDriver, RecordLaunch)


def test_one_that_has_finished_stays_completed() -> None:
    driver = driver_of(SUSPENDED, phase="Succeeded", ended=ended_with(Reason.COMPLETED, 0))
    assert status_of(decide(observe(SUSPENDED, driver=driver), NOW)).phase is Phase.COMPLETED
