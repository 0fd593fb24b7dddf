"""What is said of a pod none of whose containers begins, and when an upgrade ends for it. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import Phase, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.observation import pods_of, with_pods
from tidegate.app.rules.plan import decide
from tidegate.pods.records.faults import is_named, start_problem
from tidegate.pods.records.record import PodRecord
from tidegate.pods.records.start_delay import Obstacle, StartDelay
from tidegate.snapshots.observation import start_timeout
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_testing import snapshot_observations as of_snapshots
from tidegate_testing.observations import (
    NOW,
    app_with,
    deleted,
    driver_of,
    executor_of,
    launched,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.plans import acts, status_of, verdict_of
from tidegate_testing.upgrades import record, under_test

MISSING = StartDelay(
    Obstacle.REFERENCE,
    'MountVolume.SetUp failed for volume "rules" : configmap "rules" not found',
    "ConfigMap rules",
)
VOLUME = StartDelay(Obstacle.VOLUME, "Multi-Attach error for volume")
SANDBOX = StartDelay(Obstacle.SANDBOX, "Failed to create pod sandbox: no addresses left")
PULLING = StartDelay(Obstacle.PULLING, 'Pulling image "shop/orders:1"')
UNNAMED = StartDelay(Obstacle.UNNAMED)
UNREAD = StartDelay(Obstacle.UNREAD, "events is forbidden")
DELAYS: dict[str, tuple[StartDelay, str, str, tuple[str, ...]]] = {
    "reference": (MISSING, "ReferenceMissing", "Stalled", ("ConfigMap rules does not exist", "orders-driver")),
    "volume": (VOLUME, "VolumeNotMounted", "Stalled", ("Multi-Attach error",)),
    "sandbox": (SANDBOX, "SandboxFailed", "Stalled", ("Node node0", "no addresses left")),
    "pulling": (PULLING, "ImagePulling", "Reconciling", ("Node node0", "shop/orders:1", "Nothing has to be done")),
    "unnamed": (UNNAMED, "PodNotStarting", "Stalled", ("node0", '"kubectl describe pod orders-driver -n shop"')),
    "unread": (UNREAD, "PodNotStarting", "Stalled", ("events is forbidden", '"kubectl describe pod orders-driver')),
}
PERSISTS = ("reference", "volume", "sandbox")


def stuck(app: StreamingApp, delay: StartDelay | None, **fields: Any) -> PodRecord:
    return driver_of(app, node="node0", silent_since=NOW - 130, delay=delay, **fields)


@pytest.mark.parametrize(("delay", "reason", "condition", "words"), DELAYS.values(), ids=DELAYS.keys())
def test_a_driver_whose_containers_do_not_begin_says_why(
    delay: StartDelay, reason: str, condition: str, words: tuple[str, ...]
) -> None:
    app = launched(app_with())
    plan = decide(observe(app, driver=stuck(app, delay)), NOW)
    assert verdict_of(plan) == (Phase.STARTING, condition, reason)
    assert [word for word in words if word not in plan.message] == []


def test_a_driver_that_no_scheduler_looks_at_names_the_field_that_chooses_one() -> None:
    pod = dataclasses.replace(stuck(launched(app_with()), UNNAMED), node="")
    problem = start_problem(pod)
    assert problem is not None
    assert "No scheduler has chosen a node" in problem.message
    assert "schedulerName" in problem.message


def test_an_executor_that_cannot_begin_is_why_executors_are_missing() -> None:
    app = launched(app_with())
    driver = running_driver(app)
    executor = executor_of(app, 1, running=False, phase="Pending", delay=MISSING)
    agent = report_of(driver, executors_running=0, executors_short_since=NOW - 300)
    plan = decide(observe(app, driver=driver, executors=(executor,), agent=agent), NOW)
    assert verdict_of(plan)[1:] == ("Stalled", "ExecutorsMissing")
    assert "ConfigMap rules does not exist" in plan.message


def test_a_purge_that_cannot_begin_says_why() -> None:
    app = deleted(launched(app_with({"storage.deletionPolicy": "Delete"})))
    purge = stuck(app, SANDBOX, name="orders-purge", role="purge")
    plan = decide(observe(app, purge=purge), NOW)
    assert verdict_of(plan) == (Phase.DELETING, "Stalled", "SandboxFailed")


@pytest.mark.parametrize(
    ("delay", "reason", "condition"),
    [(MISSING, "ReferenceMissing", "Stalled"), (PULLING, "ImagePulling", "Reconciling")],
)
def test_a_pod_of_a_snapshot_that_cannot_begin_says_why(delay: StartDelay, reason: str, condition: str) -> None:
    pod = of_snapshots.pod(phase="Pending", running=False, node="node0", delay=delay)
    app = of_snapshots.SUSPENDED
    seen = of_snapshots.observe(of_snapshots.snapshot(of_snapshots.begun(app)), app=app, taking=pod)
    assert of_snapshots.said(decide_snapshot(seen, NOW))[1:] == (condition, reason)
    assert start_timeout(seen) == 120


# --- upgrades ---


@pytest.mark.parametrize("kind", DELAYS)
@pytest.mark.parametrize("seconds", [100, 130])
def test_a_new_version_whose_pod_cannot_begin_is_rolled_back_after_the_patience_and_not_at_its_timeout(
    kind: str, seconds: float
) -> None:
    delay, reason, _, message = DELAYS[kind]
    new = under_test()
    plan = decide(observe(new, driver=stuck(new, delay)), NOW + seconds)
    rolled_back = kind in PERSISTS and seconds > 120
    assert (record(plan).phase is UpgradePhase.ROLLING_BACK) == rolled_back
    if rolled_back:
        assert record(plan).reason == reason
        assert acts(plan, do.DeleteDriver)
        assert [word for word in message if word not in record(plan).message] == []


@pytest.mark.parametrize(("timeout", "rolled_back"), [(60, True), (600, False)])
def test_the_patience_is_the_specs(timeout: int, rolled_back: bool) -> None:
    new = under_test(change={"podStartTimeoutSeconds": timeout})
    plan = decide(observe(new, driver=stuck(new, MISSING)), NOW + 100)
    assert (record(plan).phase is UpgradePhase.ROLLING_BACK) == rolled_back


@pytest.mark.parametrize(("age", "rolled_back"), [(10, False), (119, False), (130, True)])
def test_a_later_pod_of_a_version_under_test_has_the_patience_too(age: float, rolled_back: bool) -> None:
    """The first was drained after long, or a quota admitted none: what is wrong with this one may pass in a moment."""
    new, now = under_test(), NOW + 600
    plan = decide(observe(new, driver=stuck(new, MISSING, created_at=now - age)), now)
    if rolled_back:
        assert record(plan).phase is UpgradePhase.ROLLING_BACK
    else:
        assert not acts(plan, do.DeleteDriver)
        assert plan.wake_after is not None
        assert plan.wake_after <= 120 - age


def test_a_version_that_may_yet_start_says_at_its_timeout_that_it_did_not() -> None:
    new = under_test()
    plan = decide(observe(new, driver=stuck(new, UNNAMED)), NOW + 1795)
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.ROLLING_BACK, "UpgradeTimeout")
    assert "its driver pod did not start (PodNotStarting)" in record(plan).message


def test_what_persists_is_told_from_what_may_pass() -> None:
    app = launched(app_with())
    named = {kind for kind, (delay, *_) in DELAYS.items() if is_named(start_problem(stuck(app, delay)))}
    assert named == set(PERSISTS)
    assert not is_named(start_problem(stuck(app, None)))
    assert not is_named(start_problem(driver_of(app, unschedulable="0/3 nodes are available.")))


# --- observations ---


def test_what_delays_a_pod_is_filled_in_for_every_pod_of_an_application() -> None:
    app = launched(app_with())
    seen = observe(
        app,
        driver=stuck(app, None),
        executors=(executor_of(app, 1), executor_of(app, 2)),
        purge=stuck(app, None, name="orders-purge"),
        releasing=stuck(app, None, name="orders-release"),
        rehearsals=(stuck(app, None, name="orders-rehearsal-1"),),
        repartitions=(stuck(app, None, name="orders-repartition-1"),),
    )
    marked = with_pods(seen, lambda pod: dataclasses.replace(pod, delay=MISSING))
    assert len(pods_of(marked)) == 7
    assert {pod.delay for pod in pods_of(marked)} == {MISSING}
    assert pods_of(seen)[0] is seen.driver
    assert with_pods(seen, lambda pod: pod) == seen


def test_the_status_names_the_cause_of_a_first_start() -> None:
    app = launched(app_with())
    ready = status_of(decide(observe(app, driver=stuck(app, MISSING)), NOW)).condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "ReferenceMissing")
