"""An application from apply to deletion, and what outlives it.

One application goes through it all: each start of a driver takes its time.
"""

import json
from typing import Any

import pytest

from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import World

NAMESPACE, NAME, SNAPSHOT = "tidegate-e2e-life", "figures", "at-rest"


def status_of(world: World) -> dict[str, Any]:
    status: dict[str, Any] = world.get_app(NAME, NAMESPACE).get("status", {})
    return status


def await_batch(world: World, above: int, epoch: int) -> dict[str, Any]:
    """Wait until the launch with this number has committed a batch above one that is known; return the status."""

    def committed() -> dict[str, Any]:
        status = status_of(world)
        if status.get("epoch", 0) > epoch:
            raise CannotComeError(f"another driver was launched after that of epoch {epoch}: {status}")
        assert status.get("epoch") == epoch, status
        # Of its own queries: status.batch is the last one that any driver committed.
        assert max((query.get("batchId", -1) for query in status.get("queries", [])), default=-1) > above, status
        assert (status["phase"], status["executors"]["running"]) == ("Running", status["executors"]["wanted"]), status
        return status

    return wait_for(f"a batch of epoch {epoch} above {above}", committed, timeout=600, interval=2)


def test_a_script_that_knows_nothing_of_tidegate_lives_from_apply_to_deletion_and_leaves_what_it_should(
    world: World,
) -> None:
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="key:counting.py"))
    it_shows_its_metrics(world)
    their_jvms_start_from_the_archive(world)
    scale_out(world)
    stopped_at = suspend(world)
    # A pod takes it: there is no driver to ask.
    assert take_at_rest(world)["batch"] == stopped_at
    resume(world, stopped_at)
    delete_and_keep_the_state(world)
    its_snapshot_outlives_it(world)


def it_shows_its_metrics(world: World) -> None:
    status = await_batch(world, above=0, epoch=1)
    assert status["queries"][0]["name"] == "counting"
    assert status["executors"] == {"wanted": 1, "running": 1, "summary": "1/1"}
    table = world.kubectl.run("get", "sapp", NAME, "-n", NAMESPACE)
    assert table.splitlines()[0].split() == ["NAME", "PHASE", "READY", "EXECUTORS", "BATCH", "ROWS/S", "AGE"]
    await_ready(world)


def await_ready(world: World) -> None:
    world.kubectl.run("wait", f"sapp/{NAME}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=120s", timeout=130)


def their_jvms_start_from_the_archive(world: World) -> None:
    """A JVM that cannot use the archive of classes says nothing, and is slower to start ever after."""
    pods = world.kubectl.list("pods", NAMESPACE, f"tidegate.dev/app={NAME}")
    assert len(pods) == 2, [pod["metadata"]["name"] for pod in pods]
    for pod in pods:
        name = pod["metadata"]["name"]
        maps = world.kubectl.run(
            "exec", name, "-n", NAMESPACE, "--", "sh", "-c", "cat /proc/[0-9]*/maps 2>/dev/null; :"
        )
        assert "/archive/classes.jsa" in maps, name


def scale_out(world: World) -> None:
    """kubectl scale reaches the running driver: the same epoch, one more executor."""
    before = status_of(world)["epoch"]
    world.kubectl.run("scale", f"sapp/{NAME}", "-n", NAMESPACE, "--replicas=2")

    def scaled() -> bool:
        status = status_of(world)
        if status["epoch"] != before:
            raise CannotComeError(f"another driver was launched: {status}")
        assert status["executors"] == {"wanted": 2, "running": 2, "summary": "2/2"}, status["executors"]
        return True

    wait_for("a second executor under the same driver", scaled, timeout=300, interval=2)


def suspend(world: World) -> int:
    """Its pods are freed, and its state ends at a batch boundary; return the last batch."""
    world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": {"suspend": True}})
    wait_for("the suspension", lambda: status_of(world).get("phase") == "Suspended", timeout=300)
    assert world.kubectl.list("pods", NAMESPACE, f"tidegate.dev/app={NAME}") == []
    await_ready(world)
    return last_batch(world)


def last_batch(world: World) -> int:
    """Return the last batch, which was begun and committed: the state ends at its boundary."""
    keys = world.keys(NAME, NAMESPACE)
    newest = {part: max(int(k.rpartition("/")[2]) for k in batches(keys, part)) for part in ("offsets", "commits")}
    assert newest["offsets"] == newest["commits"]
    return newest["commits"]


def batches(keys: list[str], part: str) -> list[str]:
    return [k for k in keys if f"/lineages/1/counting/{part}/" in k and k.rpartition("/")[2].isdigit()]


