"""What is said and done about a driver in which state. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import Phase, StreamingApp
from tidegate.app.actions import DeleteDriver, DeleteExecutor, EnsureLaunchSecrets, RememberReported, SetExecutors
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.control_protocol import ControlReport
from tidegate_spark.contract.protocol import MOST_NOTICES, DriverState, Fault, Notice
from tidegate_spark.contract.reasons import Reason
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
    waiting,
)
from tidegate_testing.plans import acts, settled, verdict_of

APP = launched(app_with())


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
    "state that would be misread": (
        {"phase": "Succeeded", "ended": ended_with(Reason.STATE_SCHEMA, 0)},
        (Phase.FAILED, "Stalled", "StateSchema"),
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
    assert verdict_of(decide(observe(APP, driver=driver_of(APP, **fields)), NOW)) == expected


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
    assert verdict_of(decide(observe(APP, driver=driver, agent=report_of(driver, **fields)), NOW)) == expected


def test_a_script_that_works_before_it_asks_for_spark_is_not_said_to_be_silent() -> None:
    driver = running_driver(APP)
    starting = report_of(driver, state=DriverState.STARTING)
    assert "has not asked for Spark yet" in decide(observe(APP, driver=driver, agent=starting), NOW).message
    assert "asked for Spark" not in decide(observe(APP, driver=driver), NOW).message


@pytest.mark.parametrize("state", [DriverState.STARTING, DriverState.RUNNING])
def test_a_script_whose_queries_are_in_a_child_process_has_not_started_and_is_told_what_to_do(
    state: DriverState,
) -> None:
    driver = running_driver(APP)
    fault = Fault(Reason.SCRIPT_UNSUPPORTED, "A child process runs queries")
    plan = decide(observe(APP, driver=driver, agent=report_of(driver, state=state, fault=fault, queries=())), NOW)
    assert verdict_of(plan) == (Phase.STARTING, "Stalled", "ScriptUnsupported")
    assert "A child process runs queries. Change the script as the message says" in plan.message
    assert not acts(plan, DeleteDriver)


def test_a_changed_spec_stops_the_driver() -> None:
    driver = running_driver(APP, spec_hash="another")
    plan = decide(observe(APP, driver=driver), NOW)
    assert (plan.reason, DeleteDriver(driver) in plan.actions) == ("SpecChanged", True)


NO_POD: dict[str, Any] = {"sparkConf": {"spark.driver.memory": "64g"}}


@pytest.mark.parametrize(
    ("driver", "phase"),
    [(running_driver(APP, ready=True), Phase.RUNNING), (driver_of(APP), Phase.STARTING)],
    ids=["runs", "starts"],
)
def test_an_edit_of_which_no_pod_can_be_made_stops_nothing_and_is_stalled(driver: PodRecord, phase: Phase) -> None:
    plan = decide(observe(app_with(NO_POD, status=APP.status), driver=driver), NOW)
    assert verdict_of(plan) == (phase, "Stalled", "InvalidSpec")
    assert not acts(plan, DeleteDriver)
    assert "left as it is" in plan.message


def test_a_driver_that_has_ended_makes_room_for_whatever_the_spec_will_be() -> None:
    ended = driver_of(APP, phase="Succeeded", ended=ended_with(Reason.QUERY_REFUSED, 0))
    plan = decide(observe(app_with(NO_POD, status=APP.status), driver=ended), NOW)
    assert acts(plan, DeleteDriver)


def test_nothing_is_created_before_the_old_driver_is_gone() -> None:
    driver = running_driver(APP, spec_hash="another", delete_by=NOW + 30)
    plan = decide(settled(observe(APP, driver=driver)), NOW)
    assert (plan.actions, plan.wake_after) == ((), 90.0)


def test_a_driver_that_has_to_leave_a_tainted_node_is_not_said_to_stop_at_a_boundary_for_sure() -> None:
    driver = running_driver(APP, delete_by=NOW + 30, disruption="DeletionByTaintManager")
    plan = decide(observe(APP, driver=driver), NOW)
    assert (verdict_of(plan), plan.wake_after) == ((Phase.STOPPING, "Reconciling", "NodeTainted"), 90.0)
    assert f"node {driver.node}, which was tainted" in plan.message
    assert "node.kubernetes.io/out-of-service" in plan.message


def test_a_driver_whose_node_is_silent_is_named_and_not_replaced() -> None:
    driver = running_driver(APP, delete_by=NOW - 61)
    plan = decide(observe(APP, driver=driver), NOW)
    assert verdict_of(plan) == (Phase.STOPPING, "Stalled", "DriverNotGone")
    assert f"Node {driver.node} does not confirm" in plan.message


@pytest.mark.parametrize("finished", [{"phase": "Failed", "running": False}, {"node": ""}])
def test_of_a_driver_that_only_finalizers_keep_these_are_named_and_its_node_is_left_alone(
    finished: dict[str, Any],
) -> None:
    driver = dataclasses.replace(
        running_driver(APP, delete_by=NOW - 61), finalizers=("example.com/audit", "example.com/held"), **finished
    )
    plan = decide(observe(APP, driver=driver), NOW)
    assert verdict_of(plan) == (Phase.STOPPING, "Stalled", "DriverNotGone")
    assert "keep it: example.com/audit, example.com/held." in plan.message
    assert "kubectl taint" not in plan.message


def test_of_a_driver_that_never_had_a_node_none_is_to_be_tainted() -> None:
    driver = dataclasses.replace(running_driver(APP, delete_by=NOW - 61), node="")
    plan = decide(observe(APP, driver=driver), NOW)
    assert verdict_of(plan) == (Phase.STOPPING, "Stalled", "DriverNotGone")
    assert f"Pod {driver.name}, which never had a node," in plan.message


def test_an_evicted_driver_is_removed_to_be_replaced() -> None:
    driver = driver_of(
        APP, phase="Failed", reason="Evicted", disruption="TerminationByKubelet", message="The node was low on memory."
    )
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
    # What an agent does not take ends a plan, and is tried again: nothing is to come after it but words.
    assert [type(action) for action in plan.actions[-2:]] == [SetExecutors, PublishEvent]
    assert SetExecutors(driver, 3) in plan.actions
    assert not acts(plan, DeleteDriver)


def test_executors_left_by_an_earlier_process_are_removed_and_working_ones_are_not() -> None:
    driver = running_driver(APP, epoch=2)
    app = launched(app_with(), epoch=2)
    old = executor_of(app, 1, epoch=1)
    dead = executor_of(app, 2, phase="Failed", running=False, created_at=NOW - 99)
    live = executor_of(app, 3)
    plan = decide(observe(app, driver=driver, executors=(old, dead, live)), NOW)
    assert [a.pod for a in plan.actions if isinstance(a, DeleteExecutor)] == [old, dead]


MOUNTING = {"phase": "Pending", "running": False, "node": "node0", "created_at": NOW - 60}
STARTING = [
    (MOUNTING, 1),
    ({**MOUNTING, "created_at": NOW - 10}, 0),
    ({**MOUNTING, "node": ""}, 0),
    ({**MOUNTING, "waiting": waiting("ErrImagePull")}, 0),
    ({**MOUNTING, "delete_by": NOW + 30}, 0),
]


@pytest.mark.parametrize(("pod", "times"), STARTING)
def test_secrets_that_somebody_removed_before_a_pod_had_them_are_put_back(pod: dict[str, Any], times: int) -> None:
    for driver, executors in (
        (driver_of(APP, **pod), ()),
        (running_driver(APP), (executor_of(APP, 1, **pod),)),
    ):
        plan = decide(observe(APP, driver=driver, executors=executors), NOW)
        assert [action for action in plan.actions if action == EnsureLaunchSecrets(1)] == [
            EnsureLaunchSecrets(1)
        ] * times


def test_secrets_of_a_driver_of_another_key_are_not_made_under_it() -> None:
    driver = running_driver(APP, agent_secret="orders-agent-1-another")
    plan = decide(observe(APP, driver=driver, executors=(executor_of(APP, 1, **MOUNTING),)), NOW)
    assert not [action for action in plan.actions if isinstance(action, EnsureLaunchSecrets)]


@pytest.mark.parametrize(
    ("secret", "said"), [("orders-agent-1-another", "orders-agent-1-another"), ("", "without keys")]
)
def test_a_driver_of_another_key_goes_on_and_the_resource_says_when_it_is_reached_again(secret: str, said: str) -> None:
    driver = running_driver(APP, agent_secret=secret, ready=True, ready_time=NOW - 60)
    plan = decide(observe(APP, driver=driver), NOW)  # its agent does not have to be asked for that
    assert plan.reason == Reason.AGENT_UNREACHABLE
    assert said in plan.message
    assert "spec.restartNonce" in plan.message
    assert not acts(plan, DeleteDriver)


@pytest.mark.parametrize("change", [{"suspend": True}, {"restartNonce": 1}])
def test_a_driver_of_another_key_is_stopped_when_somebody_asks_for_it(change: dict[str, Any]) -> None:
    driver = running_driver(APP, agent_secret="orders-agent-1-another", ready=True, ready_time=NOW - 60)
    asked = app_with(change, status=APP.status)
    plan = decide(observe(asked, driver=driver, silence="it was launched with another key"), NOW)
    assert acts(plan, DeleteDriver)


def test_a_notice_of_the_agent_is_told_once() -> None:
    driver = running_driver(APP)
    notices = (Notice(1, "Renamed", "old"), Notice(2, "CheckpointRedirected", "new", warning=True))
    reported = settled(
        observe(APP, driver=driver, agent=report_of(driver, notices=notices), memory=ProcessState(reported=(1, 1)))
    )
    plan = decide(reported, NOW)
    assert plan.actions == (
        PublishEvent(Reason.CHECKPOINT_REDIRECTED, "new", True, "1/2"),
        RememberReported(1, 2),
    )


def test_of_thousands_of_notices_no_more_are_told_than_a_runtime_ever_has() -> None:
    """Each is an event to be built, or a line of the log that one was withheld: they hold up everybody's decisions."""
    driver = running_driver(APP)
    notices = tuple(Notice(number, "Renamed", f"old {number}") for number in range(1, 8_001))
    plan = decide(settled(observe(APP, driver=driver, agent=report_of(driver, notices=notices))), NOW)
    assert sum(isinstance(action, PublishEvent) for action in plan.actions) == MOST_NOTICES
    assert RememberReported(1, MOST_NOTICES) in plan.actions


