"""What is said of executors that end, whose fault it is, and which field is to be corrected. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import Phase
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.pods.executor_ends import executor_end_problem
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_testing.observations import NOW, app_with, executor_of, launched, observe, report_of, running_driver
from tidegate_testing.plans import verdict_of

APP = launched(app_with({"executor.instances": 2}), phase=Phase.RUNNING)
MEMORY = "spec.executor.resources.requests.memory"
WRONG_OPTION = (
    "Picked up options\nUnrecognized VM option 'UseNoGC'\nError: Could not create the Java Virtual Machine.\n"
)
PRESSURE = "The node was low on resource: ephemeral-storage. Threshold quantity: 5Gi, available: 4Gi."
LIMIT = 'Container executor exceeded its local ephemeral storage limit "1Gi".'


def ended(number: int = 1, code: int = 1, word: str = "Error", lines: str = "", **fields: Any) -> PodRecord:
    """Return an executor that ended 10 s ago, 5 s after its start."""
    last = Exit(code, word, lines, NOW - 10)
    known: dict[str, Any] = {"ended": last, "running": False, "phase": "Failed", "created_at": NOW - 15}
    return executor_of(APP, number, **{**known, **fields})


def lacking(*ends: PodRecord, **fields: Any) -> Observation:
    """Return an application that wants two executors and has none, whose driver waits before others are started."""
    driver = running_driver(APP, ready=True)
    known: dict[str, Any] = {"executors_wanted": 2, "executors_running": 0, "executors_ended": len(ends)}
    known |= {"executors_short_since": NOW - 20, "executors_held_until": NOW + 40, **fields}
    return observe(APP, driver=driver, executor_ends=ends, agent=report_of(driver, **known))


def named(pod: PodRecord) -> tuple[str, str]:
    problem = executor_end_problem(pod)
    assert problem is not None
    return problem.reason, problem.message


def test_a_wrong_option_is_named_with_the_exit_code_and_the_last_lines() -> None:
    reason, message = named(ended(lines=WRONG_OPTION))
    assert reason == "ExecutorsFailing"
    assert "Executor pod orders-e1-exec-1 ended by itself (exit code 1)." in message
    assert "Unrecognized VM option 'UseNoGC' | Error: Could not create the Java Virtual Machine." in message
    assert "spec.sparkConf" in message


@pytest.mark.parametrize(("code", "word"), [(137, "OOMKilled"), (1, "OOMKilled"), (52, "Error")])
def test_executors_that_lack_memory_are_told_the_field_that_gives_them_more(code: int, word: str) -> None:
    reason, message = named(ended(code=code, word=word))
    assert (reason, message.endswith(f" Raise {MEMORY}.")) == ("OutOfMemory", True)


def test_a_signal_is_named() -> None:
    assert "(exit code 134, SIGABRT)" in named(ended(code=134))[1]


def test_what_the_kubelet_says_of_a_start_that_failed_is_shown() -> None:
    reason, message = named(ended(code=128, word="StartError", lines='exec: "python3": executable file not found'))
    assert (reason, "(exit code 128, StartError)" in message, '"python3"' in message) == (
        "ExecutorsFailing",
        True,
        True,
    )


def test_a_disk_without_space_is_the_nodes_and_not_the_versions() -> None:
    reason, message = named(ended(code=53, lines="java.io.IOException: No space left on device"))
    assert (reason, "on node node0" in message) == ("DiskFull", True)


def test_only_the_end_of_a_long_output_is_shown() -> None:
    message = named(ended(lines="\n".join(f"line {number} {'x' * 300}" for number in range(50))))[1]
    assert ("line 49" in message, "line 40" in message, len(message) < 1000) == (True, False, True)


@pytest.mark.parametrize(
    ("fields", "reason", "text"),
    [
        ({"disruption": "PreemptionByScheduler"}, "ExecutorsLost", "preempted by a pod of a higher priority"),
        ({"disruption": "DeletionByTaintManager"}, "ExecutorsLost", "its node was tainted"),
        ({"disruption": "EvictionByEvictionAPI"}, "ExecutorsLost", "a node is drained"),
        ({"disruption": "DeletionByPodGC"}, "ExecutorsLost", "its node is gone"),
        ({"disruption": "TerminationByKubelet", "reason": "Evicted", "message": PRESSURE}, "ExecutorsLost", PRESSURE),
        ({"reason": "Terminated", "message": "Node shut down"}, "ExecutorsLost", "(Terminated). Node shut down."),
        ({"ended": Exit(255, "Unknown", "", NOW)}, "ExecutorsLost", "its node node0 restarted"),
    ],
)
def test_what_the_cluster_ends_is_the_clusters_fault(fields: dict[str, Any], reason: str, text: str) -> None:
    reported, message = named(ended(code=143, **fields))
    assert (reported, text in message) == (reason, True), message


def test_a_limit_of_local_storage_is_the_versions_and_the_field_is_named() -> None:
    reason, message = named(ended(code=137, reason="Evicted", message=LIMIT))
    assert (reason, message.startswith("Pod orders-e1-exec-1 was evicted: Container executor exceeded")) == (
        "EphemeralStorageExceeded",
        True,
    )
    assert "Raise spec.executor.resources.limits.ephemeral-storage" in message


@pytest.mark.parametrize("code", [0, 137, 143])
def test_one_that_somebody_deleted_has_not_failed(code: int) -> None:
    assert executor_end_problem(ended(code=code, delete_by=NOW)) is None


def test_one_that_has_done_its_work_has_not_failed() -> None:
    assert executor_end_problem(ended(code=0, phase="Succeeded")) is None


def test_one_that_failed_and_was_deleted_then_has_failed() -> None:
    assert named(ended(code=1, delete_by=NOW))[0] == "ExecutorsFailing"


def test_executors_that_end_again_and_again_are_the_reason_with_the_time_of_the_next_attempt() -> None:
    plan = decide(lacking(ended(1), ended(2, lines=WRONG_OPTION)), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Stalled", "ExecutorsFailing")
    assert "with 0 of 2 executors. Executor pod orders-e1-exec-2 ended by itself (exit code 1)." in plan.message
    assert plan.message.endswith("Others start at 2027-01-15T08:00:40Z.")


def test_an_operator_that_saw_no_end_says_what_the_driver_counted() -> None:
    plan = decide(lacking(executors_ended=7), NOW)
    assert plan.reason == "ExecutorsMissing"
    assert "7 have ended" in plan.message


@pytest.mark.parametrize("until", [1e12, 1e300])
def test_a_time_of_the_next_attempt_that_is_none_is_left_out(until: float) -> None:
    plan = decide(lacking(ended(lines=WRONG_OPTION), executors_held_until=until), NOW)
    assert plan.reason == "ExecutorsFailing"
    assert "Others start" not in plan.message


def test_one_executor_that_is_replaced_at_once_is_no_news() -> None:
    o = lacking(ended(), executors_held_until=0.0, executors_running=1)
    assert decide(o, NOW).reason == "Running"


def test_an_end_long_before_a_shortage_is_not_its_cause() -> None:
    old = ended(created_at=NOW - 49.5)
    o = lacking(dataclasses.replace(old, ended=Exit(1, "Error", "", NOW - 4000)), executors_held_until=0.0)
    agent = o.agent
    assert agent is not None
    late = dataclasses.replace(agent, report=dataclasses.replace(agent.report, executors_short_since=NOW - 90))
    assert decide(dataclasses.replace(o, agent=late), NOW).reason == "ExecutorsMissing"


def test_ends_of_the_process_before_are_not_this_ones() -> None:
    plan = decide(lacking(ended(created_at=NOW - 60), executors_ended=0, executors_held_until=0.0), NOW)
    assert plan.reason == "Running"
