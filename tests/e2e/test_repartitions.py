"""State is divided anew while data flow: 4 to 8 to 3 partitions, and with everything that takes part in it killed.

Whatever happens, the tallies are those of all numbers, each once: of the old lineage or of the new one, whole.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from devcluster import tools
from devcluster.demo.kubernetes import CommandError, Kubernetes
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
TRIES = 4
"""So often state is divided, at most, until somebody was taken away in the moment that a course is about."""


def kill(world: World, namespace: str, selector: str) -> bool:
    """Take pods away at once; return whether there was one."""
    return "deleted" in world.kubectl.run("delete", "pod", "-n", namespace, "-l", selector, *AT_ONCE)


def kill_drivers(app: Tally) -> bool:
    return kill(app.world, NAMESPACE, DRIVER)


def kill_operators(app: Tally) -> bool:
    return kill(app.world, OPERATOR_NAMESPACE, SELECTOR)


def kill_the_jvm(app: Tally) -> bool:
    """Kill Spark inside of the driver's container, which ends by that; return whether it ran."""
    kubectl = app.world.kubectl
    shell = Kubernetes(kubectl.binary, tools.program("helm"), kubectl.kubeconfig)
    try:
        shell.kill_process(f"{app.name}-driver", NAMESPACE, "driver", "java")
    except CommandError:
        return False  # there is no container, or nothing in it that could be killed yet
    return True


def upgrade_of(app: Tally) -> dict[str, Any]:
    found: dict[str, Any] = app.status().get("upgrade", {})
    return found


def has_come_to_an_end(upgrade: dict[str, Any], before: int | None) -> bool:
    """Return whether an upgrade after that number is over; one that was put off begins anew by itself, and is not."""
    put_off = upgrade.get("reason") == "StatePartitionsKept"
    return upgrade.get("number") != before and upgrade["phase"] in ENDS and not put_off


def divide_and_kill(app: Tally, partitions: int, phases: set[str], kill_them: Callable[[Tally], bool]) -> set[str]:
    """Divide the state, and kill once in each of these phases; return in which of them there was somebody."""
    before = upgrade_of(app).get("number")
    divide(app, partitions)
    killed: set[str] = set()

    def has_ended() -> bool:
        upgrade = upgrade_of(app)
        phase = upgrade.get("phase")
        if upgrade.get("number") != before and phase in phases - killed and kill_them(app):
            killed.add(phase)
        return has_come_to_an_end(upgrade, before)

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


@pytest.mark.parametrize(
    ("phase", "kill_it"),
    [("Copying", kill_drivers), ("Stopping", kill_drivers), ("Gate", kill_drivers), ("Gate", kill_the_jvm)],
)
def test_the_driver_is_killed_and_the_outcome_is_the_old_lineage_or_the_new_one(
    world: World, numbers: Tally, phase: str, kill_it: Callable[[Tally], bool]
) -> None:
    killed: set[str] = set()
    for _ in range(TRIES):
        killed = divide_and_kill(numbers, another_number(numbers), {phase}, kill_it)
        if killed:
            break
    assert killed == {phase}
    assert_all_is_right(world, numbers)


def test_operators_are_killed_in_every_phase_and_the_state_is_divided_all_the_same(
    world: World, numbers: Tally
) -> None:
    missing = {"Copying", "Stopping", "Repartitioning", "Gate"}
    for _ in range(TRIES):
        missing -= divide_and_kill(numbers, another_number(numbers), missing, kill_operators)
        assert upgrade_of(numbers)["phase"] == "Done"
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


def kill_the_pod(app: Tally) -> bool:
    return kill(app.world, NAMESPACE, POD)


def kill_operators_and_the_pod(app: Tally) -> bool:
    """Have nobody see the pod go."""
    operators = kill_operators(app)
    return kill_the_pod(app) and operators


def divide_and_kill_pods(app: Tally, partitions: int, steps: list[str], kill_it: Callable[[Tally], bool]) -> str:
    """Divide the state, and kill one repartition pod after the other, each when it is so far; return how it ended.

    The last one's end may be known already when it is taken away: then there are fewer attempts than there would be.
    """
    before, known, left = upgrade_of(app).get("number"), set[str](), list(steps)
    divide(app, partitions)

    def has_ended() -> bool:
        # The pod first: what it says last it says a moment before its end. One that has not begun has no log: not yet.
        for pod in world.kubectl.list("pods", NAMESPACE, POD) if left else []:
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            if uid not in known and LOG[left[0]] in world.kubectl.run("logs", name, "-n", NAMESPACE) and kill_it(app):
                known.add(uid)
                left.pop(0)
        return has_come_to_an_end(upgrade_of(app), before)

    world = app.world
    wait_for(f"the end of a repartition whose pods are killed when {steps}", has_ended, timeout=900, interval=0.05)
    assert_whole(app, partitions)
    return str(upgrade_of(app)["phase"])


@pytest.mark.parametrize(
    ("steps", "end", "kill_it"),
    [
        (["begun", "verified"], "Done", kill_the_pod),
        (["copied", "pinned", "dividing"], "Refused", kill_the_pod),  # as many as there are at most
        (["dividing"], "Done", kill_operators_and_the_pod),
    ],
)
def test_repartition_pods_are_killed_and_the_outcome_is_the_old_lineage_or_the_new_one(
    world: World, numbers: Tally, steps: list[str], end: str, kill_it: Callable[[Tally], bool]
) -> None:
    # One for each pod that was taken away before its end was known, and one for the pod that was left alone.
    wanted = len(steps) + (end == "Done")
    attempts = 0
    for _ in range(TRIES):
        ended = divide_and_kill_pods(numbers, another_number(numbers), steps, kill_it)
        attempts = upgrade_of(numbers)["repartition"]["attempts"]
        if attempts == wanted:
            assert ended == end
            break
        assert ended == "Done"
    assert attempts == wanted
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
