"""The autoscaler on a real cluster: what it only advises changes nothing; then it follows a step up and down.

Numbers flow in, and each takes an executor 60 ms: a few a second are work for one executor, many are not. Batches are
far apart, so that most of their work is that of their rows, also if these are few.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.tally import Tally, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-autoscaling"
WORK = 0.06
FEW, MANY = 1.0, 32.0
"""Numbers a second: 0.06 and 1.9 cores of an executor that has one. On a busy machine the rest of a batch takes 0.5."""
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


@pytest.fixture
def numbers(world: World) -> Iterator[Tally]:
    """In balance with one executor."""
    with tallies(world, NAMESPACE, "tidegate-e2e-loads-of-numbers", SPEC, work=WORK, trigger=TRIGGER) as made:
        app = made.one()
        app.flow.rate = FEW
        app.begin()
        yield app


def await_recommended(app: Tally, number: int) -> dict[str, Any]:
    """Wait until so many executors are recommended, of figures; return the status."""

    def probe() -> dict[str, Any]:
        status = app.status()
        found = status.get("autoscaling", {})
        assert (found.get("recommended"), "figures" in found) == (number, True), json.dumps(found)
        return status

    return wait_for(f"{number} executors to be recommended", probe, timeout=420, interval=2)


def test_a_step_of_the_load_is_advised_on_and_then_followed_up_and_down_without_a_restart(numbers: Tally) -> None:
    numbers.patch({"autoscaling": {"mode": "Advise", **QUICK}})
    numbers.flow.rate = MANY
    advised = await_recommended(numbers, 3)
    assert "target" not in advised["autoscaling"]
    assert advised["executors"]["wanted"] == 1
    assert advised["autoscaling"]["figures"]["rowsPerSecondPerExecutor"] > 0

    numbers.patch({"autoscaling": {"mode": "Active"}})
    up = numbers.await_executors(3)
    assert up["autoscaling"]["target"] == 3
    assert up["autoscaling"]["lastScale"]["message"]
    numbers.world.await_events(numbers.name, NAMESPACE, "Autoscaled")

    numbers.flow.rate = FEW
    down = numbers.await_executors(1)
    assert (down["epoch"], down["driver"].get("restarts", 0)) == (advised["epoch"], 0)
    assert numbers.world.get_app(numbers.name, NAMESPACE)["spec"]["executor"]["instances"] == 1
    numbers.await_batches(1)
    numbers.await_all_tallied()
