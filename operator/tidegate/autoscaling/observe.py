"""Builds the autoscaler's observation of an application from the index. Writes nothing."""

from __future__ import annotations

from tidegate.api.streaming_app import StreamingApp, UpgradePhase
from tidegate.autoscaling.algorithm.recommend import Sight
from tidegate.autoscaling.algorithm.situation import Obstacle
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.reports import find_pod, valid_report
from tidegate.engine.resource_key import Key
from tidegate.pods.records.names import driver_pod_name
from tidegate.pods.records.record import process_of
from tidegate.pods.spark.settings import task_slots
from tidegate_spark.contract.protocol import ROLE_DRIVER, AgentReport, DriverState

_COMES_FIRST = frozenset({UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.ROLLING_BACK})


def see(index: Index, key: Key, now: float, steady: float) -> Sight | None:
    """Return what there is to see, None if the application is gone, unreadable, or without the status of its driver.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        now: seconds since the epoch.
        steady: seconds of the monotonic clock, by which reports age.
    """
    known = index.app(key)
    if not isinstance(known, KnownApp):
        return None
    app, driver = known.app, find_pod(index.pods(key), driver_pod_name(key[1]), ROLE_DRIVER)
    if driver is not None and not app.status.lineage:
        return None  # the status was lost: the application's reconcile first takes over what the driver reports
    timed = valid_report(index.reports.get(key), known, driver, steady)
    report = timed.report if timed is not None else None
    obstacle = _obstacle(app, report)
    return Sight(
        now=now,
        steady=steady,
        wanted=app.spec.executor.instances,
        # Of the version that runs, as the measurements are: that goes on while the state is copied for an edit.
        cores=(driver.executor_slots if driver is not None else 0)
        or task_slots(app.spec.executor.cores, app.spec.spark_conf),
        version=f"{driver.spec_hash if driver is not None else app.status.applied_spec_hash}/{app.status.lineage}",
        report=report,
        taken_at=timed.taken_at if timed is not None else 0.0,
        process=process_of(driver) if driver is not None else "",
        obstacle=obstacle,
        upgrade_phase=app.status.upgrade.phase.value if obstacle is Obstacle.UPGRADING and app.status.upgrade else "",
    )


def _obstacle(app: StreamingApp, report: AgentReport | None) -> Obstacle | None:
    """Return what keeps the number of executors as it is, None if nothing does.

    An upgrade does from the stop on: until a version is stable its measurements are those of its start, and a change of
    executors would make batches last by which it is judged. While the state is copied, or the version rehearsed, the
    old one runs as ever.
    """
    if app.spec.suspend:
        return Obstacle.SUSPENDED
    upgrade = app.status.upgrade
    if upgrade is not None and upgrade.phase is UpgradePhase.REPARTITIONING:
        return Obstacle.REPARTITIONING
    if upgrade is not None and upgrade.phase in _COMES_FIRST:
        return Obstacle.UPGRADING
    if report is None:
        return Obstacle.NO_REPORT
    return _obstacle_in(report)


def _obstacle_in(report: AgentReport) -> Obstacle | None:
    if report.state is not DriverState.RUNNING or not report.ready:
        return Obstacle.NOT_READY
    if report.control.paused:
        return Obstacle.PAUSED
    active = [query for query in report.queries if query.active]
    if any(query.continuous for query in active):
        return Obstacle.CONTINUOUS
    return Obstacle.REAL_TIME if any(query.real_time for query in active) else None
