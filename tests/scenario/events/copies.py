"""The storage becomes an older copy of itself: a backup of it is restored, or the spec names a store that has one.

Not among what every schedule has: a course that is about older copies chooses from these. They happen only where it can
be known that the copy is older: nothing says so of batches that no status has.
"""

import json
from collections.abc import Mapping

from tests.scenario.api_server import Body
from tests.scenario.events import people, places
from tests.scenario.events.people import UNDER_WAY, phase_of_upgrade
from tests.scenario.object_store import root_of
from tests.scenario.restart_rules import reason_of
from tests.scenario.world import BILLING, NAMESPACE, ORDERS, World
from tidegate_spark.contract.protocol import APP_FILE
from tidegate_spark.contract.reasons import Reason

_PATIENCE = 2.0
"""Seconds until people check again whether an application runs, or whether it has stopped."""
_LOOKS = 30
"""So often they look before they give up."""


def back_up_storage(w: World) -> str | None:
    """Somebody backs an application's storage up, and in half of the cases copies it to another store."""
    app = _some_app(w)
    if app is None or _endpoint(app):
        return None
    prefix = _prefix(app)
    w.copies[prefix] = _objects(w, prefix)
    other = f"{root_of(places.OTHER_STORE)}{prefix}"
    if w.rng.random() < 0.5 or _writers(w, other):
        return f"{prefix} is backed up"
    _replace(w, other, w.copies[prefix])
    w.check.copied(prefix, other)
    return f"{prefix} is copied to {places.OTHER_STORE}"


def keep_copy(w: World, name: str) -> None:
    """Back an application's storage up, whatever happens in it just now."""
    app = w.app(name)
    if app is not None:
        w.copies[_prefix(app)] = _objects(w, _prefix(app))


def has_older_copy(w: World, name: str) -> bool:
    """Return whether the backup of an application's storage has less than its status knows to be committed."""
    app = w.app(name)
    if app is None or not _known(app) or (prefix := _prefix(app)) not in w.copies:
        return False
    return _is_known_to_be_older(app, batches_in(prefix, w.copies[prefix]))


def restore_storage(w: World) -> str | None:
    """Somebody suspends an application, restores the backup of its storage, and resumes it."""
    return _begin_to_restore(w, roll_back=False)


def restore_storage_and_roll_back(w: World) -> str | None:
    """Somebody does that, and has the last upgrade rolled back at once."""
    return _begin_to_restore(w, roll_back=True)


def _begin_to_restore(w: World, *, roll_back: bool) -> str | None:
    app = _some_app(w)
    if app is None or _endpoint(app) or (prefix := _prefix(app)) not in w.copies:
        return None
    name, snapshot = app["metadata"]["name"], people.rollback_snapshot(app) if roll_back else ""
    if roll_back and not snapshot:
        return None
    people.edit(w, name, {"suspend": True})
    w.later(_PATIENCE, _restore, w, name, app["metadata"]["uid"], _LOOKS, snapshot)
    return f"{prefix} is to be restored from its backup" + (f", and rolled back to {snapshot}" if snapshot else "")


def _restore(w: World, name: str, uid: str, checks: int, roll_back_to: str) -> None:
    app = w.app(name)
    if app is None or app["metadata"]["uid"] != uid or not _known(app) or _endpoint(app):
        return
    prefix = _prefix(app)
    if has_driver(w, name) and checks:
        w.later(_PATIENCE, _restore, w, name, uid, checks - 1, roll_back_to)
        return
    settled = not has_driver(w, name) and phase_of_upgrade(app) not in UNDER_WAY and prefix in w.copies
    if settled and _is_known_to_be_older(app, batches_in(prefix, w.copies[prefix])):
        w.trace("people", f"restore {prefix} from its backup")
        put_copy_back(w, name)
        w.count("restored an older storage")
        if roll_back_to:
            people.edit(w, name, {"upgrade": {"rollbackTo": roll_back_to}})
            w.count("rolled back on an older storage")
    people.edit(w, name, {"suspend": False})


def put_copy_back(w: World, name: str) -> bool:
    """Restore the backup of an application's storage, once no process of it is left; returns whether that was done."""
    app = w.app(name)
    if app is None or has_driver(w, name) or (prefix := _prefix(app)) not in w.copies:
        return False
    w.newest.setdefault(prefix, _objects(w, prefix))
    w.accepted.discard(app["metadata"]["uid"])
    _replace(w, prefix, w.copies[prefix])
    return True


def name_store_with_copy(w: World) -> str | None:
    """Somebody has an application use the store that has a copy, or the one that it came from."""
    app = _some_app(w)
    if app is None:
        return None
    prefix, endpoint = _prefix(app), None if _endpoint(app) else places.OTHER_STORE
    there, here = (batches_in(at, _objects(w, at)) for at in (f"{root_of(endpoint or '')}{prefix}", _place(app)))
    older = _is_known_to_be_older(app, there)
    if not there or not (older or (there == here and not has_driver(w, app["metadata"]["name"]))):
        return None
    w.count("named a store with an older copy" if older else "named a store with the newest copy")
    return people.edit(w, app["metadata"]["name"], {"storage": {"endpoint": endpoint}})


