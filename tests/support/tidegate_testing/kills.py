"""Kills what takes part in an application on a real cluster: pods, and a driver's JVM. Runs kubectl."""

from typing import Any

from devcluster import tools
from devcluster.demo.kubernetes import CommandError, Kubernetes
from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, World

AT_ONCE = ("--force", "--grace-period=0", "--ignore-not-found", "--wait=false")
GENEROUS = 600.0
_KILLED = "exit code 137"
"""What is said of a command that ends with the container in which it killed the first process."""


def selects(app: str, role: str) -> str:
    """Return the selector of an application's pods with a role."""
    return f"tidegate.dev/app={app},tidegate.dev/role={role}"


def kill_pods(world: World, namespace: str, selector: str) -> bool:
    """Take pods away at once; return whether there was one."""
    return "deleted" in world.kubectl.run("delete", "pod", "-n", namespace, "-l", selector, *AT_ONCE)


def kill_operators(world: World) -> bool:
    """Take the leader and the standby away at once."""
    return kill_pods(world, OPERATOR_NAMESPACE, SELECTOR)


def kill_driver(world: World, namespace: str, app: str) -> bool:
    """Take an application's driver pod away at once."""
    return kill_pods(world, namespace, selects(app, "driver"))


def kill_executors(world: World, namespace: str, app: str) -> bool:
    """Take an application's executors away at once; a driver that is away itself has none."""
    return kill_pods(world, namespace, selects(app, "executor"))


def kill_jvm(world: World, namespace: str, app: str) -> None:
    """Kill Spark in the driver's container, as soon as it runs, and wait until the kubelet has started it again.

    SIGKILL: nothing can be finished or reported.
    """
    kubectl, pod = world.kubectl, f"{app}-driver"
    shell = Kubernetes(kubectl.binary, tools.program("helm"), kubectl.kubeconfig)

    def kill() -> dict[str, Any]:
        found = kubectl.get("pod", pod, namespace)
        assert found is not None, f"{pod} is not there"
        try:
            shell.kill_process(pod, namespace, "driver", "java")
        except CommandError as failed:
            # The process that kills lives in the container that ends by it; anything else is a container without JVM.
            if _KILLED not in str(failed):
                raise AssertionError(str(failed)) from failed
        return found

    before = wait_for(f"the JVM of {pod}", kill, GENEROUS, 0.5)

    def is_another() -> bool:
        now = kubectl.get("pod", pod, namespace)
        assert now is not None, f"{pod} is not there"
        return now["metadata"]["uid"] != before["metadata"]["uid"] or _restarts(now) > _restarts(before)

    wait_for(f"another process in {pod}", is_another, GENEROUS, 0.5)


def _restarts(pod: dict[str, Any]) -> int:
    return sum(status["restartCount"] for status in pod["status"].get("containerStatuses", []))
