"""What leads to actions that are rare otherwise, so that crashes at them are not."""

from tests.scenario.events import people, pods
from tests.scenario.world import BILLING, ORDERS, World

_AT_AN_END = ("RemoveFinalizer", "DeleteLaunchSecrets", "CreatePurge", "DeletePurge")
_OF_REPARTITIONS = ("CreateRepartition", "DeleteRepartition")
_AT_ITS_END = 0.3
"""How often what ends applications is helped on: there would not be many left."""


def lead_to(w: World, action: str, effect: str) -> str:
    """Have something happen after which an operator gets to an action with an effect; returns what, in words."""
    reported: str | None = None
    if action == "RememberReported":
        reported = pods.notice(w)
    elif action == "SetExecutors":
        reported = _scale_one_that_runs(w)
    elif action == "EnsureAccess" and effect == "DELETE serviceaccounts":
        reported = _create_with_old_access(w)
    elif action == "EnsureAccess" and effect.startswith("DELETE"):
        # Looked at with the next launch, if that is not within a minute of the last one, or of another process.
        reported = f"{people.change_rights(w) or ''}, {people.restart(w) or ''}"
    elif action in _OF_REPARTITIONS:
        reported = people.repartition_stable(w)
    elif action in _AT_AN_END and w.rng.random() < _AT_ITS_END:
        reported = _delete(w, with_storage=action.endswith("Purge"))
    return reported or ""


def _scale_one_that_runs(w: World) -> str | None:
    running = [driver for driver in w.drivers() if driver.ready and w.app(driver.config.app) is not None]
    if not running:
        return None
    driver = w.rng.choice(running)
    others = [number for number in (1, 2, 3) if number != driver.executors.wanted]
    return people.edit(w, driver.config.app, {"executor": {"instances": w.rng.choice(others)}})


def _create_with_old_access(w: World) -> str | None:
    name = next((name for name in (ORDERS, BILLING) if w.app(name) is None), None)
    if name is None or any(w.api.find(path) is not None for path in w.access_paths(name)):
        return None
    people.put_old_access(w, name)
    return f"there is access of an earlier application, and {people.create(w, name)}"


def _delete(w: World, *, with_storage: bool) -> str | None:
    name = next((name for name in (ORDERS, BILLING) if w.app(name) is not None), None)
    if name is None:
        return None
    if with_storage:
        people.edit(w, name, {"storage": {"deletionPolicy": "Delete"}})
    w.api.delete(w.app_path(name))
    return f"{name} is deleted{', and its storage with it' if with_storage else ''}"
