"""What is lost, or restored from a backup, of what the operator relies on: mostly while a version changes."""

import copy

from tests.scenario.api_server import Body
from tests.scenario.events.people import UNDER_WAY, phase_of_upgrade
from tests.scenario.events.registry import event
from tests.scenario.world import BILLING, INNER, ORDERS, World


@event(4)
def lose_status(w: World) -> str | None:
    """Somebody removes a status, and in half of the cases the driver with it."""
    app = _some_app(w)
    if app is None:
        return None
    put_status(w, app, None)
    return f"{_named(app)} loses its status{with_driver(w, app)}"


@event(4)
def restore_status(w: World) -> str | None:
    """A backup brings an earlier status back, and in half of the cases the driver is gone with it."""
    app = _some_app(w)
    earlier = w.statuses.get(app["metadata"]["uid"], []) if app is not None else []
    if app is None or not earlier:
        return None
    status = w.rng.choice(earlier)
    put_status(w, app, status)
    known = f"epoch {status.get('epoch', 0)}, lineage {status.get('lineage', 0)}"
    return f"{_named(app)} gets its status of {known} back{with_driver(w, app)}"


@event(1)
def edit_status(w: World) -> str | None:
    """Somebody edits the numbers in a status."""
    app = _some_app(w)
    if app is None:
        return None
    field = w.rng.choice(("lineage", "lineage", "epoch"))
    number = w.rng.choice((None, 1, 2, 3))
    put_status(w, app, {**app["status"], field: number} if number else _without(app["status"], field))
    return f"somebody sets status.{field} of {_named(app)} to {number}{with_driver(w, app)}"


@event(4)
def back_up(w: World) -> str | None:
    """Somebody backs the statuses up, to restore one of them later."""
    for app in _all(w):
        if app.get("status"):
            w.statuses.setdefault(app["metadata"]["uid"], []).append(copy.deepcopy(app["status"]))
    return "statuses are backed up"


def _all(w: World) -> list[Body]:
    return [app for app in map(w.app, (ORDERS, BILLING, INNER)) if app is not None]


def _some_app(w: World) -> Body | None:
    """Return one with a status, mostly one whose version changes just now, or whose lineage is not the first."""
    there = [app for app in _all(w) if app.get("status")]
    likely = [app for app in there if phase_of_upgrade(app) in UNDER_WAY or app["status"].get("lineage", 0) > 1]
    return w.rng.choice(likely if likely and w.rng.random() < 0.7 else there) if there else None


def _named(app: Body) -> str:
    status = app["status"]
    phase = phase_of_upgrade(app) or "none"
    known = f"epoch {status.get('epoch', 0)}, lineage {status.get('lineage', 0)}, upgrade {phase}"
    return f"{app['metadata']['name']} ({known})"


def _without(status: Body, field: str) -> Body:
    return {name: value for name, value in status.items() if name != field}


def put_status(w: World, app: Body, status: Body | None) -> None:
    """Remove an application's status, or put another one in its place."""
    uid = app["metadata"]["uid"]
    w.check.lose_status(uid, restored=status is not None)
    w.check.write_lineage(uid, app["status"].get("lineage", 0), (status or {}).get("lineage", 0))
    path = w.app_path(app["metadata"]["name"]) + "/status"
    w.api.patch(path, {"status": None})
    if status is not None:
        w.api.patch(path, {"status": copy.deepcopy(status)})


def with_driver(w: World, app: Body) -> str:
    """Delete the driver, too, in half of the cases; returns what was done."""
    path = w.driver_path(app["metadata"]["name"])
    if w.rng.random() < 0.5 or w.api.find(path) is None:
        return ""
    by_force = w.rng.random() < 0.3
    w.api.delete(path, grace=0 if by_force else None)
    return ", and its driver is deleted" + (" by force" if by_force else "")
