"""What is said and done about a driver in which state. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.decide.actions import (
    DeleteDriver,
    DeleteExecutor,
    EnsureAgentSecret,
    Plan,
    PublishEvent,
    RecordLaunch,
    RememberTold,
    SetExecutors,
    WriteStatus,
)
from tidegate.decide.plan import decide
from tidegate.model.streaming_app import Phase, StreamingApp
from tidegate.observe.observation import Memory, Observation
from tidegate.observe.pods import Exit, Waiting
from tidegate_spark.protocol import DriverState, Fault, Notice, QueryReport, Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    executor_of,
    launched,
    observe,
    report_of,
    running_driver,
)

APP = launched(app_with())


def waiting(reason: str, container: str = "driver") -> Waiting:
    return Waiting(container, "shop/orders:1", reason, "the kubelet's words")


def settled(o: Observation) -> Observation:
    """Return the observation after its own plan was carried out: the status is what was written."""
    statuses = [a.status for a in decide(o, NOW).actions if isinstance(a, WriteStatus | RecordLaunch)]
    app = msgspec.structs.replace(o.app, status=statuses[0]) if statuses else o.app
    return dataclasses.replace(o, app=app, memory=dataclasses.replace(o.memory, status_written_at=NOW))


def verdict(plan: Plan) -> tuple[Phase | None, str, str]:
    (status,) = [a.status for a in plan.actions if isinstance(a, WriteStatus)]
    (true,) = [c.type for c in status.conditions if c.status == "True"]
    return status.phase, true, plan.reason


POD_STATES: dict[str, tuple[dict[str, Any], tuple[Phase, str, str]]] = {
    "a pod that is pending": ({}, (Phase.STARTING, "Reconciling", "DriverStarting")),
    "an image that does not exist": (
        {"waiting": waiting("ImagePullBackOff")},
        (Phase.STARTING, "Stalled", "ImagePullFailed"),
    ),
    "an image of the init container": (
        {"waiting": waiting("ErrImagePull", "tidegate-runtime")},
        (Phase.STARTING, "Stalled", "ImagePullFailed"),
    ),
    "a missing Secret in env": (
        {"waiting": waiting("CreateContainerConfigError")},
        (Phase.STARTING, "Stalled", "ContainerRefused"),
    ),
    "no node for it": ({"unschedulable": "0/1 nodes."}, (Phase.STARTING, "Stalled", "Unschedulable")),
    "a failed init container": (
        {"init_ended": Exit(1, "Error", "", NOW), "init_name": "tidegate-runtime"},
        (Phase.STARTING, "Stalled", "InitFailed"),
    ),
    "an end with nothing left to do, before the pod has succeeded": (
        {"phase": "Running", "ended": ended_with(Reason.COMPLETED, 0)},
        (Phase.COMPLETED, "Ready", "Completed"),
    ),
    "queries that are refused": (
        {"phase": "Succeeded", "ended": ended_with(Reason.QUERY_REFUSED, 0)},
        (Phase.FAILED, "Stalled", "QueryRefused"),
    ),
    "an exception of the application": (
        {"phase": "Running", "ended": ended_with(Reason.APPLICATION_FAILED, 1, "ValueError")},
        (Phase.FAILED, "Stalled", "ApplicationFailed"),
    ),
    "a main file that is not there": (
        {"phase": "Running", "ended": ended_with(Reason.MAIN_NOT_FOUND, 1)},
        (Phase.FAILED, "Stalled", "MainNotFound"),
    ),
    "a broker that went away": (
        {"phase": "Running", "ended": ended_with(Reason.BROKER_UNAVAILABLE, 75)},
        (Phase.FAILED, "Stalled", "BrokerUnavailable"),
    ),
    "a process killed for its memory": (
        {"phase": "Running", "ended": Exit(137, "OOMKilled", "", NOW)},
        (Phase.FAILED, "Stalled", "OutOfMemory"),
    ),
    "a process that died without a word": (
        {"phase": "Running", "ended": Exit(134, "Error", "Aborted", NOW)},
        (Phase.FAILED, "Stalled", "DriverCrashed"),
    ),
    "a finished application": (
        {"phase": "Succeeded", "ended": ended_with(Reason.COMPLETED, 0)},
        (Phase.COMPLETED, "Ready", "Completed"),
    ),
    "storage of another application": (
        {"phase": "Succeeded", "ended": ended_with(Reason.STORAGE_OWNED, 0)},
        (Phase.FAILED, "Stalled", "StorageOwned"),
    ),
    "a stop from outside": (
        {"phase": "Running", "ended": ended_with(Reason.STOPPED, 143)},
        (Phase.STARTING, "Reconciling", "DriverStarting"),
    ),
    "readiness without the agent's word": (
        {"phase": "Running", "running": True, "ready": True},
        (Phase.RUNNING, "Ready", "Running"),
    ),
}


@pytest.mark.parametrize("name", POD_STATES)
def test_the_state_of_the_pod_is_named(name: str) -> None:
    fields, expected = POD_STATES[name]
    assert verdict(decide(observe(APP, driver=driver_of(APP, **fields)), NOW)) == expected


REPORTS: dict[str, tuple[dict[str, Any], tuple[Phase, str, str]]] = {
    "running": ({"state": DriverState.RUNNING}, (Phase.RUNNING, "Ready", "Running")),
    "starting": ({"state": DriverState.STARTING}, (Phase.STARTING, "Reconciling", "DriverStarting")),
    "stopping": ({"state": DriverState.STOPPING}, (Phase.STOPPING, "Reconciling", "DriverStopping")),
    **{
        f"waiting: {reason.value}": (
            {"state": DriverState.WAITING, "fault": Fault(reason, "so it is")},
            (Phase.STARTING, "Stalled", reason.value),
        )
        for reason in (
            Reason.BUCKET_NOT_FOUND,
            Reason.CREDENTIALS_MISSING,
            Reason.CREDENTIALS_REJECTED,
            Reason.STORAGE_UNAVAILABLE,
            Reason.BROKER_UNAVAILABLE,
        )
    },
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_report_of_the_agent_is_believed(name: str) -> None:
    fields, expected = REPORTS[name]
    driver = running_driver(APP)
    assert verdict(decide(observe(APP, driver=driver, agent=report_of(driver, **fields)), NOW)) == expected


def test_a_crash_stays_named_while_the_next_process_starts_and_is_cleared_when_it_runs() -> None:
    driver = running_driver(APP, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"))
    starting = observe(APP, driver=driver, agent=report_of(driver, DriverState.STARTING))
    running = observe(APP, driver=driver, agent=report_of(driver))
    assert verdict(decide(starting, NOW)) == (Phase.FAILED, "Stalled", "ApplicationFailed")
    assert verdict(decide(running, NOW)) == (Phase.RUNNING, "Ready", "Running")


def test_the_condition_names_exception_and_message() -> None:
    driver = driver_of(
        APP, phase="Running", ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError", "no column x")
    )
    assert decide(observe(APP, driver=driver), NOW).message.startswith("ValueError: no column x.")


def test_a_changed_spec_stops_the_driver() -> None:
    driver = running_driver(APP, spec_hash="another")
    plan = decide(observe(APP, driver=driver), NOW)
    assert (plan.reason, DeleteDriver(driver) in plan.actions) == ("SpecChanged", True)


def test_nothing_is_created_before_the_old_driver_is_gone() -> None:
    driver = running_driver(APP, spec_hash="another", delete_by=NOW + 30)
    plan = decide(settled(observe(APP, driver=driver)), NOW)
    assert (plan.actions, plan.wake_after) == ((), 90.0)


def test_a_driver_whose_node_is_silent_is_named_and_not_replaced() -> None:
    driver = running_driver(APP, delete_by=NOW - 61)
    plan = decide(observe(APP, driver=driver), NOW)
    assert verdict(plan) == (Phase.STOPPING, "Stalled", "DriverNotGone")


def test_an_evicted_driver_is_removed_to_be_replaced() -> None:
    driver = driver_of(APP, phase="Failed", reason="Evicted", message="The node was low on memory.")
    plan = decide(observe(APP, driver=driver), NOW)
    assert (plan.reason, DeleteDriver(driver) in plan.actions) == ("DriverLost", True)


def test_the_driver_of_an_earlier_application_of_the_same_name_is_stopped() -> None:
    driver = running_driver(APP, app_uid="another")
    plan = decide(observe(APP, driver=driver), NOW)
    assert (plan.reason, DeleteDriver(driver) in plan.actions) == ("EarlierDriver", True)


def test_executors_are_rescaled_without_a_restart() -> None:
    app: StreamingApp = launched(app_with({"executor.instances": 3}))
    driver = running_driver(app)
    plan = decide(observe(app, driver=driver, agent=report_of(driver)), NOW)
    assert SetExecutors(driver, 3) in plan.actions
    assert not any(isinstance(a, DeleteDriver) for a in plan.actions)


def test_executors_left_by_an_earlier_process_are_removed_and_working_ones_are_not() -> None:
    driver = running_driver(APP, epoch=2)
    app = launched(app_with(), epoch=2)
    old = executor_of(app, 1, epoch=1)
    dead = executor_of(app, 2, phase="Failed", running=False, created_at=NOW - 99)
    live = executor_of(app, 3)
    plan = decide(observe(app, driver=driver, executors=(old, dead, live)), NOW)
    assert [a.pod for a in plan.actions if isinstance(a, DeleteExecutor)] == [old, dead]


def test_a_secret_that_is_gone_is_made_again() -> None:
    driver = running_driver(APP)
    plan = decide(observe(APP, driver=driver, memory=Memory(secret_missing=True)), NOW)
    assert EnsureAgentSecret() in plan.actions


def test_a_notice_of_the_agent_is_told_once() -> None:
    driver = running_driver(APP)
    notices = (Notice(1, "Renamed", "old"), Notice(2, "CheckpointRedirected", "new", warning=True))
    told = settled(observe(APP, driver=driver, agent=report_of(driver, notices=notices), memory=Memory(told=(1, 1))))
    plan = decide(told, NOW)
    assert plan.actions == (
        PublishEvent("CheckpointRedirected", "new", True, "1/2"),
        RememberTold(1, 2),
    )


def test_an_application_that_commits_nothing_costs_no_write() -> None:
    driver = running_driver(APP)
    still = QueryReport("main", batch_id=7, input_rows_per_second=10.0)
    o = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(still,))))
    slower = QueryReport("main", batch_id=7, input_rows_per_second=0.0)
    plan = decide(dataclasses.replace(o, agent=report_of(driver, queries=(slower,))), NOW + 3600)
    assert (plan.actions, plan.wake_after) == ((), None)


def test_progress_is_written_once_a_minute() -> None:
    driver = running_driver(APP)
    o = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(QueryReport("main", batch_id=7),))))
    further = dataclasses.replace(o, agent=report_of(driver, queries=(QueryReport("main", batch_id=8),)))
    early, due = decide(further, NOW + 20), decide(further, NOW + 60)
    assert (early.actions, early.wake_after) == ((), 40.0)
    (write,) = due.actions
    assert isinstance(write, WriteStatus)
    assert write.status.batch == 8


def test_a_transition_time_stays_while_the_condition_does() -> None:
    driver = driver_of(APP)
    before = settled(observe(APP, driver=driver))
    pulled = observe(before.app, driver=driver_of(APP, waiting=waiting("ErrImagePull")))
    (write,) = [a for a in decide(pulled, NOW + 100).actions if isinstance(a, WriteStatus)]
    times = {c.type: c.last_transition_time.timestamp() for c in write.status.conditions}
    assert times == {"Ready": NOW, "Reconciling": NOW + 100, "Stalled": NOW + 100}


def test_a_driver_that_ran_and_is_not_heard_of_is_not_called_starting() -> None:
    driver = running_driver(APP, ready=True)
    ran = settled(observe(APP, driver=driver))
    silent = dataclasses.replace(ran, driver=dataclasses.replace(driver, ready=False))
    assert verdict(decide(silent, NOW)) == (Phase.RUNNING, "Reconciling", "DriverNotReady")


def test_a_driver_that_has_just_become_ready_is_called_running_once_its_agent_has_told_or_had_the_time_to() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    driver = running_driver(APP, ready=True, ready_at=NOW)
    silent = dataclasses.replace(starting, driver=driver)
    early = decide(silent, NOW + 1)
    assert (early.reason, early.actions, early.wake_after) == ("DriverStarting", (), 9.0)
    assert verdict(decide(silent, NOW + 10))[0] is Phase.RUNNING
    told = dataclasses.replace(silent, agent=report_of(driver))
    assert verdict(decide(told, NOW + 1))[0] is Phase.RUNNING


def test_the_clock_of_a_node_keeps_nobody_waiting() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    ahead = dataclasses.replace(starting, driver=running_driver(APP, ready=True, ready_at=NOW + 3600))
    assert verdict(decide(ahead, NOW))[0] is Phase.RUNNING


def ran(**fields: Any) -> Observation:
    """Return the observation of an application whose driver was seen running, and whose status says so."""
    return settled(observe(APP, driver=running_driver(APP, ready=True, **fields)))


def crashed(
    o: Observation, restarts: int, finished_at: float, reason: Reason = Reason.APPLICATION_FAILED
) -> Observation:
    """Return the observation after a crash, while the kubelet pauses before it starts the driver again."""
    ended = dataclasses.replace(ended_with(reason, 1, "ValueError"), finished_at=finished_at)
    driver = driver_of(o.app, phase="Running", ended=ended, restarts=restarts, waiting=waiting("CrashLoopBackOff"))
    return dataclasses.replace(o, driver=driver, agent=None)


def test_a_driver_that_ran_is_on_its_way_back_after_its_first_crash() -> None:
    assert verdict(decide(crashed(ran(), 0, NOW), NOW)) == (Phase.STARTING, "Reconciling", "ApplicationFailed")


def test_the_first_crash_is_called_the_same_as_long_as_the_next_process_starts() -> None:
    first = settled(crashed(ran(), 0, NOW))
    assert first.driver is not None
    again = dataclasses.replace(first.driver, restarts=1, running=True, ready=False, waiting=None, started_at=NOW + 1)
    plan = decide(dataclasses.replace(first, driver=again, agent=report_of(again, DriverState.STARTING)), NOW + 2)
    assert (plan.reason, [a for a in plan.actions if isinstance(a, WriteStatus | PublishEvent)]) == (
        "ApplicationFailed",
        [],
    )


def test_a_second_crash_without_having_run_in_between_is_a_failure() -> None:
    second = crashed(settled(crashed(ran(), 0, NOW)), 1, NOW + 9)
    assert verdict(decide(second, NOW + 9)) == (Phase.FAILED, "Stalled", "ApplicationFailed")


def test_a_crash_after_having_run_again_is_a_first_one() -> None:
    failed = settled(crashed(settled(crashed(ran(), 0, NOW)), 1, NOW + 9))
    back = settled(dataclasses.replace(failed, driver=running_driver(APP, ready=True, restarts=2)))
    assert verdict(decide(crashed(back, 2, NOW + 90), NOW + 90))[:2] == (Phase.STARTING, "Reconciling")


def test_a_driver_that_never_ran_has_failed_with_its_first_crash() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    assert verdict(decide(crashed(starting, 0, NOW), NOW)) == (Phase.FAILED, "Stalled", "ApplicationFailed")


def test_a_fault_that_needs_a_person_is_a_failure_at_once() -> None:
    assert verdict(decide(crashed(ran(), 0, NOW, Reason.MAIN_NOT_FOUND), NOW)) == (
        Phase.FAILED,
        "Stalled",
        "MainNotFound",
    )


def test_a_driver_whose_agent_goes_before_its_process_is_still_stopping() -> None:
    driver = running_driver(APP)
    stopping = settled(observe(APP, driver=driver, agent=report_of(driver, DriverState.ENDED)))
    plan = decide(dataclasses.replace(stopping, agent=None), NOW + 1)
    assert (plan.reason, plan.actions) == ("DriverStopping", ())


def test_a_driver_that_was_stopped_from_outside_is_started_again_and_not_anew() -> None:
    driver = driver_of(APP, phase="Running", ended=ended_with(Reason.STOPPED, 143))
    assert decide(dataclasses.replace(ran(), driver=driver), NOW).message.endswith("is started again.")


def test_the_first_committed_batch_is_told_at_once() -> None:
    driver = running_driver(APP)
    before = settled(observe(APP, driver=driver, agent=report_of(driver, queries=(QueryReport("main"),))))
    first = dataclasses.replace(before, agent=report_of(driver, queries=(QueryReport("main", batch_id=0),)))
    (write,) = decide(first, NOW + 1).actions
    assert isinstance(write, WriteStatus)
    assert write.status.batch == 0


@pytest.mark.parametrize("reason", [Reason.STORAGE_OWNED, Reason.STORAGE_UNSUITABLE])
def test_storage_that_may_become_usable_is_tried_again_with_growing_pauses(reason: Reason) -> None:
    driver = driver_of(APP, phase="Succeeded", ended=ended_with(reason, 0))
    o = settled(observe(APP, driver=driver))
    assert [decide(o, NOW).wake_after, decide(o, NOW).actions] == [5.0, ()]
    assert DeleteDriver(driver) in decide(o, NOW + 5).actions
    often = dataclasses.replace(o, memory=dataclasses.replace(o.memory, quick_relaunches=9))
    assert decide(often, NOW + 5).wake_after == 290.0


def test_the_pod_of_a_refused_start_goes_without_a_change_of_phase() -> None:
    driver = driver_of(APP, phase="Succeeded", ended=ended_with(Reason.STORAGE_OWNED, 0))
    o = settled(observe(APP, driver=driver))
    plan = decide(dataclasses.replace(o, driver=dataclasses.replace(driver, delete_by=NOW + 1)), NOW + 1)
    assert (plan.reason, plan.actions) == ("StorageOwned", ())


def test_refused_queries_wait_for_a_change_of_the_spec() -> None:
    driver = driver_of(APP, phase="Succeeded", ended=ended_with(Reason.QUERY_REFUSED, 0))
    plan = decide(settled(observe(APP, driver=driver)), NOW + 3600)
    assert (plan.actions, plan.wake_after) == ((), None)


STUCK_EXECUTORS: dict[str, tuple[dict[str, Any], str]] = {
    "an image that can not be pulled": (
        {"waiting": waiting("ErrImagePull", "spark-kubernetes-executor")},
        "Image shop/orders:1",
    ),
    "no node": ({"unschedulable": "0/1 nodes are available."}, "ask for less in spec.executor.resources"),
}


@pytest.mark.parametrize("name", STUCK_EXECUTORS)
@pytest.mark.parametrize(("running", "health"), [(0, "Stalled"), (1, "Ready")])
def test_executors_that_can_not_start_are_named_while_the_driver_runs(name: str, running: int, health: str) -> None:
    fields, words = STUCK_EXECUTORS[name]
    app = launched(app_with({"executor.instances": 2}))
    driver = running_driver(app)
    stuck = executor_of(app, 2, phase="Pending", running=False, **fields)
    agent = report_of(driver, executors_wanted=2, executors_running=running)
    plan = decide(observe(app, driver=driver, executors=(stuck,), agent=agent), NOW)
    assert verdict(plan) == (Phase.RUNNING, health, "ExecutorsMissing")
    (event,) = [a for a in plan.actions if isinstance(a, PublishEvent)]
    assert event.warning
    assert f"with {running} of 2 executors" in event.message
    assert words in event.message


# --- what ready means -------------------------------------------------------------------------------------------------


def test_a_script_whose_queries_do_not_run_yet_is_starting() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    driver = running_driver(APP)
    plan = decide(dataclasses.replace(starting, driver=driver, agent=report_of(driver, ready=False)), NOW)
    assert (plan.rule, plan.reason) == ("wait_for_driver_to_start", "DriverStarting")


def test_a_script_that_fails_before_its_queries_run_fails_again_and_is_not_called_running_in_between() -> None:
    seen = settled(observe(APP, driver=driver_of(APP)))
    phases = []
    for restarts in range(3):
        seen = settled(crashed(seen, restarts, NOW + 60 * restarts, Reason.BROKER_UNAVAILABLE))
        phases.append((seen.app.status.phase, seen.app.status.conditions[2].status))
        assert seen.driver is not None
        again = running_driver(seen.app, restarts=restarts + 1, ended=seen.driver.ended, started_at=NOW + 60 * restarts)
        seen = settled(dataclasses.replace(seen, driver=again, agent=report_of(again, ready=False)))
        phases.append((seen.app.status.phase, seen.app.status.conditions[2].status))
    assert phases == [(Phase.FAILED, "True")] * 6


def test_an_application_that_ran_and_whose_queries_do_not_all_run_stays_running_and_is_not_ready() -> None:
    before = ran()
    assert before.driver is not None
    driver = dataclasses.replace(before.driver, ready=False)
    plan = decide(dataclasses.replace(before, driver=driver, agent=report_of(driver, ready=False)), NOW)
    assert verdict(plan) == (Phase.RUNNING, "Reconciling", "DriverNotReady")


def test_words_of_a_newer_runtime_are_not_taken_for_success() -> None:
    ended = Exit(0, "Completed", '{"reason": "Unheard", "message": "x", "epoch": 1}', NOW)
    plan = decide(observe(APP, driver=driver_of(APP, phase="Succeeded", ended=ended)), NOW)
    assert verdict(plan) == (Phase.FAILED, "Stalled", "UnknownEnd")


@pytest.mark.parametrize("value", [1e300, float("nan"), float("inf"), -5.0])
def test_figures_that_are_none_keep_nothing_from_being_decided(value: float) -> None:
    driver = running_driver(APP)
    query = QueryReport("main", batch_id=3, input_rows_per_second=value, last_commit_time=value)
    plan = decide(observe(APP, driver=driver, agent=report_of(driver, queries=(query,))), NOW)
    (status,) = [a.status for a in plan.actions if isinstance(a, WriteStatus)]
    assert status.input_rows_per_second == 0


def test_a_driver_that_ends_by_itself_before_it_has_run_is_not_called_stopping() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    driver = running_driver(APP)
    ending = dataclasses.replace(starting, driver=driver, agent=report_of(driver, DriverState.ENDED))
    assert decide(ending, NOW).actions == ()


def test_a_crash_is_told_as_a_warning_even_if_the_driver_is_on_its_way_back() -> None:
    (told,) = [a for a in decide(crashed(ran(), 0, NOW), NOW).actions if isinstance(a, PublishEvent)]
    assert told.warning
