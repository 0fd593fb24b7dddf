"""What courses have in common in which an application's state is repartitioned, and something happens to it."""

from collections.abc import Callable

from tests.scenario.api_server import PODS, Body
from tests.scenario.desired import differences
from tests.scenario.events import copies, people
from tests.scenario.schedule import fix
from tests.scenario.world import BUCKET, NAMESPACE, ORDERS, World
from tidegate_spark.contract.repartition_protocol import REPARTITION_PREFIX

PREFIX = f"{BUCKET}/apps/{NAMESPACE}/{ORDERS}"
_CHECK_EVERY, _LONGEST, _AT_REST = 20.0, 4000.0, 4
"""Seconds between two checks, and in all; so many checks in a row find everything at rest."""


def status_of(w: World) -> Body:
    """Return the application's status."""
    return (w.app(ORDERS) or {}).get("status") or {}


def phase_of(w: World) -> str:
    """Return how far its upgrade is, empty without one."""
    app = w.app(ORDERS)
    return "" if app is None else people.phase_of_upgrade(app)


async def until(w: World, what: str, is_so: Callable[[], object], seconds: float = _CHECK_EVERY) -> None:
    """Wait until something is so, which has to come."""
    for _ in range(int(_LONGEST / seconds)):
        if is_so():
            return
        await w.sleep(seconds)
    w.violated(f"{ORDERS} never comes to this: {what}")


async def repartitioned(w: World, is_so: Callable[[World], bool], rules: Body, seconds: float = _CHECK_EVERY) -> None:
    """Have an application, a backup of its storage, and then another number of partitions, until it is so far."""
    w.faults.clear()
    w.start_operator()
    people.create(w, ORDERS, upgrade={"mode": "Snapshot", "rehearsal": None, "stableBatches": 1, "timeoutSeconds": 600})
    people.edit(w, ORDERS, {"restart": {"policy": "OnFailure", "maxFailures": 10}})
    await until(w, "stable", lambda: "lastStable" in status_of(w))
    await until(w, "backed up", lambda: copies.back_up_storage(w) and w.copies)
    people.edit(w, ORDERS, {"state": {"partitions": 8}, "upgrade": rules})

    await until_repartitioned(w, "repartitioned", lambda: is_so(w), seconds)


async def until_repartitioned(w: World, what: str, is_so: Callable[[], object], seconds: float = _CHECK_EVERY) -> None:
    """Wait until something is so by a repartition; an attempt may fail for good, and another one is asked for then."""

    def asked_for() -> object:
        if not is_so() and phase_of(w) not in people.UNDER_WAY:
            people.repartition_stable(w)
        return is_so()

    await until(w, what, asked_for, seconds)


def lineage_run_in(w: World) -> int:
    """Return the lineage in which the application committed a batch last."""
    return w.check.runs_in.get(PREFIX, 0)


def is_made(w: World) -> bool:
    """Return whether an attempt has said that its lineage is whole."""
    return w.facts["repartition done"] > 0


def marks(w: World) -> list[str]:
    """Return the keys of the objects that say that a lineage of the application is being made."""
    return [key for key in w.store.objects if f"/{ORDERS}/{REPARTITION_PREFIX}/" in key]


async def not_run_in(w: World, is_so: Callable[[World], bool] = is_made) -> None:
    """Have an attempt made, or only begun, so that no driver comes up in its lineage: a quota has no room for it."""

    def comes_to_it(world: World) -> bool:
        so = is_so(world)
        pods = [pod for pod in world.api.all(PODS) if "-repartition-" in pod["metadata"]["name"]]
        world.quota = so or any(pod.get("status", {}).get("phase") == "Running" for pod in pods)
        return so

    await repartitioned(w, comes_to_it, {}, seconds=0.5)


async def at_rest(w: World) -> None:
    """Wait until everything is as it should be, and stays so; people do what only they can."""
    checks = 0
    for _ in range(int(_LONGEST / _CHECK_EVERY)):
        checks = 0 if differences(w) else checks + 1
        if checks == _AT_REST:
            return
        fix(w)
        await w.sleep(_CHECK_EVERY)
    w.violated(f"no rest: {'; '.join(differences(w))}")
