"""Whether the world is what its resources say: what every schedule has to end in, once the misfortune has ended."""

from collections.abc import Iterator
from datetime import datetime

from tests.scenario.api_server import APPS, MESSAGES, PODS, SECRETS, Body
from tests.scenario.driver import DriverProcess
from tests.scenario.rehearsals import PLACES
from tests.scenario.restart_rules import reason_of
from tests.scenario.versions import has_rival, version_at_rest
from tests.scenario.world import BUCKET, NAMESPACE, ORDERS, World
from tidegate_spark.contract.protocol import (
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    FINALIZER,
    LABEL_APP,
    LABEL_EPOCH,
    LABEL_MANAGED_BY,
    LABEL_ROLE,
    MANAGED_BY,
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    DriverState,
)

OWNED, UNCLAIMED, UNREACHABLE = "StorageOwned", "ClaimDamaged", "AgentUnreachable"
NOTHING_THERE = "NothingToAdopt"
"""Reasons of a failed application that only a person can help."""
NO_PLACE = ("StorageEmpty", "StorageOlder", "SnapshotNotFound")
"""Reasons of one whose storage is another one, or that cannot start from its snapshot."""
NO_STATE = ("SnapshotUnusable", "StateMissing", "UpgradeRefused")
"""Reasons of one whose state is gone, or is to be given up and nobody has said so twice."""


def differences(w: World) -> list[str]:
    """Return what is not as it should be."""
    found: list[str] = []
    for app in w.api.all(APPS):
        found += [f"{app['metadata']['name']}: {text}" for text in _of_app(w, app)]
    return found + list(_leftovers(w)) + list(_of_messages(w))


def _labels(w: World, pod: Body) -> dict[str, str]:
    """Return the labels that a pod was made with."""
    return w.check.labels[pod["metadata"]["uid"]]


def _of_labels(w: World) -> Iterator[str]:
    for pod in w.api.all(PODS):
        lost = _labels(w, pod).items() - pod["metadata"].get("labels", {}).items()
        if lost and pod["metadata"].get("ownerReferences") and _is_seen(w, pod):
            yield f"has {pod['metadata']['name']} beside it, which lost its labels {sorted(name for name, _ in lost)}"


def _is_seen(w: World, pod: Body) -> bool:
    """Return whether an operator can know a pod: of one whose labels went while none ran, only a driver is looked for.

    An executor goes with its driver then, and what worked for an upgrade is done (docs/design/hostile-input.md).
    """
    made, has = _labels(w, pod), pod["metadata"].get("labels", {})
    if made.get(LABEL_ROLE) == ROLE_DRIVER or has.get(LABEL_MANAGED_BY) == made.get(LABEL_MANAGED_BY):
        return True
    key, uid = (pod["metadata"]["namespace"], made[LABEL_APP]), pod["metadata"]["uid"]
    return any(known.uid == uid for each in w.operators for known in each.index.pods(key))


def _of_app(w: World, app: Body) -> Iterator[str]:
    metadata, status, name = app["metadata"], app.get("status") or {}, app["metadata"]["name"]
    if "deletionTimestamp" in metadata:
        yield "is still being deleted"
        return
    pods = [pod for pod in w.api.all(PODS) if _labels(w, pod).get(LABEL_APP) == name]
    if any(not pod["metadata"].get("ownerReferences") for pod in pods):
        yield "has a stranger beside it"
        return
    yield from _of_labels(w)
    if status.get("observedGeneration") != metadata["generation"]:
        yield "its newest generation was not observed"
    if app["spec"].get("suspend"):
        yield from _of_suspended(status, pods)
    elif reason_of(app) == "StorageConflict":
        if not has_rival(app, w.api.all(APPS)):
            yield "there is no conflict about storage"
        if pods:  # the version under test runs on, beside a later edit
            yield from _of_running(w, app, pods)
    elif status.get("phase") == "Completed" and app["spec"]["restart"]["policy"] != "Always":
        if status.get("appliedSpecHash") != _in_force(w, app):
            yield "completed with another spec"
        yield from _of_short_pods(w, pods)
    else:
        yield from _of_running(w, app, pods)


def _in_force(w: World, app: Body) -> str:
    return version_at_rest(app, w.check.hash_of(app), w.api.all(APPS))


