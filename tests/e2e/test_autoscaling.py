"""The autoscaler on a real cluster: what it only advises changes nothing; then it follows a step up and down.

Numbers flow in, and each takes an executor 60 ms at least: many a second are more than two executors can do, however
quick the machine is, and more than that if it is slow. No number at all needs no executor, on any machine.
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
FEW, MANY = 1.0, 48.0
"""Numbers a second; many are 2.9 cores of executors that have one each."""
TRIGGER, MOST_IN_BATCH = "5 seconds", 120
"""Short batches: of each number of executors two are measured."""
QUICK = {
    "minExecutors": 1,
    "maxExecutors": 3,
    "metricsWindowSeconds": 10,
    "stabilizationWindowSeconds": 5,
    "catchUpSeconds": 120,
    "scaleDown": {"intervalSeconds": 10, "maxPercent": 100},
}
SPEC: dict[str, Any] = {
    "executor": {"instances": 1, "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
    "state": {"partitions": 4},
    "upgrade": {"stableBatches": 1},
    "autoscaling": {"mode": "Advise", **QUICK},
}


@pytest.fixture(scope="module")
def made(world: World) -> Iterator[Tallies]:
    fields = {"work": WORK, "trigger": TRIGGER, "most": MOST_IN_BATCH}
    with tallies(world, NAMESPACE, "tidegate-e2e-loads-of-numbers", SPEC, **fields) as them:
        yield them


@pytest.fixture
def numbers(made: Tallies) -> Tally:
    """With one executor, and advice about it."""
    app = made.one()
    app.flow.rate = FEW
    app.begin()
    app.patch({"autoscaling": {"mode": "Advise"}, "executor": {"instances": 1}})
    app.await_executors(1)
    return app


def await_recommended(app: Tally, number: int) -> dict[str, Any]:
    """Wait until so many executors are recommended, of figures; return the status."""

    def probe() -> dict[str, Any]:
        status = app.status()
        found = status.get("autoscaling", {})
        assert (found.get("recommended"), "metrics" in found) == (number, True), json.dumps(found)
        return status

    return wait_for(f"{number} executors to be recommended", probe, timeout=420, interval=1)


def follow_up(app: Tally) -> dict[str, Any]:
    """Have the number of executors follow a step of the load; return the status in which it was advised only."""
    app.flow.rate = MANY
    advised = await_recommended(app, 3)
    assert "target" not in advised["autoscaling"]
    assert advised["executors"]["wanted"] == 1
    assert advised["autoscaling"]["metrics"]["rowsPerSecondPerExecutor"] > 0
    app.patch({"autoscaling": {"mode": "Active"}})
    up = app.await_executors(3)
    assert up["autoscaling"]["target"] == 3
    assert up["autoscaling"]["lastScale"]["message"]
    return advised


def assert_nothing_was_restarted(app: Tally, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert (after["epoch"], after["driver"].get("restarts", 0)) == (before["epoch"], 0)
    assert app.world.get_app(app.name, NAMESPACE)["spec"]["executor"]["instances"] == 1


def test_a_step_of_the_load_is_advised_on_and_then_followed_without_a_restart(numbers: Tally) -> None:
    advised = follow_up(numbers)
    numbers.world.await_events(numbers.name, NAMESPACE, "Autoscaled")
    numbers.await_all_tallied()
    assert_nothing_was_restarted(numbers, advised, numbers.status())


@pytest.mark.long
def test_executors_are_taken_away_when_the_load_is_gone_and_it_goes_on_with_those_that_are_left(numbers: Tally) -> None:
    advised = follow_up(numbers)
    numbers.flow.hold()
    down = numbers.await_executors(1)
    assert_nothing_was_restarted(numbers, advised, down)
    numbers.flow.rate = FEW
    numbers.flow.go_on()
    numbers.await_batches(1)
    numbers.await_all_tallied()
