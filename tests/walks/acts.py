"""What is done to an application that runs, and when it is over. Does I/O, takes its time."""

from typing import Any

from tests.walks.count import OPERATOR, RUNTIME, Act
from tests.walks.world import APP, DRIVER, NAMESPACE, World

API = "tidegate.dev/v1alpha1"


def quiet(world: World, seconds: float) -> Act:
    """Nothing, but an event that changes nothing: an annotation on the application."""
    began = world.begin()
    world.kubectl.patch("sapp", APP, NAMESPACE, {"metadata": {"annotations": {"walks/nothing": "changes"}}})
    world.rest(seconds)
    return _both("quiet", None, began, world.begin())


def control_message(world: World, number: int) -> list[Act]:
    """A ControlMessage, from its creation until it is Applied."""
    began = world.begin()
    _create(world, number, "ControlMessage", {"type": "reload-config", "payload": {"limit": 1e9 + number}})
    ended = world.until("Applied", lambda: _phase(world, number, "ctl") == "Applied")
    _remove(world, number, "ctl")
    return [_both("control message", 16, began, ended)]


def snapshot(world: World, number: int) -> list[Act]:
    """A StreamSnapshot, from its creation until it is Ready."""
    began = world.begin()
    _create(world, number, "StreamSnapshot", {"deletionPolicy": "Delete"})
    ended = world.until("Ready", lambda: _phase(world, number, "snap") == "Ready")
    _remove(world, number, "snap")
    return [_both("snapshot", 16, began, ended)]


def crash(world: World, _: int) -> list[Act]:
    """The script raises: what ends does, and what the operator does until the application's condition says so.

    What the next process of the same pod does until it has committed a batch is another walk.
    """
    restarts, began = world.restarts(), world.begin()
    world.crash_file.touch()
    said = world.until("the condition to say so", lambda: world.ready().get("status") == "False")
    gone = world.until("the next process", lambda: world.restarts() > restarts)
    batch = world.last_batch()
    again = world.until("a batch", lambda: world.last_batch() > batch)
    return [
        Act("crash", 10, began, {OPERATOR: said, RUNTIME: gone}, newcomers=False),
        Act("restart", None, began, {RUNTIME: again}, newcomers=True),
    ]


def lost_pod(world: World, _: int) -> list[Act]:
    """The driver's pod is gone with its process, until there is the next one."""
    before, began = _uid(world), world.begin()
    world.kubelet.lose(DRIVER)
    return [_both("lost pod", None, began, _next_driver(world, before))]


def edit_of_image(world: World, number: int) -> list[Act]:
    """Another image, with upgrade.mode Snapshot, until there is the new version's driver pod."""
    before, began = _uid(world), world.begin()
    world.kubectl.patch("sapp", APP, NAMESPACE, {"spec": {"application": {"image": f"shop/orders:{number + 1}"}}})
    return [_both("edit of the image", 20, began, _next_driver(world, before))]


ACTS = (snapshot, crash, lost_pod, edit_of_image, control_message)
"""In this order: once an application has had a message, each of its events has its messages judged, if all are gone."""


def _both(name: str, limit: int | None, began: float, ended: float) -> Act:
    return Act(name, limit, began, {OPERATOR: ended, RUNTIME: ended})


def _create(world: World, number: int, kind: str, spec: dict[str, Any]) -> None:
    metadata = {"name": f"walked-{number}", "namespace": NAMESPACE}
    world.kubectl.apply(
        {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": {"appRef": {"name": APP}, **spec}}
    )


def _remove(world: World, number: int, kind: str) -> None:
    """Have an object gone: while it is there, each event of the application has it judged again."""
    world.kubectl.delete(kind, f"walked-{number}", NAMESPACE)
    world.until("it to be gone", lambda: world.kubectl.get(kind, f"walked-{number}", NAMESPACE) is None)


def _phase(world: World, number: int, kind: str) -> str:
    return str((world.kubectl.get(kind, f"walked-{number}", NAMESPACE) or {}).get("status", {}).get("phase", ""))


def _uid(world: World) -> str:
    return str(world.driver().get("metadata", {}).get("uid", ""))


def _next_driver(world: World, before: str) -> float:
    return world.until("the next driver pod", lambda: _uid(world) not in ("", before))
