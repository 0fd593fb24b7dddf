"""The autoscaler on a real cluster: it follows a step of the load up and down, and the application runs on.

Numbers flow in, and each takes an executor 60 ms: a few a second are work for one executor, many are not. Batches are
far apart, so that most of their work is that of their rows, also if these are few.
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
FEW, MANY = 4.0, 32.0
"""Numbers a second: 0.24 and 1.9 cores of an executor that has one."""
TRIGGER = "15 seconds"
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
    with tallies(world, NAMESPACE, "tidegate-e2e-loads-of-numbers", SPEC, work=WORK, trigger=TRIGGER) as them:
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


def test_a_step_of_the_load_is_followed_up_and_down_without_a_restart(numbers: Tally) -> None:
    numbers.patch({"autoscaling": {"mode": "Active", **QUICK}})
    numbers.flow.rate = MANY
    up = numbers.await_executors(3)
    assert up["autoscaling"]["target"] == 3
    assert up["autoscaling"]["lastScale"]["message"]
    numbers.world.await_events(numbers.name, NAMESPACE, "Autoscaled")
    numbers.flow.rate = FEW
    down = numbers.await_executors(1)
    assert (down["epoch"], down["driver"].get("restarts", 0)) == (up["epoch"], 0)
    assert numbers.world.get_app(numbers.name, NAMESPACE)["spec"]["executor"]["instances"] == 1
    numbers.await_batches(1)
    numbers.await_all_tallied()
