"""Executors come and go while data flow, without a restart; other resources change as an upgrade. Nothing is lost."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.kills import kill_jvm
from tidegate_testing.tally import Tallies, Tally, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.watching import Watch
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-rescale"
EXECUTOR: dict[str, Any] = {"instances": 1, "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}
SPEC: dict[str, Any] = {"executor": EXECUTOR, "state": {"partitions": 4}, "upgrade": {"stableBatches": 2}}


@pytest.fixture(scope="module")
def made(world: World) -> Iterator[Tallies]:
    with tallies(world, NAMESPACE, "tidegate-e2e-rescaled-numbers", SPEC) as them:
        yield them


@pytest.fixture
def numbers(made: Tallies) -> Tally:
    """With one executor."""
    app = made.one()
    app.begin()
    scale(app, 1)
    app.await_executors(1)
    return app


def scale(app: Tally, number: int) -> None:
    app.world.kubectl.run("scale", f"sapp/{app.name}", "-n", NAMESPACE, f"--replicas={number}")


@pytest.mark.long  # test_life_of_an_application.py and test_autoscaling.py have it, too
def test_executors_go_from_one_to_three_to_one_while_batches_commit(world: World, numbers: Tally) -> None:
    before = numbers.status()
    scale(numbers, 3)
    numbers.await_executors(3)
    numbers.await_batches(3)
    scale(numbers, 1)
    numbers.await_executors(1)
    numbers.await_batches(3)
    numbers.await_pods_of_executors(1)
    after = numbers.status()
    assert (after["epoch"], after["driver"].get("restarts", 0)) == (before["epoch"], 0)
    assert after.get("upgrade") == before.get("upgrade")
    world.await_events(numbers.name, NAMESPACE, "Rescaled")
    numbers.await_all_tallied()


@pytest.mark.long
def test_a_driver_that_is_lost_right_after_a_command_has_the_number_all_the_same(world: World, numbers: Tally) -> None:
    for number, grace in ((3, "0"), (1, "30")):
        scale(numbers, number)
        epoch = numbers.status()["epoch"]
        options = ("--force",) if grace == "0" else ()
        world.kubectl.run(
            "delete", "pod", f"{numbers.name}-driver", "-n", NAMESPACE, f"--grace-period={grace}", *options
        )
        numbers.await_executors(number, after=epoch)
    # In place, by the kubelet: the new process was launched with the number of before.
    scale(numbers, 2)
    kill_jvm(world, NAMESPACE, numbers.name)
    numbers.await_executors(2)
    numbers.await_all_tallied()


@pytest.mark.long
def test_a_horizontal_pod_autoscaler_scales_through_the_scale_subresource(world: World, numbers: Tally) -> None:
    """Below its minimum and above its maximum it needs no metrics; KEDA makes such an object, too."""
    hpa: dict[str, Any] = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": numbers.name, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamingApp", "name": numbers.name},
            "minReplicas": 2,
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
                }
            ],
        },
    }
    world.kubectl.apply(hpa)
    numbers.await_executors(2)
    world.kubectl.patch("hpa", numbers.name, NAMESPACE, {"spec": {"minReplicas": 1, "maxReplicas": 1}})
    numbers.await_executors(1)
    world.kubectl.delete("hpa", numbers.name, NAMESPACE)
    numbers.await_all_tallied()


@pytest.mark.long
def test_executors_that_a_quota_has_no_room_for_are_explained(world: World, numbers: Tally) -> None:
    quota: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": NAMESPACE},
        "spec": {"hard": {"pods": "3"}},
    }
    world.kubectl.apply(quota)
    scale(numbers, 4)

    def reported() -> bool:
        (ready,) = [each for each in numbers.status()["conditions"] if each["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("True", "ExecutorsMissing"), ready
        assert "with 2 of 4 executors" in ready["message"], ready
        assert "ResourceQuota few has room for 2 executors in all, of which 2 have a pod" in ready["message"], ready
        return True

    wait_for("the quota to be named", reported, timeout=420, interval=2)
    world.kubectl.patch("resourcequota", "few", NAMESPACE, {"spec": {"hard": {"pods": "10"}}})
    numbers.await_executors(4)
    numbers.await_all_tallied()
    world.kubectl.delete("resourcequota", "few", NAMESPACE)


@pytest.mark.long
def test_other_resources_of_executors_are_an_upgrade_at_a_boundary(numbers: Tally) -> None:
    before, number = numbers.status(), numbers.upgrade_number()
    numbers.patch({"executor": {"cores": 2, "resources": {"requests": {"memory": "1200Mi"}}}})
    after = numbers.await_upgrade("Completed", number)
    assert (after["epoch"], after["lineage"]) == (before["epoch"] + 1, before["lineage"])
    assert after["lastStable"]["specHash"] != before["lastStable"]["specHash"]
    numbers.await_all_tallied()


@pytest.mark.long
def test_executors_that_no_node_has_room_for_are_explained(world: World, numbers: Tally) -> None:
    scale(numbers, 2)
    numbers.await_executors(2)
    # More memory than any node has: another version, whose executors wait for a node until it is rolled back. Its batch
    # cannot end.
    upgrade, driver, number = {"timeoutSeconds": 60}, {"stopGracePeriodSeconds": 15}, numbers.upgrade_number()
    with Watch(world.kubectl, "sapp", NAMESPACE, name=numbers.name) as versions:
        numbers.patch(
            {"executor": {"resources": {"requests": {"memory": "4000Gi"}}}, "upgrade": upgrade, "driver": driver}
        )
        explained = "with 0 of 2 executors"
        versions.until("executors without a node", lambda version: explained in json.dumps(version["status"]))
    numbers.await_upgrade("RolledBack", number)
    numbers.await_executors(2)
    numbers.await_all_tallied()
