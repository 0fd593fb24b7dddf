"""What happens to the places of applications: a snapshot that one starts from goes, or the spec names another store.

Not among what every schedule has: a course that is about places chooses from these.
"""

import json

from tests.scenario.api_server import APPS, Body
from tests.scenario.events import losses, people
from tests.scenario.world import BILLING, BUCKET, INNER, NAMESPACE, ORDERS, World
from tidegate.api.stream_snapshot import (
    SnapshotApp,
    SnapshotPhase,
    SnapshotStorage,
    StreamSnapshot,
    StreamSnapshotSpec,
    StreamSnapshotStatus,
)
from tidegate.api.streaming_app import LocalReference, Metadata

FORK, SNAPSHOT, OTHER_STORE = BILLING, "nightly", "http://other-store"
_ORIGIN = f"{BUCKET}/apps/{NAMESPACE}/earlier"


def create_fork(w: World) -> str | None:
    """Somebody creates an application that starts from a snapshot, and mostly the snapshot."""
    if w.app(FORK) is not None:
        return None
    if w.origin is None and w.rng.random() < 0.9:
        create_origin(w)
    return people.create(w, FORK, {"snapshotRef": {"name": SNAPSHOT}})


def create_origin(w: World) -> str | None:
    """Somebody has a snapshot of that name again, which is another one."""
    if w.origin is not None:
        return None
    w.api.version += 1
    number, batch = w.api.version, w.rng.randint(2, 9)
    known = f"{SNAPSHOT}-{number}"
    w.store.objects[f"{_ORIGIN}/snapshots/{known}/manifest.json"] = json.dumps({"batch": batch}).encode()
    status = StreamSnapshotStatus(
        phase=SnapshotPhase.READY,
        snapshot_id=known,
        app=SnapshotApp(uid="uid-earlier", lineage=1),
        storage=SnapshotStorage(uri=f"s3://{_ORIGIN}"),
    )
    uid = f"snapshot-{number}"
    metadata = Metadata(name=SNAPSHOT, namespace=NAMESPACE, uid=uid, resource_version=str(number))
    spec = StreamSnapshotSpec(app_ref=LocalReference(name="earlier"))
    w.set_origin(StreamSnapshot(metadata=metadata, spec=spec, status=status))
    return f"there is snapshot {known}, of batch {batch}"


def lose_origin(w: World) -> str | None:
    """Somebody deletes the snapshot; its files stay."""
    if w.origin is None:
        return None
    known = w.origin.status.snapshot_id
    w.set_origin(None)
    return f"snapshot {known} is deleted"


def lose_beginning(w: World) -> str | None:
    """A fork loses its status and its snapshot, mostly the driver with them, and now and then its storage."""
    app = w.app(FORK)
    if app is None or not app.get("status") or _endpoint_of(app):
        return None
    losses.put_status(w, app, None)
    lost = f"{FORK} loses its status{losses.with_driver(w, app)}"
    gone = lose_origin(w)
    if w.rng.random() < 0.2:
        empty(w, app)
        lost += ", and its storage is emptied"
    return f"{lost}; {gone}" if gone else lost


def lose_beginning_unread(w: World) -> str | None:
    """A fork loses status and snapshot while nobody can decode it: what is said of that is all that it has then."""
    app = w.app(FORK)
    what = lose_beginning(w)
    if app is None or what is None:
        return None
    generation = app["metadata"]["generation"]
    ready = {"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "The resource is not readable."}
    known = {**ready, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation}
    w.api.patch(f"{w.app_path(FORK)}/status", {"status": {"conditions": [known], "observedGeneration": generation}})
    return f"{what}; it was not readable"


def lose_status(w: World) -> str | None:
    """Somebody removes a status; with the store named as well that has the state, nothing would tell of it."""
    return None if any(_endpoint_of(app) for app in w.api.all(APPS)) else losses.lose_status(w)


def restore_status(w: World) -> str | None:
    """A backup brings an earlier status back, likewise."""
    return None if any(_endpoint_of(app) for app in w.api.all(APPS)) else losses.restore_status(w)


def name_other_store(w: World) -> str | None:
    """Somebody has an application that has run use another store, and copies nothing."""
    app = w.app(w.rng.choice((ORDERS, BILLING, INNER)))
    if app is None or "batch" not in (app.get("status") or {}) or _endpoint_of(app):
        return None
    return people.edit(w, app["metadata"]["name"], {"storage": {"endpoint": OTHER_STORE}})


def name_own_store(w: World) -> str | None:
    """Somebody takes that back."""
    app = w.app(w.rng.choice((ORDERS, BILLING, INNER)))
    return use_own_store(w, app) if app is not None and _endpoint_of(app) else None


def use_own_store(w: World, app: Body) -> str:
    """Have an application use the store that it began in; returns what was done."""
    return people.edit(w, app["metadata"]["name"], {"storage": {"endpoint": None}})


def put_back(w: World, app: Body) -> bool:
    """Do what a person does where the storage is empty, or the snapshot gone; returns whether there is such a thing."""
    if _endpoint_of(app):
        w.trace("people", use_own_store(w, app))
        return True
    starts_from = "snapshotRef" in (app["spec"].get("startFrom") or {})
    if not starts_from or "lineage" in (app.get("status") or {}):
        return False
    w.trace("people", create_origin(w) or "wait for the snapshot that is there")
    return True


def empty(w: World, app: Body) -> None:
    """Remove everything of an application."""
    uri, name = app["spec"]["storage"]["uri"], app["metadata"]["name"]
    prefix = f"{uri.removeprefix('s3://')}/{NAMESPACE}/{name}"
    for key in w.store.keys(f"{prefix}/"):
        del w.store.objects[key]
    w.check.emptied(prefix)
    uid = app["metadata"]["uid"]
    w.check.takers = {at: pod for at, pod in w.check.takers.items() if at[0] != uid}


def _endpoint_of(app: Body) -> str:
    return str(app["spec"]["storage"].get("endpoint") or "")
