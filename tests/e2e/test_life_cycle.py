"""Suspended and resumed, restarted on demand, failed too often and started afresh: on a real cluster."""

from typing import Any

from tidegate_testing.apps import SCRIPTS_PATH
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-cycle"


def status_of(world: World, name: str) -> dict[str, Any]:
    status: dict[str, Any] = world.get_app(name, NAMESPACE).get("status", {})
    return status


def wait_for_batch(world: World, name: str, above: int = 0, epoch: int = 1) -> int:
    """Wait until the launch with this number has committed a batch above one that is known; return the newest."""

    def committed() -> int:
        status = status_of(world, name)
        assert status.get("epoch") == epoch, status
        # Of its own queries: status.batch is the last one that any driver committed.
        newest = max((query.get("batchId", -1) for query in status.get("queries", [])), default=-1)
        assert newest > above, status
        return int(newest)

    return wait_for(f"a batch of {name} above {above}", committed, timeout=300, interval=2)


def logged(world: World, name: str, part: str) -> int:
    """Return the newest batch in the query's offsets or commits."""
    keys = [k for k in world.keys(name, NAMESPACE) if f"/lineages/1/counting/{part}/" in k]
    return max(int(k.rpartition("/")[2]) for k in keys if k.rpartition("/")[2].isdigit())


def change(world: World, name: str, **spec: Any) -> None:
    world.kubectl.patch("streamingapp", name, NAMESPACE, {"spec": spec})


def test_a_suspended_application_frees_its_pods_keeps_its_state_and_goes_on_with_the_next_batch(world: World) -> None:
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app("pausing", NAMESPACE, main="script:counting.py"))
    wait_for_batch(world, "pausing", above=-1)

    change(world, "pausing", suspend=True)
    wait_for("the suspension", lambda: status_of(world, "pausing").get("phase") == "Suspended", timeout=180)
    assert world.kubectl.list("pods", NAMESPACE, "tidegate.dev/app=pausing") == []
    world.kubectl.run("wait", "sapp/pausing", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=30s")
    stopped_at = logged(world, "pausing", "commits")
    assert logged(world, "pausing", "offsets") == stopped_at

    # A pod takes it: there is no driver to ask.
    assert take_at_rest(world)["batch"] == stopped_at

    # An edit while it is suspended: the next start has it, and there is one start.
    change(world, "pausing", suspend=False, restartNonce=1)
    wait_for_batch(world, "pausing", above=stopped_at, epoch=2)

    change(world, "pausing", restartNonce=2)
    wait_for_batch(world, "pausing", above=stopped_at + 1, epoch=3)
    told = {event["reason"] for event in world.kubectl.list("events", NAMESPACE)}
    assert told >= {"Suspending", "Suspended", "SpecChanged", "DriverStarting"}
    assert status_of(world, "pausing").get("restarts") is None
    its_snapshot_outlives_it(world)


def take_at_rest(world: World) -> dict[str, Any]:
    """Have a snapshot taken, and return its status once it is Ready."""
    metadata = {"name": "at-rest", "namespace": NAMESPACE}
    spec = {"appRef": {"name": "pausing"}, "reclaimPolicy": "Delete"}
    world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
    )
    world.kubectl.run("wait", "snap/at-rest", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=180s", timeout=190)
    found = world.kubectl.get("snap", "at-rest", NAMESPACE)
    assert found is not None
    status: dict[str, Any] = found["status"]
    return status


def its_snapshot_outlives_it(world: World) -> None:
    """The files of a snapshot go with its resource, also when the application is long gone."""
    for kind, name in (("sapp", "pausing"), ("snap", "at-rest")):
        assert world.snapshot_keys("pausing", NAMESPACE) != []
        world.kubectl.delete(kind, name, NAMESPACE)
        world.kubectl.run("wait", f"{kind}/{name}", "-n", NAMESPACE, "--for=delete", "--timeout=180s", timeout=190)
    assert world.snapshot_keys("pausing", NAMESPACE) == []


def test_an_application_that_fails_too_often_stays_failed_and_a_change_starts_it_afresh(world: World) -> None:
    world.make_namespace(NAMESPACE)
    app = world.app("failing", NAMESPACE, main="script:raises.py", spec={"restart": {"maxFailures": 1}})
    world.kubectl.apply(app)

    def exhausted() -> dict[str, Any]:
        found = world.get_app("failing", NAMESPACE)
        stalled = world.kubectl.condition(found, "Stalled")
        assert stalled.get("reason") == "RestartBudgetExhausted", found.get("status")
        return stalled

    stalled = wait_for("the budget to be spent", exhausted, timeout=300, interval=2)
    assert stalled["status"] == "True"
    assert "ValueError" in stalled["message"]
    status = status_of(world, "failing")
    assert (status["phase"], status["epoch"], len(status["restarts"]["recentFailures"])) == ("Failed", 1, 2)

    change(world, "failing", application={"main": f"local://{SCRIPTS_PATH}/counting.py"})
    wait_for_batch(world, "failing", above=-1, epoch=2)
    assert "recentFailures" not in status_of(world, "failing").get("restarts", {})
    world.kubectl.delete("sapp", "failing", NAMESPACE)
