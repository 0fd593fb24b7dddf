"""State is repartitioned while data flow: 4 to 8 to 3 partitions, and with everything that takes part in it killed.

Whatever happens, the tallies are those of all numbers, each once: of the old lineage or of the new one, whole.

What is short is seen by a watch, each version of it. Who is killed then has longer work before it than that takes: a
pod that has only begun, a driver that has batches to commit.
"""

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tidegate_testing.kills import kill_driver, kill_jvm, kill_operators, kill_pods
from tidegate_testing.tally import Tallies, Tally, has_ended, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.watching import Watch
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-repartitions"
SPEC: dict[str, Any] = {
    "state": {"partitions": 4, "repartition": {"resources": {"requests": {"cpu": "200m", "memory": "1500Mi"}}}},
    "upgrade": {"stableBatches": 2},
}
DRIVER = "tidegate.dev/role=driver"
POD = "tidegate.dev/role=repartition"
GENEROUS = 900.0


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


def repartition(app: Tally, partitions: int) -> int:
    """Have its state repartitioned, also if that was asked for before and refused; return the number before that."""
    before = app.upgrade_number()
    spec = app.world.get_app(app.name, NAMESPACE)["spec"]
    if spec["state"]["partitions"] == partitions:
        app.patch({"restartNonce": spec.get("restartNonce", 0) + 1})
    else:
        app.patch({"state": {"partitions": partitions}})
    return before


# --- who is killed ----------------------------------------------------------------------------------------------------


def kill_the_driver(app: Tally) -> bool:
    return kill_driver(app.world, NAMESPACE, app.name)


def kill_the_jvm(app: Tally) -> bool:
    kill_jvm(app.world, NAMESPACE, app.name)
    return True


def kill_the_pod(app: Tally) -> bool:
    return kill_pods(app.world, NAMESPACE, POD)


def kill_operators_and_the_pod(app: Tally) -> bool:
    """Have nobody see the pod go."""
    operators = kill_operators(app.world)
    return kill_the_pod(app) and operators


# --- what becomes of it -----------------------------------------------------------------------------------------------


def upgrade_of(version: dict[str, Any]) -> dict[str, Any]:
    """Return an application's record of its upgrade."""
    found: dict[str, Any] = version.get("status", {}).get("upgrade", {})
    return found


def await_end(app: Tally, before: int, partitions: int) -> dict[str, Any]:
    """Return the status once the repartition is over: of the old lineage, or of one with so many partitions."""

    def probe() -> dict[str, Any]:
        status = app.status()
        upgrade = status.get("upgrade", {})
        assert has_ended(upgrade, before), upgrade
        return status

    found = wait_for("the repartition to end", probe, timeout=GENEROUS, interval=1)
    if found["upgrade"]["phase"] == "Completed":
        assert found["statePartitions"] == partitions, found
        assert found["upgrade"]["repartition"]["rows"] == 10, found
    else:
        assert found["statePartitions"] != partitions, found
    return found


def assert_all_is_right(world: World, app: Tally) -> None:
    its_own = f"{DRIVER},tidegate.dev/app={app.name}"
    wait_for("one driver", lambda: len(world.kubectl.list("pods", NAMESPACE, its_own)) == 1, timeout=300, interval=2)
    app.await_all_tallied()
    wait_for("no repartition pod", lambda: world.kubectl.list("pods", NAMESPACE, POD) == [], timeout=300, interval=1)


def another_that_runs(known: set[str], pod: dict[str, Any]) -> str:
    """Return the name of a pod if its container runs and it is none of those that are known; it is one from now on."""
    uid = pod["metadata"]["uid"]
    if uid in known or pod["status"].get("phase") != "Running":
        return ""
    known.add(uid)
    return str(pod["metadata"]["name"])