def test_a_driver_that_ran_and_is_not_heard_of_is_not_called_starting() -> None:
    driver = running_driver(APP, ready=True)
    ran = settled(observe(APP, driver=driver))
    silent = dataclasses.replace(ran, driver=dataclasses.replace(driver, ready=False))
    assert verdict_of(decide(silent, NOW)) == (Phase.RUNNING, "Reconciling", "DriverNotReady")


def test_a_driver_that_has_just_become_ready_is_called_running_once_its_agent_has_told_or_had_the_time_to() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    driver = running_driver(APP, ready=True, ready_time=NOW)
    silent = dataclasses.replace(starting, driver=driver)
    early = decide(silent, NOW + 1)
    assert (early.reason, early.actions, early.wake_after) == ("DriverStarting", (), 9.0)
    assert verdict_of(decide(silent, NOW + 10))[0] is Phase.RUNNING
    reported = dataclasses.replace(silent, agent=report_of(driver))
    assert verdict_of(decide(reported, NOW + 1))[0] is Phase.RUNNING


def test_the_clock_of_a_node_keeps_nobody_waiting() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    ahead = dataclasses.replace(starting, driver=running_driver(APP, ready=True, ready_time=NOW + 3600))
    assert verdict_of(decide(ahead, NOW))[0] is Phase.RUNNING


