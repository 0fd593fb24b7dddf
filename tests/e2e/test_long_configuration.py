"""An application whose configuration is too long for a variable of any process, on a real kubelet."""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE, NAME = "tidegate-e2e-long", "talkative"
ARGUMENTS = ["x" * 4000] * 40


@pytest.fixture
def applied(world: World) -> Iterator[World]:
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="script:talkative.py", args=ARGUMENTS))
    yield world
    world.delete_apps(NAMESPACE)


def configurations(world: World) -> list[dict[str, Any]]:
    """Return the Secrets of configuration in the namespace."""
    return [each for each in world.kubectl.list("secrets", NAMESPACE) if "-config-" in each["metadata"]["name"]]


@pytest.mark.long
def test_forty_arguments_of_four_thousand_characters_reach_the_script_through_a_secret_that_goes_with_the_pod(
    applied: World,
) -> None:
    def phase() -> str:
        return str(applied.get_app(NAME, NAMESPACE).get("status", {}).get("phase", ""))

    wait_for("the application to complete", lambda: phase() == "Completed", timeout=600, interval=2)
    (secret,) = configurations(applied)
    driver = applied.kubectl.get("pod", f"{NAME}-driver", NAMESPACE)
    assert driver is not None
    assert [owner["uid"] for owner in secret["metadata"]["ownerReferences"]] == [driver["metadata"]["uid"]]
    assert secret["immutable"] is True
    applied.delete_apps(NAMESPACE)
    wait_for("the Secret to go", lambda: not configurations(applied), timeout=120, interval=1)
