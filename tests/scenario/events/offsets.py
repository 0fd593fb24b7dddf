"""Somebody has applications go on from other offsets of their topics, in the right way and in wrong ones."""

import json

from tests.scenario.api_server import APPS, Body
from tests.scenario.drivers_snapshots import UNREAD
from tests.scenario.events import people
from tests.scenario.world import BILLING, ORDERS, World


def start_elsewhere(w: World) -> str | None:
    """A stable application is to be started again with other offsets."""
    app = _one_that_is_stable(w)
    if app is None:
        return None
    lineage = app["status"].get("lineage", 1)
    w.count("asked to start elsewhere")
    return _edit(w, app, {"restartNonce": w.rng.randrange(500, 600), **_order(w, lineage)}, f"from {lineage}")


def edit_offsets(w: World) -> str | None:
    """Somebody edits the offsets alone, and makes no version: other ones, of another lineage, useless ones, or none."""
    app = _one_that_is_stable(w)
    if app is None:
        return None
    lineage = app["status"].get("lineage", 1)
    wrong: list[Body] = [
        _order(w, lineage + 1),
        _order(w, max(1, lineage - 1)),
        _order(w, lineage, UNREAD),
        {"upgrade": {"startingOffsets": {"lineage": lineage, "offsets": f'{{"orders":{{"0":"{w.rng.random()}"}}}}'}}},
        {"upgrade": {"startingOffsets": None}},
    ]
    return _edit(w, app, w.rng.choice([_order(w, lineage), _order(w, lineage), *wrong]), "offsets alone")


def restart(w: World) -> str | None:
    """An application is started again, whatever offsets its spec has."""
    app = _one_that_is_stable(w)
    return _edit(w, app, {"restartNonce": w.rng.randrange(600, 700)}, "a restart") if app is not None else None


def create_with_offsets(w: World) -> str | None:
    """An application is created from a manifest in which there are offsets, for another one."""
    name = w.rng.choice((ORDERS, BILLING))
    return people.create(w, name, upgrade=_order(w, 1)["upgrade"]) if w.app(name) is None else None


def _one_that_is_stable(w: World) -> Body | None:
    apps = [app for app in w.api.all(APPS) if "lastStable" in (app.get("status") or {})]
    return w.rng.choice(apps) if apps else None


def _order(w: World, lineage: int, topic: str = "orders") -> Body:
    offsets = json.dumps({topic: {"0": w.rng.randrange(10**9)}}, separators=(",", ":"))
    return {"upgrade": {"startingOffsets": {"lineage": lineage, "offsets": offsets}}}


def _edit(w: World, app: Body, spec: Body, what: str) -> str:
    return people.edit(w, app["metadata"]["name"], spec, what)