def test_a_driver_whose_agent_goes_before_its_process_is_still_stopping() -> None:
    driver = running_driver(APP)
    stopping = settled(observe(APP, driver=driver, agent=report_of(driver, DriverState.ENDED)))
    plan = decide(dataclasses.replace(stopping, agent=None), NOW + 1)
    assert (plan.reason, plan.actions) == ("DriverStopping", ())


STUCK_EXECUTORS: dict[str, tuple[dict[str, Any], str]] = {
    "an image that cannot be pulled": (
        {"waiting": waiting("ErrImagePull", "spark-kubernetes-executor")},
        "Image shop/orders:1",
    ),
    "no node": ({"unschedulable": "0/1 nodes are available."}, "lower spec.executor.resources.requests"),
}


@pytest.mark.parametrize("name", STUCK_EXECUTORS)
@pytest.mark.parametrize(("running", "health"), [(0, "Stalled"), (1, "Ready")])
def test_executors_that_can_not_start_are_named_while_the_driver_runs(name: str, running: int, health: str) -> None:
    fields, message = STUCK_EXECUTORS[name]
    app = launched(app_with({"executor.instances": 2}))
    driver = running_driver(app)
    stuck = executor_of(app, 2, phase="Pending", running=False, **fields)
    agent = report_of(driver, executors_wanted=2, executors_running=running)
    plan = decide(observe(app, driver=driver, executors=(stuck,), agent=agent), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, health, "ExecutorsMissing")
    (event,) = [a for a in plan.actions if isinstance(a, PublishEvent)]
    assert event.warning
    assert f"with {running} of 2 executors" in event.message
    assert message in event.message


def test_a_script_whose_queries_do_not_run_yet_is_starting() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    driver = running_driver(APP)
    plan = decide(dataclasses.replace(starting, driver=driver, agent=report_of(driver, ready=False)), NOW)
    assert (plan.rule, plan.reason) == ("wait_for_driver_to_start", "DriverStarting")


def test_an_application_that_ran_and_whose_queries_do_not_all_run_stays_running_and_is_not_ready() -> None:
    before = settled(observe(APP, driver=running_driver(APP, ready=True)))
    assert before.driver is not None
    driver = dataclasses.replace(before.driver, ready=False)
    plan = decide(dataclasses.replace(before, driver=driver, agent=report_of(driver, ready=False)), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Reconciling", "DriverNotReady")


def test_a_driver_that_ends_by_itself_before_it_has_run_is_not_called_stopping() -> None:
    starting = settled(observe(APP, driver=driver_of(APP)))
    driver = running_driver(APP)
    ending = dataclasses.replace(starting, driver=driver, agent=report_of(driver, DriverState.ENDED))
    assert decide(ending, NOW).actions == ()


def test_an_application_that_a_message_paused_is_ready_and_says_so() -> None:
    driver = running_driver(APP, ready=True)
    agent = report_of(driver, control=ControlReport(paused=True))
    assert verdict_of(decide(observe(APP, driver=driver, agent=agent), NOW)) == (Phase.RUNNING, "Ready", "Paused")