def take_at_rest(world: World) -> dict[str, Any]:
    """Have a snapshot taken, and return its status once it is Ready."""
    metadata = {"name": SNAPSHOT, "namespace": NAMESPACE}
    spec = {"appRef": {"name": NAME}, "deletionPolicy": "Delete"}
    world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
    )
    wait = ("wait", f"snap/{SNAPSHOT}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s")
    world.kubectl.run(*wait, timeout=310)
    found = world.kubectl.get("snap", SNAPSHOT, NAMESPACE)
    assert found is not None
    status: dict[str, Any] = found["status"]
    return status


def resume(world: World, stopped_at: int) -> None:
    """An edit while it is suspended: the next start has it, there is one start, and it goes on with the next batch."""
    edit = {"suspend": False, "restartNonce": 1, "executor": {"instances": 1}}
    world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": edit})
    assert await_batch(world, above=stopped_at, epoch=2)["executors"]["wanted"] == 1
    world.await_events(NAME, NAMESPACE, "Suspending", "Suspended", "DriverStarting")
    assert status_of(world).get("restarts") is None


def delete_and_keep_the_state(world: World) -> None:
    """After deletion nothing is left but the storage, which ends at a batch boundary."""
    assert world.snapshot_keys(NAME, NAMESPACE) != []
    world.kubectl.delete("sapp", NAME, NAMESPACE)
    wait_for("the resource to be gone", lambda: world.kubectl.get("sapp", NAME, NAMESPACE) is None, timeout=300)
    # What the resource owns goes some time after it: Kubernetes' garbage collector takes it.
    wait_for("all that belongs to it to be gone", lambda: nothing_is_left(world), timeout=120)

    last_batch(world)
    keys = world.keys(NAME, NAMESPACE)
    driver_logs = [k for k in keys if "/logs/" in k and k.endswith("/driver.log")]
    assert len(driver_logs) == 2, "one of each driver"
    assert [k for k in driver_logs if "counting" not in world.read(k)] == []
    assert [k for k in keys if "/logs/" in k and "/executor-" in k] != []


def nothing_is_left(world: World) -> bool:
    left = world.kubectl.list("pods,secrets,serviceaccounts,roles,rolebindings,configmaps", NAMESPACE, "")
    ours = [f"{o['kind']}/{o['metadata']['name']}" for o in left if belongs_to_tidegate(o)]
    assert ours == []
    return True


def belongs_to_tidegate(item: dict[str, Any]) -> bool:
    metadata = item["metadata"]
    return "tidegate" in metadata["name"] or any("tidegate" in label for label in metadata.get("labels", {}))


def its_snapshot_outlives_it(world: World) -> None:
    """The files of a snapshot go with its resource, also when the application is long gone."""
    assert world.snapshot_keys(NAME, NAMESPACE) != []
    world.kubectl.delete("snap", SNAPSHOT, NAMESPACE)
    world.kubectl.run("wait", f"snap/{SNAPSHOT}", "-n", NAMESPACE, "--for=delete", "--timeout=300s", timeout=310)
    assert world.snapshot_keys(NAME, NAMESPACE) == []


@pytest.mark.long  # tests/integration/spark_runtime/test_endings.py has a finite script and an image like Spark's own
def test_a_finite_script_completes_on_a_stock_spark_image_and_takes_its_storage_with_it_if_told_to(
    world: World,
) -> None:
    world.make_namespace(NAMESPACE)
    target = f"s3a://{world.bucket}/apps/{NAMESPACE}/finite/output"
    # The runtime comes through the init container, for driver and executor: the script's jobs run on that.
    spec = {
        "application": {"image": world.environment.image_stock, "runtime": "Injected"},
        "storage": {"deletionPolicy": "Delete"},
    }
    world.kubectl.apply(world.app("finite", NAMESPACE, main="script:finite.py", args=[target], spec=spec))

    def completed() -> bool:
        found = world.get_app("finite", NAMESPACE)
        assert found.get("status", {}).get("phase") == "Completed", found.get("status")
        return True

    wait_for("the script's end", completed, timeout=600, interval=2)
    ready = world.kubectl.condition(world.get_app("finite", NAMESPACE), "Ready")
    assert (ready["reason"], "The application has finished." in ready["message"]) == ("Completed", True), ready
    keys = world.keys("finite", NAMESPACE)
    (log,) = [k for k in keys if "/logs/" in k and k.endswith("/driver.log")]
    assert "counted 1000" in world.read(log)
    owner = json.loads(world.read(next(k for k in keys if k.endswith("/app.json"))))
    assert owner["uid"] == world.get_app("finite", NAMESPACE)["metadata"]["uid"]

    world.kubectl.delete("sapp", "finite", NAMESPACE)
    wait_for("the resource to be gone", lambda: world.kubectl.get("sapp", "finite", NAMESPACE) is None, timeout=300)
    assert world.keys("finite", NAMESPACE) == []
