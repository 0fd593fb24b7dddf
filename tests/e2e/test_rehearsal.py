"""A version whose state does not fit is caught before anything is stopped; another one, that fits, takes over."""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-rehearsal"
APP = "counting"
SMALL = {"requests": {"cpu": "50m", "memory": "1200Mi"}}
UPGRADE = {"stableBatches": 1, "rehearsal": {"batches": 2, "timeoutSeconds": 900, "resources": SMALL}}


@pytest.fixture(scope="module")
def app(world: World) -> Iterator[World]:
    """An application whose first version is stable, and which asks for rehearsals."""
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app(APP, NAMESPACE, main="script:evolving.py", spec={"upgrade": UPGRADE}))
    wait_for("a stable version", lambda: "lastStable" in status(world), timeout=600, interval=1)
    yield world
    world.delete_apps(NAMESPACE)


def status(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.get_app(APP, NAMESPACE).get("status", {})
    return found


def upgrade(world: World) -> dict[str, Any]:
    found: dict[str, Any] = status(world).get("upgrade", {})
    return found


def driver(world: World) -> tuple[str, int, str]:
    """Return uid, restarts and image arguments' hash of the driver's pod."""
    pod = world.kubectl.get("pod", f"{APP}-driver", NAMESPACE)
    assert pod is not None
    (container,) = pod["status"]["containerStatuses"]
    return pod["metadata"]["uid"], container["restartCount"], pod["metadata"]["annotations"]["tidegate.dev/spec-hash"]


def rehearsal_pods(world: World) -> list[str]:
    found = world.kubectl.list("pods", NAMESPACE, "tidegate.dev/role=rehearsal")
    return [pod["metadata"]["name"] for pod in found]


def change(world: World, *args: str) -> None:
    spec = {"application": {"args": list(args)}}
    world.kubectl.patch("sapp", APP, NAMESPACE, {"spec": spec})


def test_an_incompatible_state_schema_is_caught_and_the_old_version_runs_on_without_a_gap(app: World) -> None:
    before, batch = driver(app), status(app).get("batch", 0)
    change(app, "newest")
    # What a GitOps tool waits for: the spec is not what runs, and will not be.
    app.kubectl.run("wait", f"sapp/{APP}", "-n", NAMESPACE, "--for=condition=Stalled", "--timeout=900s", timeout=910)
    known = upgrade(app)
    assert (known["phase"], known["reason"]) == ("Refused", "RehearsalFailed")
    rehearsed = known["rehearsal"]
    assert (rehearsed["result"], rehearsed["cause"]) == ("Failed", "StateSchema")
    assert "SCHEMA" in rehearsed["message"]
    # The same process, in the same launch, and it has gone on meanwhile.
    assert driver(app) == before
    assert (status(app)["epoch"], status(app)["lineage"]) == (1, 1)
    wait_for("more batches", lambda: status(app).get("batch", 0) > batch, timeout=300, interval=1)
    app.await_events(APP, NAMESPACE, "UpgradeRehearsing", "RehearsalFailed", "UpgradeRefused")
    wait_for("its pod to be gone", lambda: not rehearsal_pods(app), timeout=180, interval=1)
    wait_for(
        "its files to be gone", lambda: not [k for k in app.keys(APP, NAMESPACE) if "/rehearsals/" in k], timeout=180
    )
    assert driver(app) == before


@pytest.mark.long
def test_a_version_that_passes_takes_over(app: World) -> None:
    change(app, "something-else")
    wait_for("the upgrade", lambda: upgrade(app).get("phase") == "Completed", timeout=900, interval=1)
    rehearsed = upgrade(app)["rehearsal"]
    assert rehearsed["result"] == "Passed"
    assert [(query["name"], query["committed"] >= 2) for query in rehearsed["batches"]] == [("counting", True)]
    assert (status(app)["epoch"], status(app)["lineage"]) == (2, 1)
    app.await_events(APP, NAMESPACE, "RehearsalPassed", "UpgradeCompleted")
    wait_for("its pod to be gone", lambda: not rehearsal_pods(app), timeout=180, interval=1)
