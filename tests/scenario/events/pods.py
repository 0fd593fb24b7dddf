"""What befalls drivers and pods."""

from tests.scenario.api_server import PODS, Body
from tests.scenario.driver import DriverProcess
from tests.scenario.events.registry import event
from tests.scenario.world import World
from tidegate_spark.contract.protocol import LABEL_APP, LABEL_ROLE, ROLE_EXECUTOR, ROLE_REPARTITION, Notice
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.outcome import Outcome


def _some_driver(w: World) -> DriverProcess | None:
    drivers = w.drivers()
    return w.rng.choice(drivers) if drivers else None


@event(4)
def crash_driver(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    reason = w.rng.choice(
        (
            Reason.APPLICATION_FAILED,
            Reason.DRIVER_CRASHED,
            Reason.BROKER_UNAVAILABLE,
            Reason.STOPPED,
            Reason.STORAGE_UNAVAILABLE,
        )
    )
    message = w.rng.choice(("", "because", "because"))
    driver.crash(Outcome(reason, message))
    return f"{driver.holder.process} ends with {reason.value if message else 'no word'}"


@event(3)
def hang_query(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    driver.hang_soon = True
    return f"the next batch of {driver.holder.process} does not go on"


@event(1)
def notice(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    driver.notices = (*driver.notices, Notice(len(driver.notices) + 1, "Renamed", "A checkpoint was redirected."))
    return f"{driver.holder.process} has something to tell"


@event(1)
def finish_driver(w: World) -> str | None:
    driver = _some_driver(w)
    if driver is None:
        return None
    driver.finish_soon = True
    return f"{driver.holder.process} finishes its work"


def _some_pod(w: World) -> str | None:
    pods = [body for body in w.api.all(PODS) if LABEL_APP in body["metadata"].get("labels", {})]
    drivers = [body for body in pods if body["metadata"]["labels"].get(LABEL_ROLE) != ROLE_EXECUTOR]
    chosen = drivers if drivers and w.rng.random() < 0.7 else pods
    return path_of(w.rng.choice(chosen)) if chosen else None


def path_of(body: Body) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{body['metadata']['namespace']}/pods/{body['metadata']['name']}"


@event(3)
def delete_pod(w: World) -> str | None:
    path = _some_pod(w)
    if path is None:
        return None
    grace = w.rng.choice((None, None, 0))
    w.api.delete(path, grace=grace)
    return f"somebody deletes {path}" + (" by force" if grace == 0 else "")


@event(3)
def lose_repartition(w: World) -> str | None:
    pods = [body for body in w.api.all(PODS) if body["metadata"].get("labels", {}).get(LABEL_ROLE) == ROLE_REPARTITION]
    if not pods:
        return None
    path = path_of(w.rng.choice(pods))
    if w.rng.random() < 0.5:
        w.cluster.evict(path)
        return f"the kubelet evicts {path}"
    w.api.delete(path, grace=w.rng.choice((None, 0)))
    return f"somebody deletes {path}"


@event(2)
def evict_pod(w: World) -> str | None:
    path = _some_pod(w)
    if path is None:
        return None
    w.cluster.evict(path)
    return f"the kubelet evicts {path}"
