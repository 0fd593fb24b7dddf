"""Executors that end at once, on real nodes: why, with which field, after which pauses, and what an upgrade does.

What the kubelet writes of ends, tidegate.api.foreign_text and the rules of executors' ends read: their contract.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-endings"
OPTION = "spark.executor.extraJavaOptions"
# Of options that a JVM does not know Spark has it take no notice: this one it knows.
WRONG_OPTION: dict[str, Any] = {
    "sparkConf": {
        OPTION: "-javaagent:/opt/nowhere.jar",
        # As long as Spark waits for first executors there is no context that could be asked for fewer: one a second.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "3s",
    }
}
DISK: dict[str, Any] = {
    "executor": {
        "resources": {"limits": {"ephemeral-storage": "1Mi"}},
        "podTemplate": {
            "spec": {
                "initContainers": [
                    {
                        "name": "fill",
                        "image": "the application's",
                        "command": ["sh", "-c", "head -c 64m /dev/zero > /scratch/zeros"],
                        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                        # As the namespace's Pod Security level wants it.
                        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    }
                ],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            }
        },
    }
}


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    yield NAMESPACE
    world.delete_apps(NAMESPACE)


def named(world: World, name: str, reason: str, message: str = "", other_than: str = "") -> dict[str, Any]:
    """Return the condition Ready once it has a reason, and words in its message, which is not the one named."""
    found: dict[str, Any] = {}

    def is_named() -> bool:
        ready = world.kubectl.condition(world.get_app(name, NAMESPACE), "Ready")
        assert ready.get("reason") == reason, ready
        assert message in ready["message"] != other_than, ready
        found.update(ready)
        return True

    wait_for(f"{name} to be {reason}", is_named, timeout=400, interval=1)
    return found


def newest_executor(world: World, name: str) -> int:
    """Return the highest number that an executor ever had, 0 if there was none.

    The events of a pod outlive it: between two attempts there is often none.
    """
    pods = [pod["metadata"]["name"] for pod in world.kubectl.list("pods", NAMESPACE)]
    pods += [event["involvedObject"]["name"] for event in world.kubectl.list("events", NAMESPACE)]
    numbers = [re.fullmatch(rf"{name}-.*-exec-(\d+)", pod) for pod in pods]
    return max((int(number[1]) for number in numbers if number is not None), default=0)


def test_a_wrong_option_is_named_with_the_last_lines_and_few_pods_are_made(world: World, namespace: str) -> None:
    world.kubectl.apply(world.app("option", namespace, main="script:counting.py", spec=WRONG_OPTION))
    # Between two pauses there is no next time; the pauses grow, so that there is one for longer and longer.
    ready = named(world, "option", "ExecutorsFailing", "Others start at")
    assert "/opt/nowhere.jar" in ready["message"], ready
    assert "exit code 1" in ready["message"], ready
    known = newest_executor(world, "option")
    named(world, "option", "ExecutorsFailing", "Others start at", other_than=ready["message"])
    # One attempt lies between them. Spark makes one a second, until the runtime, which looks as often, has it stop.
    assert newest_executor(world, "option") - known < 10


@pytest.mark.long
def test_a_limit_of_local_storage_is_named_with_its_field(world: World, namespace: str) -> None:
    app = world.app("disk", namespace, main="script:counting.py", spec=DISK)
    containers = app["spec"]["executor"]["podTemplate"]["spec"]["initContainers"]
    containers[0]["image"] = app["spec"]["application"]["image"]
    world.kubectl.apply(app)
    ready = named(world, "disk", "EphemeralStorageExceeded")
    assert "spec.executor.resources.limits.ephemeral-storage" in ready["message"], ready


@pytest.mark.long
def test_executors_whose_heap_is_too_small_are_named_with_the_field_of_their_memory(
    world: World, namespace: str
) -> None:
    world.kubectl.apply(world.app("hungry", namespace, main="script:hungry.py"))
    ready = named(world, "hungry", "OutOfMemory")
    assert "spec.executor.resources.requests.memory" in ready["message"], ready


@pytest.mark.long
def test_an_upgrade_to_such_executors_is_rolled_back_within_minutes(world: World, namespace: str) -> None:
    upgrade = {"stableBatches": 1, "timeoutSeconds": 3600}
    world.kubectl.apply(world.app("edited", namespace, main="script:counting.py", spec={"upgrade": upgrade}))

    def is_stable() -> bool:
        assert world.status("edited", namespace).get("lastStable"), world.status("edited", namespace)
        return True

    wait_for("the first version to be stable", is_stable, timeout=600)
    world.kubectl.patch("sapp", "edited", namespace, {"spec": WRONG_OPTION})

    def is_undone() -> bool:
        status = world.status("edited", namespace)
        assert (status.get("upgrade", {}).get("phase"), status["phase"]) == ("RolledBack", "Running"), status
        return True

    wait_for("the edit to be undone, long before its timeout", is_undone, timeout=600, interval=1)
    record = world.status("edited", namespace)["upgrade"]
    assert record["reason"] == "ExecutorsFailing", record
    assert "/opt/nowhere.jar" in record["message"], record


@pytest.mark.long
def test_an_executor_that_somebody_deletes_is_replaced_and_is_no_fault(world: World, namespace: str) -> None:
    world.kubectl.apply(world.app("deleted", namespace, main="script:counting.py"))

    def runs(more_than: int) -> bool:
        status = world.status("deleted", namespace)
        assert status.get("executors", {}).get("running") == 1, status
        assert newest_executor(world, "deleted") > more_than
        return True

    wait_for("an executor", lambda: runs(0), timeout=600, interval=1)
    first = newest_executor(world, "deleted")
    (pod,) = [
        each["metadata"]["name"]
        for each in world.kubectl.list("pods", NAMESPACE)
        if each["metadata"]["name"].startswith("deleted") and each["metadata"]["name"].endswith(f"-exec-{first}")
    ]
    world.kubectl.delete("pod", pod, NAMESPACE)
    wait_for("another executor", lambda: runs(first), timeout=300, interval=1)
    assert world.operator_crashes() == []
