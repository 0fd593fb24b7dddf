"""The autoscaler on a real cluster: it follows a step of the load up and down, and the application runs on.

Advice is asked for numbers that flow in; each takes an executor 60 ms. A few a second are work for one executor, many
are not. The step is one of the work that each row takes.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.tally import Tallies, Tally, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-autoscaling"
WORK = 0.06
FEW, MANY = 6.0, 40.0
"""Numbers a second: 0.36 and 2.4 cores of an executor that has one."""
QUICK = {
    "minExecutors": 1,
    "maxExecutors": 3,
    "window": "30s",
    "stabilization": "10s",
    "catchUp": "2m",
    "scaleDown": {"interval": "1m", "maxPercent": 100},
}
SPEC: dict[str, Any] = {
    "executor": {"instances": 1, "resources": {"cpu": "100m", "memory": "1Gi"}},
    "state": {"partitions": 4},
    "upgrade": {"stableBatches": 1},
}


@pytest.fixture(scope="module")
def made(world: World) -> Iterator[Tallies]:
    with tallies(world, NAMESPACE, "tidegate-e2e-loads-of-numbers", SPEC, WORK) as them:
        yield them


@pytest.fixture
def numbers(made: Tallies) -> Tally:
    """In balance with one executor."""
    app = made.one()
    app.flow.rate = FEW
    app.begin()
    return app


def await_recommended(app: Tally, number: int) -> dict[str, Any]:
    """Wait until so many executors are recommended, of figures; return the status."""

    def probe() -> dict[str, Any]:
        status = app.status()
        found = status.get("autoscaling", {})
        assert (found.get("recommended"), "figures" in found) == (number, True), json.dumps(found)
        return status

    return wait_for(f"{number} executors to be recommended", probe, timeout=420, interval=2)


def test_advice_is_in_the_status_and_changes_nothing(numbers: Tally) -> None:
    numbers.patch({"autoscaling": {"mode": "Advise", **QUICK}})
    numbers.flow.rate = MANY
    status = await_recommended(numbers, 3)
    assert "target" not in status["autoscaling"]
    assert status["executors"]["wanted"] == 1
    assert status["autoscaling"]["figures"]["rowsPerSecondPerExecutor"] > 0
    numbers.await_all_tallied()


def status_of(world: World, name: str) -> dict[str, Any]:
    status: dict[str, Any] = world.get_app(name, NAMESPACE).get("status", {})
    return status


def test_a_step_of_the_load_is_followed_up_and_down_without_a_restart(world: World) -> None:
    world.make_namespace(NAMESPACE)
    app = world.app("steps", NAMESPACE, main="script:working.py")
    # 40 rows a second with 60 ms of work each take more than two cores.
    app["spec"]["application"]["args"] = ["40", "0.06"]
    app["spec"]["executor"] = {**app["spec"].get("executor", {}), "instances": 1}
    app["spec"]["autoscaling"] = {"mode": "Active", **QUICK}
    world.kubectl.apply(app)

    def scaled_up() -> dict[str, Any]:
        status = status_of(world, "steps")
        assert status.get("executors") == {"wanted": 3, "running": 3}, status.get("autoscaling")
        return status

    up = wait_for("three executors", scaled_up, timeout=420, interval=3)
    assert up["autoscaling"]["target"] == 3
    assert up["autoscaling"]["lastScale"]["message"]
    world.await_events("steps", NAMESPACE, "Autoscaled")

    metadata, easy = {"name": "easy", "namespace": NAMESPACE}, {"work": 0}
    message = {"appRef": {"name": "steps"}, "type": "reload-config", "payload": easy}
    world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": "ControlMessage", "metadata": metadata, "spec": message}
    )

    def scaled_down() -> dict[str, Any]:
        status = status_of(world, "steps")
        assert status["executors"] == {"wanted": 1, "running": 1}, status["autoscaling"]
        return status

    down = wait_for("one executor", scaled_down, timeout=600, interval=3)
    assert (down["epoch"], down["driver"].get("restarts", 0)) == (up["epoch"], 0)
    assert world.get_app("steps", NAMESPACE)["spec"]["executor"]["instances"] == 1

    def goes_on() -> bool:
        assert status_of(world, "steps")["batch"] > down["batch"]
        return True

    wait_for("batches after the step down", goes_on, timeout=180, interval=3)
    world.kubectl.delete("sapp", "steps", NAMESPACE)
