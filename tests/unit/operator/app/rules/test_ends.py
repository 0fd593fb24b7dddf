"""What is said and done about a driver that ended, and while the next process starts. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import Phase
from tidegate.app.actions import DeleteDriver, WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    deleted,
    driver_of,
    ended_with,
    launched,
    observe,
    report_of,
    running_driver,
    waiting,
)
from tidegate_testing.plans import settled, verdict_of

APP = launched(app_with())


def ran(**fields: Any) -> Observation:
    """Return the observation of an application whose driver was seen running, and whose status says so."""
    return settled(observe(APP, driver=running_driver(APP, ready=True, **fields)))


def crashed(
    o: Observation, restarts: int, completion_time: float, reason: Reason = Reason.APPLICATION_FAILED
) -> Observation:
    """Return the observation after a crash, while the kubelet pauses before it starts the driver again."""
    ended = dataclasses.replace(ended_with(reason, 1, "ValueError"), completion_time=completion_time)
    driver = driver_of(o.app, phase="Running", ended=ended, restarts=restarts, waiting=waiting("CrashLoopBackOff"))
    return dataclasses.replace(o, driver=driver, agent=None)


def test_a_driver_that_ran_is_on_its_way_back_after_its_first_crash() -> None:
    assert verdict_of(decide(crashed(ran(), 0, NOW), NOW)) == (Phase.STARTING, "Reconciling", "ApplicationFailed")


def test_the_first_crash_is_called_the_same_as_long_as_the_next_process_starts() -> None:
    first = settled(crashed(ran(), 0, NOW))
    assert first.driver is not None
    again = dataclasses.replace(first.driver, restarts=1, running=True, ready=False, waiting=None, start_time=NOW + 1)
    plan = decide(dataclasses.replace(first, driver=again, agent=report_of(again, DriverState.STARTING)), NOW + 2)
    assert (plan.reason, [a for a in plan.actions if isinstance(a, WriteStatus | PublishEvent)]) == (
        "ApplicationFailed",
        [],
    )


def test_a_second_crash_without_having_run_in_between_is_a_failure() -> None:
    second = crashed(settled(crashed(ran(), 0, NOW)), 1, NOW + 9)
    assert verdict_of(decide(second, NOW + 9)) == (Phase.FAILED, "Stalled", "ApplicationFailed")


def test_a_crash_after_having_run_again_is_a_first_one() -> None:
    failed = settled(crashed(settled(crashed(ran(), 0, NOW)), 1, NOW + 9))
    back = settled(dataclasses.replace(failed, driver=running_driver(APP, ready=True, restarts=2)))
    assert verdict_of(decide(crashed(back, 2, NOW + 90), NOW + 90))[:2] == (Phase.STARTING, "Reconciling")


def test_a_driver_that_never_ran_has_failed_with_its_first_crash() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    assert verdict_of(decide(crashed(starting, 0, NOW), NOW)) == (Phase.FAILED, "Stalled", "ApplicationFailed")


def test_a_fault_that_needs_a_person_is_a_failure_at_once() -> None:
    assert verdict_of(decide(crashed(ran(), 0, NOW, Reason.MAIN_NOT_FOUND), NOW)) == (
        Phase.FAILED,
        "Stalled",
        "MainNotFound",
    )


def test_a_crash_stays_named_while_the_next_process_starts_and_is_cleared_when_it_runs() -> None:
    driver = running_driver(APP, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"))
    starting = observe(APP, driver=driver, agent=report_of(driver, DriverState.STARTING))
    running = observe(APP, driver=driver, agent=report_of(driver))
    assert verdict_of(decide(starting, NOW)) == (Phase.FAILED, "Stalled", "ApplicationFailed")
    assert verdict_of(decide(running, NOW)) == (Phase.RUNNING, "Ready", "Running")


def test_a_crash_is_told_as_a_warning_even_if_the_driver_is_on_its_way_back() -> None:
    (events,) = [a for a in decide(crashed(ran(), 0, NOW), NOW).actions if isinstance(a, PublishEvent)]
    assert events.warning


def test_a_driver_that_was_stopped_from_outside_is_started_again_and_not_anew() -> None:
    driver = driver_of(APP, phase="Running", ended=ended_with(Reason.STOPPED, 143))
    assert decide(dataclasses.replace(ran(), driver=driver), NOW).message.endswith("restarts.")


def test_the_condition_names_exception_and_message() -> None:
    driver = driver_of(
        APP, phase="Running", ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError", "no column x")
    )
    assert decide(observe(APP, driver=driver), NOW).message.startswith("ValueError: no column x.")


def test_a_script_that_fails_before_its_queries_run_fails_again_and_is_not_called_running_in_between() -> None:
    seen = settled(observe(APP, driver=driver_of(APP)))
    phases = []
    for restarts in range(3):
        seen = settled(crashed(seen, restarts, NOW + 60 * restarts, Reason.BROKER_UNAVAILABLE))
        phases.append((seen.app.status.phase, seen.app.status.conditions[2].status))
        assert seen.driver is not None
        again = running_driver(seen.app, restarts=restarts + 1, ended=seen.driver.ended, start_time=NOW + 60 * restarts)
        seen = settled(dataclasses.replace(seen, driver=again, agent=report_of(again, ready=False)))
        phases.append((seen.app.status.phase, seen.app.status.conditions[2].status))
    assert phases == [(Phase.FAILED, "True")] * 6


@pytest.mark.parametrize("reason", [Reason.STORAGE_OWNED, Reason.STORAGE_UNSUITABLE])
def test_storage_that_may_become_usable_is_tried_again_with_growing_pauses(reason: Reason) -> None:
    driver = driver_of(APP, phase="Succeeded", ended=ended_with(reason, 0))
    o = settled(observe(APP, driver=driver))
    assert [decide(o, NOW).wake_after, decide(o, NOW).actions] == [5.0, ()]
    assert DeleteDriver(driver) in decide(o, NOW + 5).actions
    often = dataclasses.replace(o, memory=dataclasses.replace(o.memory, quick_relaunches=9))
    assert decide(often, NOW + 5).wake_after == 290.0


@pytest.mark.parametrize("off", [3600, -3600])
def test_storage_is_tried_again_after_its_pause_although_a_clock_is_wrong(off: float) -> None:
    late = dataclasses.replace(ended_with(Reason.STORAGE_OWNED, 0), completion_time=NOW + off)
    driver = driver_of(APP, phase="Succeeded", ended=late)
    o = settled(observe(APP, driver=driver, memory=ProcessState(launched_at=NOW - 4)))
    assert (decide(o, NOW).actions, decide(o, NOW).wake_after) == ((), 6.0)
    assert DeleteDriver(driver) in decide(o, NOW + 6).actions


def test_the_pod_of_a_refused_start_goes_without_a_change_of_phase() -> None:
    driver = driver_of(APP, phase="Succeeded", ended=ended_with(Reason.STORAGE_OWNED, 0))
    o = settled(observe(APP, driver=driver))
    plan = decide(dataclasses.replace(o, driver=dataclasses.replace(driver, delete_by=NOW + 1)), NOW + 1)
    assert (plan.reason, plan.actions) == ("StorageOwned", ())


def test_refused_queries_wait_for_a_change_of_the_spec() -> None:
    driver = driver_of(APP, phase="Succeeded", ended=ended_with(Reason.QUERY_REFUSED, 0))
    plan = decide(settled(observe(APP, driver=driver)), NOW + 3600)
    assert (plan.actions, plan.wake_after) == ((), None)


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_message_without_a_reason_holds_nothing_up(code: int, is_deleted: bool) -> None:
    """Whatever a program writes there, the runtime or another one: no condition has an empty reason."""
    ended = Exit(code, "Error", '{"reason": "", "message": "x", "epoch": 1}', NOW)
    driver = driver_of(APP, running=False, ready=False, phase="Succeeded" if code == 0 else "Failed", ended=ended)
    plan = decide(observe(deleted(APP) if is_deleted else APP, driver=driver), NOW)
    assert plan.reason == ("DriverStopping" if is_deleted else "Unknown")


def test_words_of_a_newer_runtime_are_not_taken_for_success() -> None:
    ended = Exit(0, "Completed", '{"reason": "Unheard", "message": "x", "epoch": 1}', NOW)
    plan = decide(observe(APP, driver=driver_of(APP, phase="Succeeded", ended=ended)), NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "Unknown")
    unheard = "The runtime reports Unheard, a reason that this operator does not know: x. Upgrade the operator."
    assert plan.message.endswith(unheard)


def test_a_reason_that_is_no_word_is_not_repeated() -> None:
    ended = Exit(0, "Completed", '{"reason": "See http://x.example/\\u202e now", "message": "x", "epoch": 1}', NOW)
    plan = decide(observe(APP, driver=driver_of(APP, phase="Succeeded", ended=ended)), NOW)
    assert "The runtime reports Seehttpxexamplenow, a reason" in plan.message


@pytest.mark.parametrize("of_another_form", ['"reason": ["Completed"]', '"version": 2, "reason": "Completed"'])
def test_a_termination_message_of_another_form_is_not_taken_for_success(of_another_form: str) -> None:
    ended = Exit(0, "Completed", f'{{{of_another_form}, "message": "x", "epoch": 1}}', NOW)
    plan = decide(observe(APP, driver=driver_of(APP, phase="Succeeded", ended=ended)), NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "UnknownTermination")
