"""What can happen, and how often: each function with ``@happening(weight)`` takes part in schedules.

A happening looks at the world and does something to it; it returns what it did, in words, or nothing if it did not fit
the world.
"""

from collections.abc import Callable
from typing import Any

from tests.scenario.api_server import APPS, PODS, Body
from tests.scenario.coverage import PAIRS
from tests.scenario.driver import DriverProcess
from tests.scenario.weather import Fault
from tests.scenario.world import BINDING, BUCKET, NAMESPACE, ROLE, World
from tidegate_spark.protocol import (
    ANNOTATION_APP_UID,
    LABEL_APP,
    LABEL_MANAGED_BY,
    LABEL_ROLE,
    MANAGED_BY,
    ROLE_EXECUTOR,
    Notice,
    Reason,
    Termination,
)

Happening = Callable[[World], str | None]
HAPPENINGS: list[tuple[float, Happening]] = []
ORDERS, BILLING, INNER = "orders", "billing", "inner"
"""The third one's storage lies inside the first one's."""
_APPS = f"/apis/tidegate.dev/v1alpha1/namespaces/{NAMESPACE}/streamingapps"


def happening(weight: float) -> Callable[[Happening], Happening]:
    """Have a function take part in schedules."""

    def add(function: Happening) -> Happening:
        HAPPENINGS.append((weight, function))
        return function

    return add


# --- people and applications ---