def _of_messages(w: World) -> Iterator[str]:
    """A message to an application that runs comes to its end; one that has ended goes when it was there for long."""
    for message in w.api.all(MESSAGES):
        name, status = message["metadata"]["name"], message.get("status") or {}
        app = w.app(message["spec"]["appRef"]["name"])
        if not status:
            yield f"nothing is said of message {name}"
        elif status["phase"] in ("Pending", "Published") and app is not None and _runs(w, app):
            yield f"message {name} is {status['phase']}, and its application runs"
        elif (
            app is not None
            and app["spec"]["control"]["retentionSeconds"] == 60
            and _ended_before(status) < w.now() - 120
        ):
            yield f"message {name} ended long ago, and is there"


def _ended_before(status: Body) -> float:
    ended = status.get("completionTime")
    return datetime.fromisoformat(ended).timestamp() if ended else float("inf")


def _runs(w: World, app: Body) -> bool:
    driver = w.api.find(w.driver_path(app["metadata"]["name"]))
    container = w.find_container(driver["metadata"]["uid"]) if driver is not None else None
    process = container.process if container is not None else None
    return isinstance(process, DriverProcess) and process.state is DriverState.RUNNING


def _state_of_upgrade(app: Body) -> str:
    """Return what is said of an application whose version is not the spec's, or waits for input to be stable."""
    phase = ((app.get("status") or {}).get("upgrade") or {}).get("phase", "")
    if phase in ("Gate", "Failed") and reason_of(app) == "StorageConflict":
        return "StorageConflict"  # of a later edit: the version under test runs on
    return f"Upgrade{phase}" if phase in ("Gate", "Failed", "Refused", "RolledBack") else "Running"


def _of_suspended(status: Body, pods: list[Body]) -> Iterator[str]:
    if pods and status.get("phase") != "Completed":
        yield "is suspended and has pods"
    if status.get("phase") not in ("Suspended", "Completed", "Pending"):
        yield f"is to be suspended and is {status.get('phase')}"


def _of_running(w: World, app: Body, pods: list[Body]) -> Iterator[str]:
    metadata, status, name = app["metadata"], app.get("status") or {}, app["metadata"]["name"]
    details = ("Running", "StatePartitionsKept", _state_of_upgrade(app))
    if status.get("phase") != "Running" or reason_of(app) not in details:
        yield f"is {status.get('phase')} because of {reason_of(app)}"
    available = [it["status"] for it in status.get("conditions", ()) if it["type"] == "Available"]
    if available != ["True"]:
        yield f"runs, and Available is {available}"
    yield from _of_upgrade(status.get("upgrade") or {})
    if FINALIZER not in metadata.get("finalizers", ()):
        yield "has no finalizer"
    driver = w.api.find(w.driver_path(name))
    if driver is None:
        yield "has no driver"
        return
    yield from _of_driver(w, app, driver)
    yield from _of_short_pods(w, pods)
    yield from _of_places(w, app)
    executors = [pod for pod in pods if _labels(w, pod)[LABEL_ROLE] == ROLE_EXECUTOR]
    if not w.driver_may(name):  # rights are looked at again when executors are missing; until then ended ones stay
        executors = [pod for pod in executors if pod["status"].get("phase") in ("Pending", "Running")]
    epoch = _labels(w, driver)[LABEL_EPOCH]
    right = [
        pod for pod in executors if pod["status"].get("phase") == "Running" and _labels(w, pod)[LABEL_EPOCH] == epoch
    ]
    yield from _of_autoscaling(app)
    wanted = _wanted_executors(app)
    if len(right) != wanted or len(executors) != wanted:
        yield f"has {len(right)} right ones of {len(executors)} executors, and wants {wanted}"


def _of_upgrade(upgrade: Body) -> Iterator[str]:
    """Whoever waits for input is at rest once that is noted; what begins again by itself is not."""
    if upgrade.get("phase") == "Refused" and upgrade.get("reason") == "StatePartitionsKept":
        yield "has an upgrade that was deferred"
    if upgrade.get("phase") == "Gate" and not upgrade.get("idleStartTime"):
        yield "has a version at the gate that does not count as idle yet"


def _of_autoscaling(app: Body) -> Iterator[str]:
    asked, reported = app["spec"].get("autoscaling") or {}, (app.get("status") or {}).get("autoscaling") or {}
    mode = asked.get("mode", "Off")
    if reported.get("mode", "Off") != mode:
        yield f"is to be autoscaled in mode {mode}, and its status says {reported.get('mode')}"
    if mode == "Active" and not asked["minExecutors"] <= reported.get("target", 0) <= asked["maxExecutors"]:
        yield f"has the target {reported.get('target')}, out of its bounds"
    if reported.get("reason") in ("ScaleUpSoon", "ScaleDownSoon"):
        yield f"is about to have advice: {reported['reason']}"
    if mode != "Active" and "target" in reported:
        yield f"has a target in mode {mode}"


