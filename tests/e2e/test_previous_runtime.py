"""The runtime of the last landing, in an image that brings it, under today's operator, and its upgrade to today's.

One application goes through it all while numbers flow: each start of a driver takes its time. What an older runtime
cannot do is refused with words that name it; in the end the tally is of all numbers, each once.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import images, paths
from devcluster.images import Image
from tidegate_testing import previous_image, previous_runtime
from tidegate_testing.tally import Tallies, Tally, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-previous"
NAMED = "TIDEGATE_IMAGE_SPARK_LAST_LANDING"
UPGRADE: dict[str, Any] = {"mode": "Snapshot", "stableBatches": 2}


@pytest.fixture(scope="module")
def last_landing(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """An image that brings the runtime of then; nothing is built yet."""
    return previous_image.image_in(tmp_path_factory.mktemp("last-landing"))


@pytest.fixture(scope="module")
def image(world: World, last_landing: Image) -> str:
    """Its name on the cluster; built, the first time, and loaded for who asks for it."""
    cluster = world.environment.cluster
    if cluster is not None:
        images.load(cluster, [last_landing])
        return last_landing.name
    named = os.environ.get(NAMED, "")
    if not named:
        pytest.fail(f"{NAMED} must name an image of commit {previous_runtime.commit()} that this cluster can pull")
    return named


@pytest.fixture(scope="module")
def made(world: World, image: str) -> Iterator[Tallies]:
    spec = {"application": {"image": image}, "state": {"partitions": 4}, "upgrade": UPGRADE}
    with tallies(world, NAMESPACE, "tidegate-e2e-previous-numbers", spec, listens=True) as them:
        yield them
        world.kubectl.run("delete", "ctl", "--all", "-n", NAMESPACE, "--wait=false")


@pytest.mark.long  # tests/integration/test_previous_runtime.py has the same runtime, in a process
def test_an_image_with_the_runtime_of_the_last_landing_does_what_is_asked_until_it_is_upgraded(
    world: World, made: Tallies, last_landing: Image
) -> None:
    numbers = made.one()
    numbers.begin()
    it_is_ready_with_the_runtime_of(numbers, last_landing.root)
    it_takes_a_snapshot(numbers)
    it_applies_a_message(numbers)
    it_writes_its_state_or_is_to_be_upgraded(numbers)
    it_is_rescaled(numbers)
    it_is_suspended_and_resumed(numbers)
    it_is_upgraded(numbers, world.environment.image_spark)
    it_is_ready_with_the_runtime_of(numbers, paths.ROOT)
    numbers.await_all_tallied()


def it_is_ready_with_the_runtime_of(numbers: Tally, root: Path) -> None:
    run = numbers.world.kubectl.run
    run("wait", f"sapp/{numbers.name}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s", timeout=310)
    driver = f"{numbers.name}-driver"
    found = run("exec", driver, "-n", NAMESPACE, "-c", "driver", "--", "python3", "-c", previous_image.DIGEST)
    assert found.strip() == previous_image.digest(root)


def it_takes_a_snapshot(numbers: Tally) -> None:
    name = apply(numbers, "StreamSnapshot", "midway", {"deletionPolicy": "Delete"})
    wait = ("wait", f"snap/{name}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s")
    numbers.world.kubectl.run(*wait, timeout=310)


def it_applies_a_message(numbers: Tally) -> None:
    status = await_end(numbers, "limits", {"type": "reload-config", "payload": {"limit": 1}})
    assert status["phase"] == "Applied", status
    assert [query["name"] for query in status["queries"]] == ["tallying"]


def it_writes_its_state_or_is_to_be_upgraded(numbers: Tally) -> None:
    """A format has another name than it may have had then."""
    resources = {"requests": {"cpu": "100m", "memory": "1500Mi"}}
    status = await_end(numbers, "dump", {"type": "dump-state", "payload": {"format": "CSV", "resources": resources}})
    assert status["phase"] == "Applied" or "upgrade the runtime" in status["conditions"][0]["message"], status


def apply(numbers: Tally, kind: str, name: str, spec: dict[str, Any]) -> str:
    """Return the name of the resource, of this application's alone."""
    metadata, ref = {"name": f"{numbers.name}-{name}", "namespace": NAMESPACE}, {"appRef": {"name": numbers.name}}
    numbers.world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": {**ref, **spec}}
    )
    return metadata["name"]


def await_end(numbers: Tally, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Send a message, and return its status once nothing more comes of it."""
    message = apply(numbers, "ControlMessage", name, spec)

    def probe() -> dict[str, Any]:
        numbers.status()
        found = numbers.world.kubectl.get("ctl", message, NAMESPACE)
        assert found is not None, f"{message} is gone"
        status: dict[str, Any] = found.get("status", {})
        assert status.get("phase") in ("Applied", "Failed", "Expired"), status
        return status

    return wait_for(f"the end of message {message}", probe, timeout=600, interval=1)


def it_is_rescaled(numbers: Tally) -> None:
    """Its agent is told so: the same driver goes on with another executor."""
    epoch = numbers.status()["epoch"]
    numbers.world.kubectl.run("scale", f"sapp/{numbers.name}", "-n", NAMESPACE, "--replicas=2")
    status = numbers.await_executors(2)
    assert (status["epoch"], status["driver"].get("restarts", 0)) == (epoch, 0)


def it_is_suspended_and_resumed(numbers: Tally) -> None:
    epoch = numbers.status()["epoch"]
    numbers.patch({"suspend": True})
    wait_for("the suspension", lambda: numbers.status()["phase"] == "Suspended", timeout=300)
    numbers.patch({"suspend": False, "executor": {"instances": 1}})
    numbers.await_executors(1, after=epoch)
    numbers.await_batches(2)


def it_is_upgraded(numbers: Tally, image: str) -> None:
    """By an edit of its image alone; its state goes along, and the new version is stable after some batches."""
    before = numbers.upgrade_number()
    numbers.patch({"application": {"image": image}})
    status = numbers.await_upgrade("Completed", before)
    assert (status["upgrade"]["mode"], status["lineage"]) == ("Snapshot", 1), json.dumps(status["upgrade"])
    assert status["lastStable"]["specHash"] == status["upgrade"]["toSpecHash"]
