"""What people do, to applications and to what these need."""

from tests.scenario.api_server import Body
from tests.scenario.events.registry import event
from tests.scenario.versions import UNUSABLE, is_invalid_version
from tests.scenario.world import BILLING, BUCKET, INNER, NAMESPACE, ORDERS, World
from tidegate.pods.records.names import access_name
from tidegate_spark.contract.protocol import APP_FILE, LABEL_APP, LABEL_MANAGED_BY, MANAGED_BY
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.outcome import Outcome

UNDER_WAY = ("Copying", "Rehearsing", "Stopping", "Repartitioning", "Gate", "RollingBack")
"""Phases of an upgrade after which another one comes."""
_APPS = f"/apis/tidegate.dev/v1alpha1/namespaces/{NAMESPACE}/streamingapps"


@event(8)
def create_app(w: World) -> str | None:
    name = w.rng.choice((ORDERS, ORDERS, BILLING, INNER))
    if w.app(name) is not None:
        return None
    return create(w, name)


def create(w: World, name: str, start_from: Body | None = None, upgrade: Body | None = None) -> str:
    """Create an application that is not there; returns what was done."""
    uri = f"s3://{BUCKET}/apps/{NAMESPACE}/{ORDERS}" if name == INNER else f"s3://{BUCKET}/apps"
    spec: Body = {
        "application": {"image": "shop/orders:1", "main": "local:///opt/app/main.py", "runtime": "Image"},
        "storage": {"uri": uri, "deletionPolicy": w.rng.choice(("Retain", "Delete"))},
        "driver": {"stopGracePeriodSeconds": w.rng.choice((5, 120))},
        "executor": {"instances": w.rng.choice((1, 2))},
        "control": {"retentionSeconds": w.rng.choice((60, 86400))},
        "restart": {"policy": "OnFailure", **(_restart_rules(w) if w.rng.random() < 0.5 else {})},
        "upgrade": {name: value for name, value in _upgrade_rules(w).items() if value is not None} | (upgrade or {}),
    }
    if start_from is not None:
        spec["startFrom"] = start_from
    elif w.store.keys(f"{uri.removeprefix('s3://')}/{NAMESPACE}/{name}/{APP_FILE}") and w.rng.random() < 0.4:
        spec["startFrom"] = {"adopt": True}  # restored by a backup tool, and told so
        w.count("created to adopt")
    manifest = {"apiVersion": "tidegate.dev/v1alpha1", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
    w.api.create(_APPS, manifest)
    rules = ", ".join(map(str, spec["restart"].values()))
    return f"{name} is created, deletionPolicy {spec['storage']['deletionPolicy']}, {rules}"


def _restart_rules(w: World) -> Body:
    return {
        "policy": w.rng.choice(("OnFailure", "OnFailure", "Always", "Never")),
        "maxFailures": w.rng.choice((0, 1, 3, 10)),
        "windowSeconds": w.rng.choice((60, 600, 3600)),
        "healthySeconds": w.rng.choice((10, 60, 600)),
        "stallTimeoutSeconds": w.rng.choice((0, 30, 120)),
    }


def _upgrade_rules(w: World) -> Body:
    mode = w.rng.choice(("Snapshot", "Snapshot", "Snapshot", "LastState"))
    rehearsed = mode == "Snapshot" and w.rng.random() < 0.5
    return {
        "mode": mode,
        "rehearsal": {"batches": 2, "timeoutSeconds": w.rng.choice((30, 120))} if rehearsed else None,
        "stableBatches": w.rng.choice((1, 2, 5)),
        "timeoutSeconds": w.rng.choice((60, 600)),
        "rollbackPolicy": w.rng.choice(("OnFailure", "OnFailure", "OnFailure", "Never")),
    }


def put_old_access(w: World, name: str) -> None:
    """Have access of an earlier application of the name there, which the garbage collector is about to remove."""
    metadata = {
        "name": access_name(name),
        "namespace": NAMESPACE,
        "labels": {LABEL_APP: name, LABEL_MANAGED_BY: MANAGED_BY},
        "ownerReferences": [{"kind": "StreamingApp", "name": name, "uid": "old"}],
    }
    for path in w.access_paths(name):
        w.api.create(path.rpartition("/")[0], {"metadata": metadata})


def _edit(w: World, what: str, spec: Body) -> str | None:
    name = w.rng.choice((ORDERS, BILLING, INNER))
    return None if w.app(name) is None else edit(w, name, spec, what)


def edit(w: World, name: str, spec: Body, what: str = "") -> str:
    """Edit an application that is there; returns what was done."""
    w.api.patch(w.app_path(name), {"spec": spec})
    return f"{name} is edited: {what or spec}"


@event(5)
def edit_args(w: World) -> str | None:
    args = [w.rng.choice(("--a", "--b"))]
    return _edit(w, f"args {args}", {"application": {"args": args}})


@event(6)
def repartition_stable(w: World) -> str | None:
    apps = [app for app in _of_ready_drivers(w) if "lastStable" in (app.get("status") or {})]
    if not apps:
        return None
    app = w.rng.choice(apps)
    others = [number for number in (3, 4, 8) if number != app["status"].get("statePartitions")]
    return edit(w, app["metadata"]["name"], {"state": {"partitions": w.rng.choice(others)}})


def _of_ready_drivers(w: World) -> list[Body]:
    names = [driver.config.app for driver in w.drivers() if driver.ready]
    return [app for app in map(w.app, names) if app is not None]


@event(2)
def edit_partitions(w: World) -> str | None:
    partitions = w.rng.choice((4, 8, 3))
    return _edit(w, f"{partitions} partitions", {"state": {"partitions": partitions}})


@event(2)
def start_over(w: World) -> str | None:
    """Another version is to start without state, and somebody has said so twice; later ones keep state again."""
    name = w.rng.choice((ORDERS, BILLING))
    app = w.app(name)
    lineage = ((app or {}).get("status") or {}).get("lineage", 0)
    if not lineage:
        return None
    notes = {"annotations": {"tidegate.dev/abandon-state": str(lineage)}}
    w.api.patch(w.app_path(name), {"metadata": notes})
    spec: Body = {"restartNonce": w.rng.randrange(300, 400), "upgrade": {"mode": "Stateless"}}
    w.later(w.rng.choice((5.0, 60.0)), _keep_state_again, w, name)
    return edit(w, name, spec, f"lineage {lineage} is given up")


def _keep_state_again(w: World, name: str) -> None:
    if w.app(name) is not None:
        edit(w, name, {"upgrade": {"mode": "Snapshot"}})


@event(2)
def edit_twice(w: World) -> str | None:
    first = edit_args(w)
    return first and f"{first}; and again: {edit_args(w)}"


@event(3)
def scale(w: World) -> str | None:
    instances = w.rng.choice((1, 2, 3))
    return _edit(w, f"{instances} executors", {"executor": {"instances": instances}})


@event(2)
def autoscale(w: World) -> str | None:
    """The drivers here tell no figures, so it is the bounds that move the autoscaler's target."""
    fewest, mode = w.rng.choice((1, 2, 3)), w.rng.choice(("Active", "Active", "Active", "Advise", "Off"))
    rules: Body = {"mode": mode, "minExecutors": fewest, "maxExecutors": fewest + w.rng.choice((0, 1))}
    return _edit(w, f"autoscaling {mode} from {fewest} to {rules['maxExecutors']}", {"autoscaling": rules})


@event(2)
def change_policy(w: World) -> str | None:
    policy = w.rng.choice(("Retain", "Delete"))
    return _edit(w, f"deletionPolicy {policy}", {"storage": {"deletionPolicy": policy}})


@event(2)
def suspend_or_resume(w: World) -> str | None:
    suspend = w.rng.random() < 0.5
    return _edit(w, f"suspend {suspend}", {"suspend": suspend})


@event(2)
def restart(w: World) -> str | None:
    nonce = w.rng.randrange(1, 100)
    return _edit(w, f"restartNonce {nonce}", {"restartNonce": nonce})


@event(2)
def change_restart_rules(w: World) -> str | None:
    rules = _restart_rules(w)
    return _edit(w, f"restart {', '.join(map(str, rules.values()))}", {"restart": rules})


@event(2)
def change_upgrade_rules(w: World) -> str | None:
    rules = _upgrade_rules(w)
    return _edit(w, f"upgrade {', '.join(map(str, rules.values()))}", {"upgrade": rules})


@event(6)
def break_next_version(w: World) -> str | None:
    """A new version comes, and it fails a few seconds after each start."""
    name = w.rng.choice((ORDERS, BILLING, INNER))
    app = w.app(name)
    if app is None:
        return None
    edit(w, name, {"application": {"args": [f"--broken-{w.rng.randrange(9)}"]}})
    w.bugs[app["metadata"]["uid"]] = w.check.hash_of(app)
    return f"{name} gets a version with a bug"


@event(4)
def make_invalid(w: World) -> str | None:
    """Somebody edits a spec so that no pod can be made of it: mostly one whose version changes just then."""
    there = [app for app in map(w.app, (ORDERS, BILLING, INNER)) if app is not None]
    changing = [app for app in there if phase_of_upgrade(app) in UNDER_WAY]
    if not there:
        return None
    app = w.rng.choice(changing if changing and w.rng.random() < 0.8 else there)
    return _spoil(w, app["metadata"]["name"])


@event(6)
def make_invalid_soon(w: World) -> str | None:
    """Another version of a stable application is to come, and before it is stable somebody edits the spec once more."""
    stable = [app for app in _of_ready_drivers(w) if "lastStable" in (app.get("status") or {})]
    if not stable:
        return None
    name, seconds = w.rng.choice(stable)["metadata"]["name"], w.rng.choice((1.0, 10.0, 60.0)) * w.rng.random()
    w.later(seconds, lambda: w.trace("people", _spoil(w, name)) if w.app(name) is not None else None)
    what = f"another version, of which no pod can be made {seconds:.1f} s later"
    return edit(w, name, {"restartNonce": w.rng.randrange(100, 200)}, what)


def _spoil(w: World, name: str) -> str:
    what = f"no pod can be made of it, while its upgrade is {phase_of_upgrade(w.app(name) or {}) or 'none'}"
    spec: Body = {"application": {"args": [w.rng.choice(("--a", "--b"))]}, "sparkConf": UNUSABLE}
    return edit(w, name, spec, what)


@event(4)
def make_usable(w: World) -> str | None:
    """Somebody fixes such a spec, mostly to what it was."""
    unusable = [app for app in map(w.app, (ORDERS, BILLING, INNER)) if app is not None and is_invalid_version(app)]
    return make_usable_again(w, w.rng.choice(unusable)["metadata"]["name"]) if unusable else None


def make_usable_again(w: World, name: str) -> str:
    """Fix a spec of which no pod can be made."""
    return edit(w, name, {"sparkConf": dict.fromkeys(UNUSABLE)}, "a pod can be made of it again")


def phase_of_upgrade(app: Body) -> str:
    """Return how far an application's upgrade is, empty without one."""
    upgrade = (app.get("status") or {}).get("upgrade") or {}
    return str(upgrade.get("phase", ""))


@event(4)
def ask_for_rollback(w: World) -> str | None:
    name = w.rng.choice((ORDERS, BILLING))
    pin = rollback_snapshot(w.app(name) or {})
    return edit(w, name, {"upgrade": {"rollbackTo": pin}}, f"roll back to {pin}") if pin else None


def rollback_snapshot(app: Body) -> str:
    """Return the snapshot to which the last upgrade of an application can be rolled back, empty without one."""
    upgrade = (app.get("status") or {}).get("upgrade") or {}
    return str((upgrade.get("rollbackSnapshot") or {}).get("id") or "")


@event(3)
def break_application(w: World) -> str | None:
    """From now on it fails a few seconds after each start, until its spec is changed."""
    name = w.rng.choice((ORDERS, BILLING, INNER))
    app = w.app(name)
    if app is None:
        return None
    w.bugs[app["metadata"]["uid"]] = w.check.hash_of(app)
    for driver in w.drivers():
        if driver.config.uid == app["metadata"]["uid"]:
            driver.crash(Outcome(Reason.APPLICATION_FAILED, "no column x", "AnalysisException"))
    return f"{name} has a bug"


@event(7)
def delete_app(w: World) -> str | None:
    name = w.rng.choice((ORDERS, BILLING, INNER))
    if w.app(name) is None:
        return None
    w.api.delete(w.app_path(name))
    return f"{name} is deleted"


@event(1)
def remove_something_needed(w: World) -> str | None:
    """People and namespace cleaners remove what they do not know."""
    kinds = ("/secrets/", "/serviceaccounts/", "/roles/", "/rolebindings/")
    there = [path for path in sorted(w.api.objects) if any(kind in path for kind in kinds)]
    if not there:
        return None
    path = w.rng.choice(there)
    w.api.delete(path)
    return f"somebody deletes {path}"


@event(2)
def change_rights(w: World) -> str | None:
    """An earlier version of the operator, or somebody, gave drivers other rights."""
    _, role, binding = w.access_paths(w.rng.choice((ORDERS, BILLING, INNER)))
    path, field = w.rng.choice(((role, "rules"), (binding, "subjects")))
    if w.api.find(path) is None:
        return None
    w.api.patch(path, {field: []})
    return f"{path} grants nothing any more"
