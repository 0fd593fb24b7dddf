"""A driver that the scheduler ends for somebody else's pod, executors that are evicted, and one that does not go.

The urgent pod wants no driver beside it on its node, and has the higher priority: so exactly the driver is preempted,
on a node of any size.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = pytest.mark.long  # tests/unit/operator/app/rules/test_disruptions.py has the rules

NAMESPACE, NAME, URGENT = f"{PREFIX}-disruptions", "yielding", "urgent"
LOW = f"{PREFIX}-low"
GENEROUS = 600.0


@pytest.fixture(scope="module")
def running(world: World) -> Iterator[World]:
    """An application of a low priority runs."""
    world.make_namespace(NAMESPACE)
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": LOW}, "value": -10}
    world.kubectl.apply(low)
    spec = {"podTemplate": {"spec": {"priorityClassName": LOW}}}
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="script:counting.py", spec=spec))
    try:
        runs_beyond(world, 0)
        yield world
    finally:
        world.kubectl.run("delete", "pod", URGENT, "-n", NAMESPACE, "--ignore-not-found", timeout=120)
        world.release_pods(NAMESPACE)
        world.delete_apps(NAMESPACE)
        world.kubectl.run("delete", "priorityclass", LOW, "--ignore-not-found")


def runs_beyond(world: World, batch: int) -> int:
    """Return the batch that the status has once that is beyond another, while the application is Ready."""

    def runs() -> int:
        app = world.get_app(NAME, NAMESPACE)
        ready = world.kubectl.condition(app, "Ready")
        assert (ready.get("status"), app["status"].get("batch", -1) > batch) == ("True", True), app["status"]
        return int(app["status"]["batch"])

    return wait_for(f"a batch after {batch}", runs, GENEROUS)


def executors(world: World) -> list[str]:
    """Return the names of the executor pods that are to stay."""
    found = world.kubectl.list("pods", NAMESPACE, f"tidegate.dev/app={NAME},tidegate.dev/role=executor")
    return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]


def take_the_place_of_the_driver(world: World) -> None:
    """Have an urgent pod take the node from the driver."""
    selector = {"matchLabels": {"tidegate.dev/app": NAME, "tidegate.dev/role": "driver"}}
    alone = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    world.kubectl.apply(world.somebodys_pod(URGENT, NAMESPACE, ["sleep", "3600"], affinity=affinity))


def test_a_driver_that_is_preempted_says_so_and_continues_when_there_is_room(running: World) -> None:
    batch = running.status(NAME, NAMESPACE)["batch"]
    take_the_place_of_the_driver(running)
    said = Said("DriverLost", ("was preempted by a pod of a higher priority",))
    await_reasons(running, NAMESPACE, {NAME: said}, GENEROUS)
    running.kubectl.run("delete", "pod", URGENT, "-n", NAMESPACE, timeout=120)
    assert runs_beyond(running, batch) > batch
    # It is no failure of the application's.
    assert "recentFailureTimes" not in running.status(NAME, NAMESPACE).get("restarts", {})


def test_executors_that_are_evicted_again_and_again_say_so_and_others_follow(running: World) -> None:
    """The first ones are followed by others at once; then there is a pause, in which one reads why."""
    batch = running.status(NAME, NAMESPACE)["batch"]

    def said_while_all_are_evicted() -> dict[str, Any]:
        for name in executors(running):
            running.evict(name, NAMESPACE)
        ready = running.kubectl.condition(running.get_app(NAME, NAMESPACE), "Ready")
        assert ready["reason"] == "ExecutorsLost", ready
        return ready

    ready = wait_for("the reason", said_while_all_are_evicted, GENEROUS, interval=0.5)
    assert "was evicted, as when a node is drained" in ready["message"], ready
    assert runs_beyond(running, batch) > batch


def test_an_application_whose_executor_does_not_go_is_not_gone_and_says_which_pod_that_is(running: World) -> None:
    """Whatever holds the pod: here a finalizer of somebody's, elsewhere a node that does not answer."""
    (name,) = executors(running)
    running.hold(name, NAMESPACE)
    running.kubectl.delete("sapp", NAME, NAMESPACE)
    await_reasons(running, NAMESPACE, {NAME: Said("ExecutorsStopping", ("The executors are deleted.",))}, GENEROUS)
    await_reasons(running, NAMESPACE, {NAME: Said("PodNotGone", (name, "metadata.finalizers keep it"))}, GENEROUS)
    running.release_pods(NAMESPACE)
    wait_for("the end of the application", lambda: running.kubectl.get("sapp", NAME, NAMESPACE) is None, GENEROUS)