@happening(8)
def create_app(w: World) -> str | None:
    name = w.rng.choice((ORDERS, ORDERS, BILLING, INNER))
    if w.app(name) is not None:
        return None
    uri = f"s3://{BUCKET}/apps/{NAMESPACE}/{ORDERS}" if name == INNER else f"s3://{BUCKET}/apps"
    spec: Body = {
        "application": {"image": "shop/orders:1", "main": "local:///opt/app/main.py", "runtime": "Image"},
        "storage": {"uri": uri, "onDelete": w.rng.choice(("Retain", "Delete"))},
        "driver": {"stopGracePeriodSeconds": w.rng.choice((5, 120))},
        "executor": {"instances": w.rng.choice((1, 2))},
    }
    manifest = {"apiVersion": "tidegate.dev/v1alpha1", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
    w.api.create(_APPS, manifest)
    return f"{name} is created, onDelete {spec['storage']['onDelete']}{_put_in_the_way(w, name)}"


def _put_in_the_way(w: World, name: str) -> str:
    """Have a Secret of the agent's name there, sometimes: an earlier application's, or people's own."""
    drawn = w.rng.random()
    if drawn > 0.2 or w.api.find(w.secret_path(name)) is not None:
        return ""
    metadata: Body = {"name": f"{name}-agent", "namespace": NAMESPACE}
    if drawn < 0.15:
        metadata["labels"] = {LABEL_APP: name, LABEL_MANAGED_BY: MANAGED_BY}
        metadata["annotations"] = {ANNOTATION_APP_UID: "old"}
        metadata["ownerReferences"] = [{"kind": "StreamingApp", "name": name, "uid": "old"}]
    w.api.create(w.secret_path(name).rpartition("/")[0], {"metadata": metadata, "stringData": {"token": "old"}})
    return ", and a Secret is in its way"


def _edit(w: World, what: str, spec: Body) -> str | None:
    name = w.rng.choice((ORDERS, BILLING, INNER))
    if w.app(name) is None:
        return None
    w.api.patch(w.app_path(name), {"spec": spec})
    return f"{name} is edited: {what}"


@happening(5)
def edit_args(w: World) -> str | None:
    args = [w.rng.choice(("--a", "--b"))]
    return _edit(w, f"args {args}", {"application": {"args": args}})


@happening(2)
def edit_twice(w: World) -> str | None:
    first = edit_args(w)
    return first and f"{first}; and again: {edit_args(w)}"


@happening(3)
def scale(w: World) -> str | None:
    instances = w.rng.choice((1, 2, 3))
    return _edit(w, f"{instances} executors", {"executor": {"instances": instances}})


@happening(2)
def change_policy(w: World) -> str | None:
    policy = w.rng.choice(("Retain", "Delete"))
    return _edit(w, f"onDelete {policy}", {"storage": {"onDelete": policy}})


@happening(2)
def suspend_or_resume(w: World) -> str | None:
    suspend = w.rng.random() < 0.5
    return _edit(w, f"suspend {suspend}", {"suspend": suspend})


@happening(2)
def restart(w: World) -> str | None:
    nonce = w.rng.randrange(1, 100)
    return _edit(w, f"restartNonce {nonce}", {"restartNonce": nonce})


@happening(7)
def delete_app(w: World) -> str | None:
    name = w.rng.choice((ORDERS, BILLING, INNER))
    if w.app(name) is None:
        return None
    w.api.delete(w.app_path(name))
    return f"{name} is deleted"


@happening(1)
def lose_status(w: World) -> str | None:
    name = w.rng.choice((ORDERS, BILLING))
    app = w.app(name)
    if app is None or not app.get("status"):
        return None
    w.check.lose_status(app["metadata"]["uid"])
    w.api.patch(w.app_path(name) + "/status", {"status": None})
    return f"{name} loses its status"


@happening(1)
def remove_something_needed(w: World) -> str | None:
    """People and namespace cleaners remove what they do not know."""
    kinds = ("/secrets/", "/serviceaccounts/", "/roles/", "/rolebindings/")
    there = [path for path in sorted(w.api.objects) if any(kind in path for kind in kinds)]
    if not there:
        return None
    path = w.rng.choice(there)
    w.api.delete(path)
    return f"somebody deletes {path}"


@happening(2)
def change_rights(w: World) -> str | None:
    """An earlier version of the operator, or somebody, gave drivers other rights."""
    path, field = w.rng.choice(((ROLE, "rules"), (BINDING, "subjects")))
    if w.api.find(path) is None:
        return None
    w.api.patch(path, {field: []})
    return f"{path} grants nothing any more"


# --- the operator ---


@happening(6)
def aim_crash(w: World) -> str | None:
    w.weather.aimed = w.rng.choice(PAIRS)
    action, effect, point = w.weather.aimed
    return f"the operator dies when it gets to {action} {effect}, {point.name.lower()}"


@happening(3)
def arm_crash(w: World) -> str | None:
    w.weather.armed = w.rng.randrange(1, 14)
    return f"the operator dies at the crash point number {w.weather.armed} from now"


@happening(1)
def crash_operator(w: World) -> str | None:
    if w.leader is None:
        return None
    w.crash(w.leader, "of a fault of its own")
    return "the leader is killed"


@happening(3)
def stop_leader(w: World) -> str | None:
    leader = w.leader
    if leader is None or not leader.go_on.is_set():
        return None
    seconds = w.some(1.0, 60.0)
    leader.go_on.clear()

    def go_on() -> None:
        w.trace(leader.name, "goes on")
        leader.go_on.set()
        if not w.leads(leader):
            w.later(w.some(0.0, 1.0), w.crash, leader, "notices that it does not lead any more")

    w.later(10.0, w.lose_lease, leader)
    w.later(seconds, go_on)
    return f"{leader.name} is stopped for {seconds:.0f} s"


@happening(2)
def cut_off_leader(w: World) -> str | None:
    leader = w.leader
    if leader is None:
        return None
    leader.cut_off = True
    w.api.nudge()
    w.later(10.0, w.lose_lease, leader)
    w.later(7.0, w.crash, leader, "could not renew its lease")
    return f"{leader.name} is cut off from the API server"


@happening(1)
def jump_clock(w: World) -> str | None:
    if w.leader is None:
        return None
    w.leader.skew += w.rng.choice((-3600.0, -90.0, -5.0, 5.0, 90.0, 3600.0))
    return f"{w.leader.name}'s clock is {w.leader.skew:.0f} s ahead now"


# --- the network ---


@happening(4)
def bad_network(w: World) -> str | None:
    weather, seconds = w.weather, w.some(5.0, 90.0)
    kinds = (Fault.UNSENT, Fault.LOST, Fault.CONFLICT, Fault.THROTTLED, Fault.ERROR)
    weather.faults = {kind: w.some(0.0, 0.25) for kind in w.rng.sample(kinds, 2)}
    weather.slow = w.rng.choice((0.05, 2.0))

    def end() -> None:
        weather.faults, weather.slow = {}, 0.05

    w.later(seconds, end)
    return f"requests fail for {seconds:.0f} s: {', '.join(kind.value for kind in weather.faults)}"


@happening(1)
def api_server_down(w: World) -> str | None:
    seconds = w.some(1.0, 60.0)
    w.weather.down = True

    def end() -> None:
        w.weather.down = False

    for each in w.operators:
        each.watches_broken = True
    w.api.nudge()
    w.later(seconds, end)
    return f"the API server is down for {seconds:.0f} s"


@happening(3)
def late_watches(w: World) -> str | None:
    w.weather.longest_lag = w.rng.choice((0.1, 3.0, 30.0))
    return f"watches are up to {w.weather.longest_lag:g} s late from now"


@happening(3)
def break_watches(w: World) -> str | None:
    expired = w.rng.random() < 0.5
    for each in w.operators:
        each.watches_broken = True
    if expired:
        w.api.oldest = w.api.version
    w.api.nudge()
    return "watches break" + (", and what comes meanwhile is not told" if expired else "")


@happening(5)
def stall_watch(w: World) -> str | None:
    if not w.operators:
        return None
    process, plural = w.operators[-1], w.rng.choice((PODS, PODS, APPS))
    seconds = w.some(10.0, 100.0)
    process.stalled_until[plural] = w.now() + seconds
    return f"{process.name} hears nothing of {plural} for {seconds:.0f} s"


# --- drivers and pods ---


def _some_driver(w: World) -> DriverProcess | None:
    drivers = w.drivers()
    return w.rng.choice(drivers) if drivers else None


@happening(4)
def crash_driver(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    reason = w.rng.choice(
        (Reason.APPLICATION_FAILED, Reason.BROKER_UNAVAILABLE, Reason.STOPPED, Reason.STORAGE_UNAVAILABLE)
    )
    message = w.rng.choice(("", "because"))
    driver.crash(Termination(reason, message, driver.config.epoch))
    return f"{driver.holder.process} ends with {reason.value if message else 'no word'}"


@happening(1)
def notice(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    driver.notices = (*driver.notices, Notice(len(driver.notices) + 1, "Renamed", "A checkpoint was redirected."))
    return f"{driver.holder.process} has something to tell"


@happening(1)
def finish_driver(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    driver.finish_soon = True
    return f"{driver.holder.process} finishes its work"


def _some_pod(w: World) -> str | None:
    pods = [body for body in w.api.all(PODS) if LABEL_APP in body["metadata"].get("labels", {})]
    drivers = [body for body in pods if body["metadata"]["labels"][LABEL_ROLE] != ROLE_EXECUTOR]
    chosen = drivers if drivers and w.rng.random() < 0.7 else pods
    return _path(w.rng.choice(chosen)) if chosen else None


def _path(body: Body) -> str:
    return f"/api/v1/namespaces/{body['metadata']['namespace']}/pods/{body['metadata']['name']}"


@happening(3)
def delete_pod(w: World) -> str | None:
    path = _some_pod(w)
    if path is None:
        return None
    grace = w.rng.choice((None, None, 0))
    w.api.delete(path, grace=grace)
    return f"somebody deletes {path}" + (" by force" if grace == 0 else "")


@happening(2)
def evict_pod(w: World) -> str | None:
    path = _some_pod(w)
    if path is None:
        return None
    w.cluster.evict(path)
    return f"the kubelet evicts {path}"


# --- nodes, storage, registry, quota ---


@happening(4)
def lose_node(w: World) -> str | None:
    busy = [container.node.name for container in w.cluster.containers.values() if container.name == "driver"]
    name = w.rng.choice(busy or sorted(w.cluster.nodes))
    node = w.cluster.nodes[name]
    if not node.reachable:
        return None
    how = w.rng.choice(("cut off", "cut off", "without power"))
    (w.cluster.power_off if how == "without power" else w.cluster.cut_off)(name)
    node.storeless = how == "cut off" and w.rng.random() < 0.3
    w.later(w.some(20.0, 900.0), w.cluster.heal, name)
    if w.rng.random() < 0.7:
        w.later(w.some(1.0, 90.0), _declare_out, w, name)
    return f"{name} is {how}" + (" and does not reach the store" if node.storeless else "")


def _declare_out(w: World, name: str) -> None:
    if not w.cluster.nodes[name].reachable:
        w.trace("people", f"declare {name} out of service")
        w.cluster.declare_out_of_service(name)


def _for_a_while(w: World, what: object, field: str, longest: float) -> float:
    seconds = w.some(1.0, longest)
    setattr(what, field, True)
    w.later(seconds, setattr, what, field, False)
    return seconds


@happening(2)
def stop_store(w: World) -> str | None:
    return f"the object store is down for {_for_a_while(w, w.store, 'down', 200.0):.0f} s"


@happening(1)
def lose_image(w: World) -> str | None:
    return f"images can not be pulled for {_for_a_while(w, w.cluster, 'image_missing', 120.0):.0f} s"


@happening(1)
def set_quota(w: World) -> str | None:
    return f"pods are refused for {_for_a_while(w, w, 'quota', 120.0):.0f} s"


@happening(6)
def nothing(w: World) -> str | None:
    return "nothing"


def choose(world: World) -> Any:
    """Return what happens next."""
    weights = [weight for weight, _ in HAPPENINGS]
    return world.rng.choices([function for _, function in HAPPENINGS], weights)[0]