# --- stories ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_state_is_repartitioned_while_data_flow_though_operators_and_the_repartition_pod_are_killed(
    world: World, numbers: Tally
) -> None:
    """Nobody sees the pod go; the application starts in the lineage that the next pod makes."""
    lineage = numbers.status()["lineage"]
    with Watch(world.kubectl, "pods", NAMESPACE, selector=POD) as pods:
        before = repartition(numbers, 8)
        pods.until("a repartition pod that runs", partial(another_that_runs, set()), GENEROUS)
        # It has Python and a JVM to start and state to read.
        assert kill_operators_and_the_pod(numbers)
    found = await_end(numbers, before, 8)
    assert found["upgrade"]["phase"] == "Completed", found
    assert found["upgrade"]["repartition"]["attempts"] == 2
    assert found["lineage"] > lineage
    assert_all_is_right(world, numbers)


@pytest.mark.long
def test_state_goes_to_eight_partitions_and_to_three_while_data_flow(numbers: Tally) -> None:
    for partitions in (another_number(numbers), 3):
        lineage = numbers.status()["lineage"]
        found = numbers.await_upgrade("Completed", repartition(numbers, partitions))
        assert (found["lineage"], found["statePartitions"]) == (lineage + 1, partitions)
        assert found["upgrade"]["repartition"]["rows"] == 10
    numbers.await_all_tallied()


@pytest.mark.long
@pytest.mark.parametrize(
    ("phase", "kill_it"),
    [("Copying", kill_the_driver), ("Stopping", kill_the_driver), ("Gate", kill_the_driver), ("Gate", kill_the_jvm)],
)
def test_the_driver_is_killed_and_the_outcome_is_the_old_lineage_or_the_new_one(
    world: World, numbers: Tally, phase: str, kill_it: Callable[[Tally], bool]
) -> None:
    partitions = another_number(numbers)
    with Watch(world.kubectl, "sapp", NAMESPACE, name=numbers.name) as versions:
        before = repartition(numbers, partitions)

        def is_so_far(version: dict[str, Any]) -> bool:
            upgrade = upgrade_of(version)
            return bool(upgrade.get("number", 0) > before and upgrade["phase"] == phase)

        versions.until(f"phase {phase}", is_so_far, GENEROUS)
        if phase == "Gate":
            # The new version's driver is made after the phase is written, and its gate is as long as its start and
            # some batches.
            wait_for("somebody to kill", lambda: kill_it(numbers), GENEROUS, 0.1)
        else:
            # One that stops may have ended by itself; then it is the outcome of that.
            assert kill_it(numbers) or phase == "Stopping"
    await_end(numbers, before, partitions)
    assert_all_is_right(world, numbers)


@pytest.mark.long
def test_operators_are_killed_in_every_phase_and_the_state_is_repartitioned_all_the_same(
    world: World, numbers: Tally
) -> None:
    missing, partitions = ["Copying", "Stopping", "Repartitioning", "Gate"], another_number(numbers)
    with Watch(world.kubectl, "sapp", NAMESPACE, name=numbers.name) as versions:
        before = repartition(numbers, partitions)

        def has_met_all(version: dict[str, Any]) -> bool:
            upgrade = upgrade_of(version)
            if upgrade.get("number", 0) > before and upgrade["phase"] in missing:
                missing.remove(upgrade["phase"])
                assert kill_operators(world)
            return not missing

        versions.until("every phase", has_met_all, GENEROUS)
    assert await_end(numbers, before, partitions)["upgrade"]["phase"] == "Completed"
    assert_all_is_right(world, numbers)


LOG = {
    "begun": "",
    "pinned": "is whole",
    "copied": "starts from a copy",
    "dividing": "state from",
    "verified": "the same as before",
}
"""What the log of a repartition pod says when it is so far."""


