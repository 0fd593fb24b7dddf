"""A batch whose tasks never end: executors that were to go stay and are named, and an upgrade waits for no batch of it.

The order matters: executors are asked to go first, and what takes ten minutes is looked at last.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = pytest.mark.long  # tests/unit/operator/app/rules/test_executors.py has the ten minutes in no time

NAMESPACE, NAME, FIRST_TO_HANG = f"{PREFIX}-hanging", "hanging", 3
GENEROUS = 900.0
SPEC: dict[str, Any] = {
    "executor": {"instances": 2, "resources": {"requests": {"cpu": "50m", "memory": "1200Mi"}}},
    "upgrade": {"stableBatches": 1},
    "restart": {"stallTimeoutSeconds": 86400},
}


def executors(world: World) -> list[str]:
    """Return the names of the executor pods."""
    found = world.kubectl.list("pods", NAMESPACE, f"tidegate.dev/app={NAME},tidegate.dev/role=executor")
    return sorted(pod["metadata"]["name"] for pod in found)


def edit(world: World, *more: str) -> None:
    """Have further arguments, which make another version and mean nothing."""
    arguments = [str(FIRST_TO_HANG), *more]
    world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": {"application": {"args": arguments}}})


@pytest.fixture(scope="module")
def hanging(world: World) -> Iterator[World]:
    """Of a stable version, one of two executors is to go, and both have a task that hangs."""
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="script:hanging.py", args=[str(FIRST_TO_HANG)], spec=SPEC))

    def both_hang() -> bool:
        status = world.status(NAME, NAMESPACE)
        assert (status.get("batch"), "lastStable" in status) == (FIRST_TO_HANG - 1, True), status
        logs = {pod: world.kubectl.run("logs", pod, "-n", NAMESPACE) for pod in executors(world)}
        assert len([pod for pod, log in logs.items() if "this task hangs" in log]) == 2, list(logs)
        return True

    try:
        wait_for("both executors to hang", both_hang, GENEROUS, interval=1)
        world.kubectl.run("scale", f"sapp/{NAME}", "-n", NAMESPACE, "--replicas=1")
        yield world
    finally:
        world.delete_apps(NAMESPACE)


def test_an_upgrade_stops_nothing_where_the_storage_has_none_of_the_batches_that_were_committed(hanging: World) -> None:
    before = hanging.status(NAME, NAMESPACE)
    commits = [key for key in hanging.keys(NAME, NAMESPACE) if "/hanging/commits/" in key]
    left = {key: hanging.s3.get_object(Bucket=hanging.bucket, Key=key)["Body"].read() for key in commits}
    assert len(left) == FIRST_TO_HANG
    try:
        for key in left:
            hanging.s3.delete_object(Bucket=hanging.bucket, Key=key)
        edit(hanging, "another version")

        def is_refused() -> dict[str, Any]:
            found = hanging.status(NAME, NAMESPACE)
            upgrade = dict(found.get("upgrade", {}))
            assert upgrade.get("phase") == "Refused", found
            return upgrade

        upgrade = wait_for("the upgrade to be refused", is_refused, GENEROUS)
        assert upgrade["reason"] == "StateMissing", upgrade
        assert "The storage has no committed batch of the previous version" in upgrade["message"], upgrade
        assert hanging.status(NAME, NAMESPACE)["epoch"] == before["epoch"]
    finally:
        for key, body in left.items():
            hanging.s3.put_object(Bucket=hanging.bucket, Key=key, Body=body)
        edit(hanging)


def test_an_executor_that_was_to_go_and_does_not_finish_its_task_is_named_after_ten_minutes(hanging: World) -> None:
    def is_named() -> dict[str, Any]:
        ready = hanging.kubectl.condition(hanging.get_app(NAME, NAMESPACE), "Ready")
        assert ready["reason"] == "ExecutorsLinger", ready
        return ready

    ready = wait_for("the executor to be named", is_named, GENEROUS, interval=2)
    assert any(f"kubectl logs {pod} -n {NAMESPACE}" in ready["message"] for pod in executors(hanging)), ready
    # Nobody ends it: what it has done of the batch would be done again.
    assert len(executors(hanging)) == 2
    assert hanging.operator_crashes() == []
