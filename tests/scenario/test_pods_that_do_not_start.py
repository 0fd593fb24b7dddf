"""A pod whose volume does not exist never stays without a named cause, and an edit that names one stops nothing.

Time is simulated: what is promised after a patience is looked at each second of it.
"""

from typing import Any

import pytest

from tests.scenario.api_server import PODS, Body
from tests.scenario.events.people import edit
from tests.scenario.faults import Fault
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Course, Result, run_course
from tests.scenario.world import NAMESPACE, ORDERS, World
from tidegate.app.dry_runs.reference_checks import ReferenceChecks
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.pods import work_pod
from tidegate.cache.pods.start_events import Delays, StartEvents

SEEDS = range(6)
PATIENCE = 120.0
BOUND = 45.0
"""Seconds after the patience within which the cause is named: two failed reads, their pauses and the status's write."""
CAUSES = ("ReferenceMissing", "UpgradeGate", "UpgradeRollingBack")
"""What may be said of an application whose driver lacks a volume; at the gate, the cause is in the message."""
BACK = 90.0
"""Seconds within which the previous version runs again once its successor was given up."""
_MOUNT = {"name": "rules", "mountPath": "/rules"}
VOLUME = {
    "podTemplate": {
        "spec": {
            "volumes": [{"name": "rules", "configMap": {"name": "rules"}}],
            "containers": [{"name": "driver", "volumeMounts": [_MOUNT]}],
        }
    }
}
HELD = 600.0
"""Seconds for which an edit names a ConfigMap that does not exist."""
COME = 60.0
"""Seconds after which its upgrade is under way once that exists: the next question, failed reads, and the write."""
_CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_APPS = f"/apis/tidegate.dev/v1alpha1/namespaces/{NAMESPACE}/streamingapps"


def create(w: World, driver: Body) -> None:
    spec: Body = {
        "application": {"image": "shop/orders:1", "main": "local:///opt/app/main.py", "runtime": "Image"},
        "storage": {"uri": "s3://streams/apps", "deletionPolicy": "Retain"},
        "driver": {"stopGracePeriodSeconds": 30, **driver},
        "executor": {"instances": 1},
        "control": {"retentionSeconds": 60},
        "restart": {"policy": "OnFailure"},
        "upgrade": {"mode": "Snapshot", "stableBatches": 2, "timeoutSeconds": 1800, "rollbackPolicy": "OnFailure"},
    }
    manifest = {"apiVersion": "tidegate.dev/v1alpha1", "metadata": {"name": ORDERS, "namespace": NAMESPACE}}
    w.api.create(_APPS, {**manifest, "spec": spec})


def begin(w: World, driver: Body) -> None:
    """Have one operator, bad weather for what it reads, and an application."""
    w.replicas = 1
    w.faults.faults = {Fault.ERROR: 0.05, Fault.THROTTLED: 0.05, Fault.UNSENT: 0.02}
    w.start_operator()
    create(w, driver)


