"""What is decided where configuration is too long for a variable, or for anything. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import Phase
from tidegate.app.actions import CreateDriver, DeleteDriver, ProvideConfiguration
from tidegate.app.rules.housekeeping import VOLUME_PATIENCE
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState
from tidegate.pods.records.faults import end_problem, is_named, start_problem
from tidegate.pods.records.record import Exit, PodRecord
from tidegate.pods.records.start_delay import Obstacle, StartDelay
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    launched,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.plans import acts, verdict_of

LONG: dict[str, Any] = {"application.args": ["x" * 4000] * 40}
APP = launched(app_with(LONG))


def secret_name() -> str:
    plan = decide(observe(app_with(LONG)), NOW)
    (provided,) = [each for each in plan.actions if isinstance(each, ProvideConfiguration)]
    return str(provided.secret["metadata"]["name"])


def waiting(secret: str, seconds: float = VOLUME_PATIENCE + 5, **fields: Any) -> PodRecord:
    return driver_of(APP, node="node0", created_at=NOW - seconds, configuration_secret=secret, **fields)


def test_the_secret_is_made_right_after_the_pod_that_it_goes_with() -> None:
    actions = decide(observe(app_with(LONG)), NOW).actions
    (at,) = [number for number, action in enumerate(actions) if isinstance(action, CreateDriver)]
    provided = actions[at + 1]
    assert isinstance(provided, ProvideConfiguration)
    assert (provided.pod_name, provided.replace) == ("orders-driver", True)


def test_an_application_with_short_configuration_has_no_secret_of_it() -> None:
    assert not acts(decide(observe(app_with()), NOW), ProvideConfiguration)


def test_the_secret_of_a_driver_that_waits_is_made_again_if_it_is_missing() -> None:
    plan = decide(observe(APP, driver=waiting(secret_name())), NOW)
    (provided,) = [each for each in plan.actions if isinstance(each, ProvideConfiguration)]
    assert (provided.secret["metadata"]["name"], provided.replace) == (secret_name(), False)


@pytest.mark.parametrize("seconds", [5.0, 20.0])
def test_a_driver_that_waits_is_looked_at_when_its_secret_may_have_to_be_made_again(seconds: float) -> None:
    plan = decide(observe(APP, driver=waiting(secret_name(), seconds)), NOW)
    assert not acts(plan, ProvideConfiguration)
    assert plan.wake_after is not None
    assert plan.wake_after <= VOLUME_PATIENCE + 1 - seconds


@pytest.mark.parametrize(
    "driver", [running_driver(APP, configuration_secret="s", created_at=NOW - 90), waiting("another")]
)
def test_no_secret_is_made_of_a_driver_that_runs_or_was_launched_with_something_else(driver: PodRecord) -> None:
    assert not acts(decide(observe(APP, driver=driver), NOW), ProvideConfiguration)


def lacking(secret: str, named: str) -> PodRecord:
    text = f'MountVolume.SetUp failed for volume "tidegate-configuration" : secret "{named}" not found'
    return waiting(secret, 150, delay=StartDelay(Obstacle.REFERENCE, text, f"Secret {named}"))


def test_a_driver_whose_secret_is_gone_and_cannot_be_made_again_makes_room_for_another_one() -> None:
    driver = lacking("orders-config-1-0000000000", "orders-config-1-0000000000")
    plan = decide(observe(APP, driver=driver), NOW)
    assert verdict_of(plan) == (Phase.STARTING, "Reconciling", "ConfigurationChanged")
    assert DeleteDriver(driver) in plan.actions
    assert "orders-config-1-0000000000" in plan.message


def test_what_lacks_only_tidegates_own_secret_is_no_mistake_of_a_version() -> None:
    problem = start_problem(lacking(secret_name(), secret_name()))
    assert problem is not None
    assert (problem.reason, is_named(problem)) == (Reason.CONFIGURATION_CHANGED, False)
    assert not acts(decide(observe(APP, driver=lacking(secret_name(), secret_name())), NOW), DeleteDriver)


@pytest.mark.parametrize("named", ["keys", ""])
def test_a_driver_that_lacks_something_else_is_left(named: str) -> None:
    plan = decide(observe(APP, driver=lacking("orders-config-1-0000000000", named)), NOW)
    assert (plan.reason, acts(plan, DeleteDriver)) == ("ReferenceMissing", False)


def test_a_driver_that_found_another_configuration_is_replaced_after_a_pause() -> None:
    ended = ended_with(Reason.CONFIGURATION_CHANGED, 0)
    driver = driver_of(APP, phase="Succeeded", ended=ended, configuration_secret=secret_name())
    soon = decide(observe(APP, driver=driver, memory=ProcessState(launched_at=NOW - 1)), NOW)
    assert (soon.reason, acts(soon, DeleteDriver)) == ("ConfigurationChanged", False)
    later = decide(observe(APP, driver=driver, memory=ProcessState(launched_at=NOW - 1)), NOW + 60)
    assert acts(later, DeleteDriver)


TOO_LONG: dict[str, dict[str, Any]] = {
    "spec.application.args": {"application.args": ["x" * 120_000] * 10},
    "spec.application.args: the spec and the two versions": {"application.args": ["x" * 48_000] * 10},
    "spec.application.env[RULES]": {"application.env": [{"name": "RULES", "value": "x" * 140_000}]},
    "spec.sparkConf[spark.my]": {"sparkConf": {"spark.my": "x" * 140_000}},
}


@pytest.mark.parametrize("field", TOO_LONG)
def test_an_edit_that_nothing_can_be_started_with_stops_nothing_and_names_the_field(field: str) -> None:
    before = launched(app_with())
    driver = running_driver(before)
    edited = launched(app_with(TOO_LONG[field]), applied_spec_hash=driver.spec_hash)
    plan = decide(observe(edited, driver=driver, agent=report_of(driver)), NOW)
    assert not acts(plan, DeleteDriver, CreateDriver)
    assert plan.reason == "ConfigurationTooLong"
    assert field in plan.message


@pytest.mark.parametrize("field", TOO_LONG)
def test_a_new_application_that_nothing_can_be_started_with_is_not_launched(field: str) -> None:
    plan = decide(observe(app_with(TOO_LONG[field], finalizers=[])), NOW)
    assert verdict_of(plan) == (Phase.PENDING, "Stalled", "ConfigurationTooLong")
    assert not acts(plan, CreateDriver)
    assert field in plan.message


E2BIG = "failed to create containerd task: exec: argument list too long"


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
@pytest.mark.parametrize("role", ["driver", "purge", "rehearsal"])
def test_what_the_container_runtime_says_of_a_process_that_never_began_is_in_the_message(
    reason: str, role: str
) -> None:
    pod = dataclasses.replace(driver_of(APP, ended=Exit(128, reason, E2BIG, NOW)), role=role)
    problem = end_problem(pod)
    assert problem.reason is Reason.CONTAINER_REFUSED
    assert E2BIG in problem.message