def follow_until(world: World, pod: str, text: str) -> None:
    """Return as soon as a pod's log says something; it has to, before it ends."""
    kubectl = world.kubectl
    command = [str(kubectl.binary), "--kubeconfig", str(kubectl.kubeconfig), "logs", "-f", pod, "-n", NAMESPACE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as follower:
        assert follower.stdout is not None
        lines = []
        for line in follower.stdout:
            lines.append(line)
            if text in line:
                follower.kill()
                return
    raise AssertionError(f"the log of {pod} ended without {text!r}: {''.join(lines[-20:])}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("steps", "end", "kill_it"),
    [
        (["begun", "verified"], "Completed", kill_the_pod),
        (["copied", "pinned", "dividing"], "Refused", kill_the_pod),  # as many as there are at most
        (["dividing"], "Completed", kill_operators_and_the_pod),
    ],
)
def test_repartition_pods_are_killed_and_the_outcome_is_the_old_lineage_or_the_new_one(
    world: World, numbers: Tally, steps: list[str], end: str, kill_it: Callable[[Tally], bool]
) -> None:
    partitions, known = another_number(numbers), set[str]()
    with Watch(world.kubectl, "pods", NAMESPACE, selector=POD) as pods:
        before = repartition(numbers, partitions)
        for step in steps:
            pod = pods.until(f"another pod, to be killed when {step}", partial(another_that_runs, known), GENEROUS)
            if LOG[step]:
                follow_until(world, pod, LOG[step])
            assert kill_it(numbers) or step == "verified"
    found = await_end(numbers, before, partitions)
    assert found["upgrade"]["phase"] == end, found
    # One for each pod that was killed, and one for the pod that was left alone. What a pod says last it says a moment
    # before its end, which may be known when the pod is killed.
    wanted = len(steps) + (end == "Completed")
    attempts = found["upgrade"]["repartition"]["attempts"]
    assert attempts in ({wanted - 1, wanted} if "verified" in steps else {wanted}), found
    assert_all_is_right(world, numbers)


@pytest.mark.long
def test_an_aggregation_without_a_key_is_refused_before_anything_is_stopped(world: World, made: Tallies) -> None:
    made.one()  # and with it the namespace
    totals = Tally(world, NAMESPACE, "", SPEC)
    world.kubectl.apply(world.app(totals.name, NAMESPACE, main="script:totalling.py", spec=SPEC))
    totals.await_stable()
    epoch = totals.status()["epoch"]
    found = totals.await_upgrade("Refused", repartition(totals, 8))
    assert (found["upgrade"]["reason"], found["epoch"], found["phase"]) == ("StateInOnePlace", epoch, "Running")
    (stalled,) = [each for each in found["conditions"] if each["type"] == "Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "UpgradeRefused")
    world.kubectl.delete("sapp", totals.name, NAMESPACE)


@pytest.mark.long
@pytest.mark.parametrize("with_driver", [True, False], ids=["with the driver", "alone"])
def test_the_status_is_removed_after_a_repartition_and_the_application_goes_on_in_the_lineage_that_it_was_in(
    world: World, numbers: Tally, with_driver: bool
) -> None:
    """The storage knows lineage and epoch, whether a driver runs that tells them, or the next one finds them."""
    partitions = another_number(numbers)
    found = numbers.await_upgrade("Completed", repartition(numbers, partitions))
    numbers.await_batches(1)
    batch = int(numbers.status()["batch"])
    world.kubectl.patch_status("sapp", numbers.name, NAMESPACE, dict.fromkeys(numbers.status()))
    if with_driver:
        assert kill_driver(world, NAMESPACE, numbers.name)

    def goes_on() -> bool:
        status = numbers.status()
        known = {name: status.get(name, 0) for name in ("lineage", "statePartitions", "phase")}
        assert known == {"lineage": found["lineage"], "statePartitions": partitions, "phase": "Running"}, status
        assert status.get("epoch", 0) >= found["epoch"] + with_driver, status
        assert status.get("batch", -1) > batch, status
        return True

    wait_for("the application to go on where it was", goes_on, timeout=GENEROUS, interval=1)
    reported = world.kubectl.list("events", NAMESPACE)
    assert [e for e in reported if e["reason"] == "EpochAdopted" and e["involvedObject"]["name"] == numbers.name]
    numbers.await_stable()
    assert_all_is_right(world, numbers)