def _wanted_executors(app: Body) -> int:
    if (app["spec"].get("autoscaling") or {}).get("mode") == "Active":
        target: int = (app.get("status") or {}).get("autoscaling", {}).get("target", 0)
        return target
    instances: int = app["spec"]["executor"]["instances"]
    return instances


def _of_short_pods(w: World, pods: list[Body]) -> Iterator[str]:
    """What comes of them decides how the application goes on, also of one whose version before has completed."""
    pods = [pod for pod in pods if _is_seen(w, pod)]
    if any(_labels(w, pod)[LABEL_ROLE] == ROLE_REHEARSAL for pod in pods):
        yield "has the pod of a rehearsal"
    if any(_labels(w, pod)[LABEL_ROLE] == ROLE_REPARTITION for pod in pods):
        yield "has the pod of a repartition"


def _of_places(w: World, app: Body) -> Iterator[str]:
    """What a rehearsal leaves is in the storage no longer than the copy that it began with."""
    metadata = app["metadata"]
    if w.check.wishes[metadata["uid"]].ever_lost:
        return
    upgrade = (app.get("status") or {}).get("upgrade") or {}
    known = {*upgrade.get("obsolete", ()), upgrade.get("rollbackSnapshot", {}).get("copy", "")}
    root = f"{app['spec']['storage']['uri'].removeprefix('s3://')}/{metadata['namespace']}/{metadata['name']}{PLACES}"
    for key in w.store.keys(root):
        place = key.removeprefix(root).partition("/")[0]
        of_zombie = f"{root}{place}" in w.places_of_zombies
        if place not in known and not of_zombie and metadata["uid"].replace("-", "")[:8] in place:
            yield f"{key} is left, and nobody will remove it"


def _of_driver(w: World, app: Body, driver: Body) -> Iterator[str]:
    metadata, status = driver["metadata"], app.get("status") or {}
    container = w.find_container(metadata["uid"])
    process = container.process if container is not None else None
    if "deletionTimestamp" in metadata:
        yield "its driver is to go"
    if metadata["annotations"][ANNOTATION_SPEC_HASH] != _in_force(w, app):
        yield "its driver has another spec"
    if metadata["annotations"][ANNOTATION_APP_UID] != app["metadata"]["uid"]:
        yield "its driver is another application's"
    if int(_labels(w, driver)[LABEL_EPOCH]) > int(status.get("epoch", 0)):
        yield "its driver has a later epoch than its status"
    if not isinstance(process, DriverProcess) or process.state is not DriverState.RUNNING:
        yield "its driver does not run"
    elif process.hangs or process.end_with is not None or process.finish_soon:
        yield "its driver hangs, or is about to end"


def _left_secrets(w: World, names: set[str]) -> Iterator[str]:
    pods = {pod["metadata"]["uid"] for pod in w.api.all(PODS)}
    for secret in w.api.all(SECRETS, NAMESPACE):
        name, labels = secret["metadata"]["name"], secret["metadata"].get("labels", {})
        if labels.get(LABEL_MANAGED_BY) == MANAGED_BY and labels.get(LABEL_APP) not in names:
            yield f"Secret {name} has no application"
        owners = {owner["uid"] for owner in secret["metadata"].get("ownerReferences", ())}
        if LABEL_EPOCH in labels and not owners & pods:
            yield f"Secret {name} is the configuration of a pod that is gone"


def _leftovers(w: World) -> Iterator[str]:
    names = {app["metadata"]["name"] for app in w.api.all(APPS)}
    for pod in w.api.all(PODS):
        if _labels(w, pod).get(LABEL_APP) not in names | {None}:
            yield f"pod {pod['metadata']['name']} has no application"
    yield from _left_secrets(w, names)
    for path, body in w.api.objects.items():
        labels = body["metadata"].get("labels", {})
        rights = "/rbac." in path or "/serviceaccounts/" in path
        if rights and labels.get(LABEL_MANAGED_BY) == MANAGED_BY and labels.get(LABEL_APP) not in names:
            yield f"{path} has no application"
    for name in (ORDERS, "billing"):
        prefix = f"{BUCKET}/apps/{NAMESPACE}/{name}"
        if name not in names and prefix in w.to_be_emptied:
            left = w.left_by_living(prefix)
            if left:
                yield f"{len(left)} objects are left of {name}, which is gone: {left[0]} …"
