"""State is divided anew while data flow: 4 to 8 to 3 partitions, and with everything that takes part in it killed.

Whatever happens, the tallies are those of all numbers, each once: of the old lineage or of the new one, whole.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.tally import Tallies, Tally, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, World

NAMESPACE = "tidegate-e2e-repartitions"
SPEC: dict[str, Any] = {
    "state": {"partitions": 4, "repartition": {"resources": {"cpu": "200m", "memory": "1500Mi"}}},
    "upgrade": {"stableBatches": 2},
}


@pytest.fixture(scope="module")
def made(world: World) -> Iterator[Tallies]:
    with tallies(world, NAMESPACE, "tidegate-e2e-divided-numbers", SPEC) as them:
        yield them


@pytest.fixture
def numbers(made: Tallies) -> Tally:
    app = made.one()
    app.begin()
    return app


def another_number(app: Tally) -> int:
    """Return a number of partitions that its state has not."""
    return 8 if app.status()["statePartitions"] != 8 else 4


def divide(app: Tally, partitions: int) -> None:
    """Have its state divided, also if that was asked for before and refused."""
    spec = app.world.get_app(app.name, NAMESPACE)["spec"]
    if spec["state"]["partitions"] == partitions:
        app.patch({"restartNonce": spec.get("restartNonce", 0) + 1})
    else:
        app.patch({"state": {"partitions": partitions}})


def test_state_goes_from_four_partitions_to_eight_to_three_while_data_flow(numbers: Tally) -> None:
    for number, partitions in enumerate((8, 3), 2):
        divide(numbers, partitions)
        assert numbers.await_upgrade("Done", "Refused", "RolledBack") == "Done"
        found = numbers.status()
        assert (found["lineage"], found["statePartitions"]) == (number, partitions)
        assert found["upgrade"]["repartition"]["rows"] == 10
    numbers.await_all_tallied()


DRIVER = "tidegate.dev/role=driver"
POD = "tidegate.dev/role=repartition"
ENDS = ("Done", "Refused", "RolledBack")
AT_ONCE = ("--force", "--grace-period=0", "--ignore-not-found")


def kill(world: World, namespace: str, selector: str) -> bool:
    """Take pods away at once; return whether there was one."""
    return "deleted" in world.kubectl.run("delete", "pod", "-n", namespace, "-l", selector, *AT_ONCE)


def divide_and_kill(app: Tally, partitions: int, phases: set[str], namespace: str, selector: str) -> set[str]:
    """Divide the state, and take pods away once in each of these phases; return in which of them there was one."""
    before = app.status()["epoch"], app.status().get("upgrade", {}).get("startedAt")
    divide(app, partitions)
    killed: set[str] = set()

    def has_ended() -> bool:
        found = app.status()
        upgrade = found.get("upgrade", {})
        phase = upgrade.get("phase")
        if (found["epoch"], upgrade.get("startedAt")) == before:
            return False
        if phase in phases - killed and kill(app.world, namespace, selector):
            killed.add(phase)
        return phase in ENDS

    wait_for("the repartition to end", has_ended, timeout=900, interval=0.1)
    assert_whole(app, partitions)
    return killed


def assert_whole(app: Tally, partitions: int) -> None:
    """Assert that the application is in the lineage it was in, or in one with so many partitions."""
    found = app.status()
    if found["upgrade"]["phase"] == "Done":
        assert found["statePartitions"] == partitions, found
        assert found["upgrade"]["repartition"]["rows"] == 10, found
    else:
        assert found["statePartitions"] != partitions, found


def assert_all_is_right(world: World, app: Tally) -> None:
    wait_for("one driver", partial(one_driver, world), timeout=300, interval=2)
    app.await_all_tallied()
    assert world.kubectl.list("pods", NAMESPACE, POD) == []


@pytest.mark.parametrize("phase", ["Copying", "Stopping", "Gate"])
def test_the_driver_is_killed_and_the_outcome_is_the_old_lineage_or_the_new_one(
    world: World, numbers: Tally, phase: str
) -> None:
    killed: set[str] = set()
    for _ in range(4):  # until a driver was there in that phase
        killed = divide_and_kill(numbers, another_number(numbers), {phase}, NAMESPACE, DRIVER)
        if killed:
            break
    assert killed == {phase}
    assert_all_is_right(world, numbers)


def test_operators_are_killed_in_every_phase_and_the_state_is_divided_all_the_same(
    world: World, numbers: Tally
) -> None:
    missing = {"Copying", "Stopping", "Repartitioning", "Gate"}
    for _ in range(4):
        missing -= divide_and_kill(numbers, another_number(numbers), missing, OPERATOR_NAMESPACE, SELECTOR)
        assert numbers.status()["upgrade"]["phase"] == "Done"
        if not missing:
            break
    assert missing == set()
    assert_all_is_right(world, numbers)


LOG = {
    "begun": "",
    "pinned": "is whole",
    "copied": "begins with a copy",
    "dividing": "state from",
    "verified": "the same as before",
}
"""What the log of a repartition pod says when it is so far."""


def kill_repartition_pods(world: World, app: Tally, steps: list[str]) -> None:
    """Take as many repartition pods away as there are steps, each when it is so far."""
    known: set[str] = set()
    for step in steps:

        def is_so_far(step: str = step) -> bool:
            upgrade = app.status().get("upgrade", {})
            assert upgrade.get("phase") not in ENDS, upgrade
            if upgrade.get("phase") == "Gate":
                return True  # the end of the last pod was known before it could be taken away
            for pod in world.kubectl.list("pods", NAMESPACE, POD):
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                if uid not in known and LOG[step] in world.kubectl.run("logs", name, "-n", NAMESPACE):
                    known.add(uid)
                    return kill(world, NAMESPACE, POD)
            return False

        wait_for(f"a repartition pod that is {step}", is_so_far, timeout=600, interval=0.2)


@pytest.mark.parametrize(
    ("steps", "end", "attempts"),
    [
        # What is verified may be said to be whole before the pod is taken away; its end may even be known already.
        (["begun", "verified"], "Done", {2, 3}),
        (["copied", "pinned", "dividing"], "Refused", {3}),  # as many as there are at most
    ],
)
def test_repartition_pods_are_killed_and_the_outcome_is_the_old_lineage_or_the_new_one(
    world: World, numbers: Tally, steps: list[str], end: str, attempts: set[int]
) -> None:
    partitions = another_number(numbers)
    divide(numbers, partitions)
    kill_repartition_pods(world, numbers, steps)
    assert numbers.await_upgrade(*ENDS) == end
    found = numbers.status()
    # One for each pod that was taken away, and one for the pod that was left alone.
    assert found["upgrade"]["repartition"]["attempts"] in attempts
    assert_whole(numbers, partitions)
    assert_all_is_right(world, numbers)


def one_driver(world: World) -> bool:
    return len(world.kubectl.list("pods", NAMESPACE, DRIVER)) == 1


def test_an_aggregation_without_a_key_is_refused_before_anything_is_stopped(world: World, made: Tallies) -> None:
    made.one()  # and with it the namespace
    totals = Tally(world, NAMESPACE, "", SPEC)
    world.kubectl.apply(world.app(totals.name, NAMESPACE, main="script:totalling.py", spec=SPEC))
    wait_for("a stable version", lambda: "lastStable" in totals.status(), timeout=600, interval=2)
    epoch = totals.status()["epoch"]
    divide(totals, 8)
    totals.await_upgrade("Refused")
    found = totals.status()
    assert (found["upgrade"]["reason"], found["epoch"], found["phase"]) == ("StateInOnePlace", epoch, "Running")
    (stalled,) = [each for each in found["conditions"] if each["type"] == "Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "UpgradeRefused")
