"""Pods that only look like an application's: labels and notes say so, and no owner does."""

import copy

from tests.scenario.api_server import PODS, Body
from tests.scenario.events.pods import path_of
from tests.scenario.events.registry import event
from tests.scenario.world import BILLING, INNER, NAMESPACE, ORDERS, World
from tidegate_spark.contract.protocol import (
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    LABEL_APP,
    LABEL_EPOCH,
    LABEL_MANAGED_BY,
    LABEL_ROLE,
    MANAGED_BY,
    ROLE_DRIVER,
)

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_NAMES = (("driver", "driver"), ("purge", "purge"), ("e1-exec-1", "executor"), ("repartition-1", "repartition"))


@event(4)
def put_stranger(w: World) -> str | None:
    """Somebody's pod has our labels, and mostly a name that a pod of ours needs; after a while it is removed."""
    app, (suffix, role) = w.rng.choice((ORDERS, BILLING, INNER)), w.rng.choice(_NAMES)
    name = w.rng.choice((f"{app}-{suffix}", f"{app}-{suffix}", f"web-{role}"))
    path, seconds = f"{_PODS}/{name}", w.rng.choice((2.0, 30.0, 120.0))
    if w.api.find(path) is not None:
        return None
    uid = ((w.app(app) or {}).get("metadata") or {}).get("uid", "nobody's")
    labels = {LABEL_APP: app, LABEL_ROLE: role, LABEL_EPOCH: str(w.rng.randrange(9)), LABEL_MANAGED_BY: MANAGED_BY}
    notes = {ANNOTATION_APP_UID: uid, ANNOTATION_SPEC_HASH: "a-hash"}
    metadata: Body = {"name": name, "namespace": NAMESPACE, "labels": labels, "annotations": notes}
    made = w.api.create(_PODS, {"metadata": metadata, "spec": {"containers": [{"name": role, "image": "web:1"}]}})
    w.later(seconds, _remove, w, path, made["metadata"]["uid"])
    return f"a stranger has the name {name} for {seconds:.0f} s"


def copy_driver(w: World) -> str | None:
    """Somebody makes a pod of a driver's manifest, without its owner: beside it, or in its place.

    So does a backup that is restored, or an edit of what cannot be edited in a pod. After a while it is removed.
    """
    drivers = [body for body in w.api.all(PODS) if _is_driver(w, body)]
    if not drivers:
        return None
    driver = w.rng.choice(drivers)
    name, seconds = driver["metadata"]["name"], w.rng.choice((5.0, 60.0, 200.0))
    if w.rng.random() < 0.5:
        w.api.delete(path_of(driver), grace=0)
    else:
        name = f"{name}-copy"
    if w.api.find(f"{_PODS}/{name}") is not None:
        return None
    kept = {key: copy.deepcopy(driver["metadata"][key]) for key in ("labels", "annotations")}
    spec = {key: copy.deepcopy(value) for key, value in driver["spec"].items() if key != "nodeName"}
    made = w.api.create(_PODS, {"metadata": {"name": name, "namespace": NAMESPACE, **kept}, "spec": spec})
    w.later(seconds, _remove, w, f"{_PODS}/{name}", made["metadata"]["uid"])
    w.count("copied a driver's pod")
    return f"somebody makes {name} of the manifest of a driver, without its owner, for {seconds:.0f} s"


def _is_driver(w: World, pod: Body) -> bool:
    is_owned = bool(pod["metadata"].get("ownerReferences"))
    return is_owned and w.check.labels[pod["metadata"]["uid"]].get(LABEL_ROLE) == ROLE_DRIVER


def _remove(w: World, path: str, uid: str) -> None:
    stranger = w.api.find(path)
    if stranger is not None and stranger["metadata"]["uid"] == uid:
        w.api.delete(path, grace=0)
