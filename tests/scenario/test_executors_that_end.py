"""Executors that end at once: few pods are made, an upgrade to them fails at its gate in minutes, and nothing is lost.

Time is simulated. The operator dies now and then; pauses are the driver's and survive it.
"""

from collections.abc import Callable

import pytest

from tests.scenario import driver
from tests.scenario.api_server import PODS, Body
from tests.scenario.faults import Fault
from tests.scenario.paced_executors import Illness, PacedExecutors
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Course, Result, run_course
from tests.scenario.world import NAMESPACE, ORDERS, World
from tidegate.app.rules.upgrade import gate
from tidegate_spark.executors.executor_back_off import LONGEST_PAUSE, BackOff

SEEDS = range(4)
WANTED = 3
GOOD, ILL = "shop/orders:1", "shop/orders:2"
GATE_SECONDS = 180.0
"""Within which a gate fails: three ends, with a pause of 10 s between, and an operator that dies meanwhile."""
_APPS = f"/apis/tidegate.dev/v1alpha1/namespaces/{NAMESPACE}/streamingapps"


@pytest.fixture(autouse=True)
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers have executors that may end, and that are paced."""
    monkeypatch.setattr(driver, "DriversExecutors", PacedExecutors)
    monkeypatch.setattr(PacedExecutors, "made", 0)
    monkeypatch.setattr(PacedExecutors, "ill", staticmethod(lambda image: None))


def fall_ill(image: str, illness: Illness | None) -> None:
    """Have executors of an image end from now on, or live."""
    PacedExecutors.ill = staticmethod(lambda its: illness if its == image else None)


def begin(w: World, image: str) -> None:
    """Have an operator, bad weather for what it reads, and an application of three executors."""
    w.replicas = 1
    w.faults.faults = {Fault.ERROR: 0.05, Fault.THROTTLED: 0.05, Fault.UNSENT: 0.02}
    w.start_operator()
    spec: Body = {
        "application": {"image": image, "main": "local:///opt/app/main.py", "runtime": "Image"},
        "storage": {"uri": "s3://streams/apps", "deletionPolicy": "Retain"},
        "driver": {"stopGracePeriodSeconds": 30},
        "executor": {"instances": WANTED},
        "control": {"retentionSeconds": 60},
        "restart": {"policy": "OnFailure"},
        "upgrade": {"mode": "Snapshot", "stableBatches": 2, "timeoutSeconds": 3600, "rollbackPolicy": "OnFailure"},
    }
    manifest = {"apiVersion": "tidegate.dev/v1alpha1", "metadata": {"name": ORDERS, "namespace": NAMESPACE}}
    w.api.create(_APPS, {**manifest, "spec": spec})


def status(w: World) -> Body:
    found: Body = (w.app(ORDERS) or {}).get("status") or {}
    return found


def upgrade(w: World) -> Body:
    found: Body = status(w).get("upgrade") or {}
    return found


def runs(w: World) -> bool:
    return any(each.ready for each in w.drivers()) and status(w).get("phase") == "Running"


async def until(w: World, reached: Callable[[], bool], seconds: float, what: str) -> float:
    """Return after how many seconds something is so; it is a violation if it is not in time."""
    for passed in range(int(seconds)):
        if reached() or w.violations:
            return float(passed)
        if w.rng.random() < 0.01 and w.leader is not None:
            w.crash(w.leader, "somebody deletes its pod")
        if not w.operators:
            w.start_operator()
        await w.sleep(1.0)
    w.violated(f"not within {seconds:.0f} s: {what}; {reason_of(w.app(ORDERS) or {})} {upgrade(w)}")
    return seconds


async def stable(w: World) -> None:
    begin(w, GOOD)
    await until(w, lambda: "lastStable" in status(w), 900, "a stable version")


async def edited(w: World, result: Result) -> None:
    """A version that runs is edited into one whose executors end at once."""
    await stable(w)
    fall_ill(ILL, Illness(w.some(0.0, 8.0)))
    before, made = w.check.batches, PacedExecutors.made
    w.api.patch(w.app_path(ORDERS), {"spec": {"application": {"image": ILL}}})
    await until(w, lambda: upgrade(w).get("phase") == "Gate", 300, "the gate")
    await until(w, lambda: upgrade(w).get("phase") in ("RollingBack", "RolledBack"), GATE_SECONDS, "the gate's end")
    if upgrade(w).get("reason") != "ExecutorsFailing" or "Unrecognized VM option" not in upgrade(w).get("message", ""):
        w.violated(f"the upgrade does not say why: {upgrade(w)}")
    await until(w, lambda: upgrade(w).get("phase") == "RolledBack" and runs(w), 300, "the rollback's end")
    await until(w, lambda: w.check.batches > before + 2, 300, "batches of the previous version")
    if PacedExecutors.made - made > 12 * WANTED:
        w.violated(f"{PacedExecutors.made - made} executors were made for an upgrade that failed")


async def first_start(w: World, result: Result) -> None:
    """Executors end at once from the start, for two hours; then the cause is gone."""
    life = w.some(0.0, 40.0)
    fall_ill(GOOD, Illness(life, 137, "OOMKilled", ""))
    begin(w, GOOD)
    reported = False
    for _ in range(240):
        for _ in range(30):
            await w.sleep(1.0)
            reported = reported or (
                reason_of(w.app(ORDERS) or {}) == "OutOfMemory" and "requests.memory" in str(status(w))
            )
        if w.rng.random() < 0.1 and w.leader is not None:
            w.crash(w.leader, "somebody deletes its pod")
        if not w.operators:
            w.start_operator()
    rounds = 8 + 7200 / LONGEST_PAUSE
    if PacedExecutors.made > 2 * rounds * WANTED:
        w.violated(f"{PacedExecutors.made} executors were made in two hours")
    if not reported:
        w.violated(f"nobody says why: {status(w)}")
    fall_ill(GOOD, None)
    await until(w, lambda: "lastStable" in status(w) and runs(w), 900, "the application's run")
    if status(w).get("restarts", {}).get("total"):
        w.violated(f"the driver was restarted for its executors: {status(w)['restarts']}")


async def evicted(w: World, result: Result) -> None:
    """At the gate the cluster evicts executors again and again: that is not the version's fault."""
    await stable(w)
    w.api.patch(w.app_path(ORDERS), {"spec": {"application": {"image": ILL}}})
    await until(w, lambda: upgrade(w).get("phase") == "Gate", 300, "the gate")
    for _ in range(60):
        for pod in w.api.all(PODS):
            if "-exec-" in pod["metadata"]["name"] and pod["status"].get("phase") == "Running":
                w.cluster.evict(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
        await w.sleep(10.0)
        if upgrade(w).get("phase") in ("RollingBack", "RolledBack"):
            w.violated(f"the version is blamed for evictions: {upgrade(w)}")
            return
    await until(w, lambda: upgrade(w).get("phase") == "Completed" and runs(w), 1200, "a stable version")


COURSES: dict[str, Course] = {"edit": edited, "first start": first_start, "evictions": evicted}


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("course", COURSES)
def test_few_are_made_the_gate_ends_and_all_runs_again(course: str, seed: int) -> None:
    assert run_course(seed, COURSES[course]).violations == []


@pytest.mark.usefixtures("quiet_log")
def test_a_driver_without_pauses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackOff, "target", lambda self, wanted, now: wanted)
    assert any("executors were made" in text for text in run_course(0, first_start).violations)


@pytest.mark.usefixtures("quiet_log")
def test_a_gate_that_waits_for_its_timeout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "failing_executors_problem", lambda o, now: None)
    assert any("not within 180 s: the gate's end" in text for text in run_course(0, edited).violations)