def put_newest_back(w: World, app: Body) -> bool:
    """Do what a person does about an older storage, if it is one that was restored; returns whether it is.

    The newest state is put back, or the older one accepted, and not for long: then the application is launched again.
    """
    prefix, name, uid = _prefix(app), app["metadata"]["name"], app["metadata"]["uid"]
    if reason_of(app) != Reason.STORAGE_OLDER or _endpoint(app) or _writers(w, prefix):
        return False
    if uid in w.accepted:
        w.violated(f"{name} is refused the older copy that was accepted")
        return True
    if prefix not in w.newest:
        return False
    if w.rng.random() < 0.5:
        w.trace("people", f"put the newest state of {name} back")
        _replace(w, prefix, w.newest.pop(prefix))
        return True
    lineage = json.loads(w.store.objects[f"{prefix}/{APP_FILE}"])["lineage"]
    w.trace("people", f"accept the older copy of {name}, which is in lineage {lineage}")
    w.check.accepted(uid, prefix, lineage, batches_in(prefix, _objects(w, prefix)))
    del w.newest[prefix]
    w.api.patch(w.app_path(name), {"spec": {"startFrom": {"adopt": True, "adoptLineage": lineage}}})
    w.later(_PATIENCE, _launch_again, w, name, uid)
    return True


def _launch_again(w: World, name: str, uid: str) -> None:
    app = w.app(name)
    if app is None or app["metadata"]["uid"] != uid:
        return
    if (app.get("status") or {}).get("phase") != "Running" or not _writers(w, _prefix(app)):
        w.later(_PATIENCE, _launch_again, w, name, uid)
        return
    w.accepted.add(uid)
    w.count("launched again on an older copy that was accepted")
    nonce = app["spec"].get("restartNonce", 0) + 1
    w.api.patch(w.app_path(name), {"spec": {"startFrom": None, "restartNonce": nonce}})


def _some_app(w: World) -> Body | None:
    """Return one with batches, whose version does not change just now."""
    app = w.app(w.rng.choice((ORDERS, BILLING)))
    settled = app is not None and _known(app) and phase_of_upgrade(app) not in UNDER_WAY
    return app if settled and app is not None and "deletionTimestamp" not in app["metadata"] else None


def _is_known_to_be_older(app: Body, there: Mapping[int, int]) -> bool:
    """Return whether a place has less of an application than its status knows to be committed."""
    status = app["status"]
    lineage, newest = status.get("lineage", 0), max(there, default=0)
    if not there or newest > lineage:
        return False
    if lineage > 1 and (status.get("lastStable") or {}).get("lineage") != lineage:
        return False  # nothing proves that it has run there
    return newest < lineage or there[newest] < max(_known(app).values())


def _known(app: Body) -> dict[str, int]:
    return {query["name"]: query["batchId"] for query in (app.get("status") or {}).get("batches", ())}


def batches_in(prefix: str, objects: Mapping[str, bytes]) -> dict[int, int]:
    """Return the newest batch of each lineage that objects of a place have."""
    found: dict[int, int] = {}
    for key in objects:
        parts = key.removeprefix(f"{prefix}/").split("/")
        if parts[0] == "lineages" and parts[-2] == "commits":
            found[int(parts[1])] = max(int(parts[-1]), found.get(int(parts[1]), -1))
    return found


def _prefix(app: Body) -> str:
    uri, name = app["spec"]["storage"]["uri"], app["metadata"]["name"]
    return f"{uri.removeprefix('s3://')}/{NAMESPACE}/{name}"


def _endpoint(app: Body) -> str:
    return str(app["spec"]["storage"].get("endpoint") or "")


def _place(app: Body) -> str:
    return f"{root_of(_endpoint(app))}{_prefix(app)}"


def _writers(w: World, prefix: str) -> bool:
    return any(driver.prefix == prefix and driver.has_fence() for driver in w.drivers())


def has_driver(w: World, name: str) -> bool:
    """Return whether there is a driver, be it one between two processes: that expects what was known at its launch."""
    return w.api.find(w.driver_path(name)) is not None or any(each.config.app == name for each in w.drivers())


def _objects(w: World, prefix: str) -> dict[str, bytes]:
    """Return the objects of an application's place, without those of one that is inside."""
    inside = f"{prefix}/{NAMESPACE}/"
    return {key: w.store.objects[key] for key in w.store.keys(f"{prefix}/") if not key.startswith(inside)}


def _replace(w: World, prefix: str, by: Mapping[str, bytes]) -> None:
    """Have these objects at a place instead of those that are there; they may be another place's."""
    for key in _objects(w, prefix):
        del w.store.objects[key]
    for key, content in by.items():
        w.store.objects[f"{prefix}/{_within(key)}"] = content


def _within(key: str) -> str:
    # bucket/apps/namespace/name/…, maybe behind another store's name
    return key.partition(f"/{NAMESPACE}/")[2].partition("/")[2]