class Watcher:
    """Looks at the world each second, and notes for how long a pod lacked a volume without anybody saying so."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.silent: dict[str, float] = {}
        self.down = 0.0
        """Since when no driver runs, 0 if one does."""
        self.longest_down = 0.0

    async def passes(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            await self.world.sleep(1.0)
            self.check()

    async def until(self, reached: Any, seconds: float) -> float:
        """Return after how many seconds something is so; it is a violation if it is not in time."""
        for passed in range(int(seconds)):
            if reached():
                return float(passed)
            await self.passes(1)
        self.world.violated(f"not within {seconds} s: {reached.__name__}, {self.world.app(ORDERS)}")
        return seconds

    def check(self) -> None:
        now, app = self.world.now(), self.world.app(ORDERS) or {}
        for pod in self.world.api.all(PODS):
            uid, lacks = pod["metadata"]["uid"], "ContainerCreating" in str(pod["status"])
            if not lacks or "deletionTimestamp" in pod["metadata"] or is_explained(app):
                self.silent.pop(uid, None)
                continue
            since = self.silent.setdefault(uid, now)
            if now - since > PATIENCE + BOUND:
                self.world.violated(f"{pod['metadata']['name']} lacks a volume for {now - since:.0f} s; nobody says so")
        runs = any(driver.ready for driver in self.world.drivers())
        self.down = 0.0 if runs else self.down or now
        self.longest_down = max(self.longest_down, now - self.down if self.down else 0.0)


def is_explained(app: Body) -> bool:
    conditions = (app.get("status") or {}).get("conditions", ())
    reported = [each for each in conditions if each["type"] == "Ready"]
    upgrade = (app.get("status") or {}).get("upgrade") or {}
    return any(each["reason"] in CAUSES for each in reported) and "ConfigMap rules does not exist" in str(
        (reported, upgrade)
    )


def runs_ready(w: World) -> bool:
    app = w.app(ORDERS) or {}
    return (app.get("status") or {}).get("phase") == "Running" and reason_of(app) in ("Running", "UpgradeRolledBack")


def put_config_map(w: World) -> None:
    w.api.create(_CONFIG_MAPS, {"metadata": {"name": "rules", "namespace": NAMESPACE}, "data": {}})


async def first_start(w: World, result: Result) -> None:
    """The volume is missing from the start; half an hour later somebody makes the ConfigMap."""
    begin(w, VOLUME)
    watcher = Watcher(w)
    await watcher.passes(1800)
    if not is_explained(w.app(ORDERS) or {}):
        w.violated(f"half an hour later nothing is said: {w.app(ORDERS)}")
    put_config_map(w)
    await watcher.until(lambda: runs_ready(w), 240)


def upgrade_of(w: World) -> Body:
    found: Body = ((w.app(ORDERS) or {}).get("status") or {}).get("upgrade") or {}
    return found


def epoch_of(w: World) -> int:
    return int(((w.app(ORDERS) or {}).get("status") or {}).get("epoch", 0))


async def become_stable(w: World, watcher: Watcher) -> None:
    def is_stable() -> bool:
        return "lastStable" in ((w.app(ORDERS) or {}).get("status") or {})

    await watcher.until(is_stable, 900)


async def named(w: World, result: Result) -> None:
    """A version that runs is edited into one whose ConfigMap does not exist; ten minutes later somebody makes it."""
    begin(w, {})
    watcher = Watcher(w)
    await become_stable(w, watcher)
    edit(w, ORDERS, {"driver": VOLUME})
    watcher.longest_down, before = 0.0, epoch_of(w)
    await watcher.passes(HELD)
    if watcher.longest_down or epoch_of(w) != before:
        w.violated(f"what ran was stopped for an edit that cannot start: {upgrade_of(w)}")
    refused = upgrade_of(w)
    if (refused.get("phase"), refused.get("reason")) != ("Refused", "ReferenceMissing"):
        w.violated(f"the edit is not held: {refused}")
    if "ConfigMap rules (spec.driver.podTemplate.spec.volumes[0].configMap.name)" not in refused.get("message", ""):
        w.violated(f"it is not named where it is missing: {refused}")
    put_config_map(w)

    def is_under_way() -> bool:
        return upgrade_of(w).get("phase") != "Refused"

    def is_completed() -> bool:
        return upgrade_of(w).get("phase") == "Completed"

    await watcher.until(is_under_way, COME)
    await watcher.until(is_completed, 900)


async def removed(w: World, result: Result) -> None:
    """A version that runs is edited into one whose ConfigMap is deleted while what runs is being stopped for it."""
    begin(w, {})
    watcher = Watcher(w)
    await become_stable(w, watcher)
    put_config_map(w)
    edit(w, ORDERS, {"driver": VOLUME})

    def is_being_stopped() -> bool:
        return upgrade_of(w).get("phase") in ("Stopping", "Gate")

    def is_rolled_back() -> bool:
        return upgrade_of(w).get("phase") == "RolledBack" and runs_ready(w)

    await watcher.until(is_being_stopped, 300)
    w.api.delete(f"{_CONFIG_MAPS}/rules")
    watcher.longest_down = 0.0
    await watcher.until(is_rolled_back, 900)
    upgrade = upgrade_of(w)
    if upgrade.get("reason") != "ReferenceMissing" or "ConfigMap rules does not exist" not in upgrade.get(
        "message", ""
    ):
        w.violated(f"the upgrade does not say why: {upgrade}")
    if watcher.longest_down > PATIENCE + BOUND + BACK:
        w.violated(f"nothing ran for {watcher.longest_down:.0f} s")


COURSES: dict[str, Course] = {"first start": first_start, "removed": removed}


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("course", COURSES)
def test_a_missing_volume_is_named_after_the_patience_and_an_edit_is_undone(course: str, seed: int) -> None:
    assert run_course(seed, COURSES[course]).violations == []


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_edit_that_names_a_missing_config_map_stops_nothing_and_goes_on_once_it_exists(seed: int) -> None:
    assert run_course(seed, named).violations == []


async def _check_nothing(self: ReferenceChecks, o: Observation) -> CheckedReferences:
    return CheckedReferences()


@pytest.mark.usefixtures("quiet_log")
def test_an_operator_that_does_not_check_what_an_edit_names_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceChecks, "check", _check_nothing)
    assert any("was stopped for an edit" in text for text in run_course(0, named).violations)


@pytest.mark.usefixtures("quiet_log")
def test_an_operator_that_asks_once_for_what_is_missing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.app.dry_runs.reference_checks.MISSING_LASTS", 86400.0)
    assert any("is_under_way" in text for text in run_course(0, named).violations)


async def _never_check(self: StartEvents, pods: Any, patience: float) -> Delays:
    return Delays()


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("course", COURSES)
def test_an_operator_that_reads_no_events_is_noticed(course: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartEvents, "check", _never_check)
    assert any("nobody says so" in text for text in run_course(0, COURSES[course]).violations)


@pytest.mark.usefixtures("quiet_log")
def test_an_operator_that_waits_for_news_of_such_a_pod_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartEvents, "due_in", lambda self, pods, patience: None)
    assert any("nobody says so" in text for text in run_course(0, first_start).violations)


@pytest.mark.usefixtures("quiet_log")
def test_a_gate_that_waits_for_its_timeout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_pod, "is_named", lambda problem: False)
    assert any("not within" in text for text in run_course(0, removed).violations)
