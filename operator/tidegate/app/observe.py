"""Builds one application's Observation from the index. Writes nothing."""

from __future__ import annotations

from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.observation import Observation, is_reported
from tidegate.autoscaling.index import AutoscalingIndex
from tidegate.cache.access_age import access_ready
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.reports import find_pod, valid_report
from tidegate.engine.resource_key import Key
from tidegate.pods.records.names import driver_pod_name, purge_pod_name, release_pod_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord, of_driver
from tidegate.snapshots.index import SnapshotIndex
from tidegate_spark.contract.protocol import (
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    ROLE_SNAPSHOT,
)


def observe(index: Index, key: Key, platform: Platform, now: float) -> Observation | None:
    """Return everything a decision about an application may know, or None if it is gone or unreadable.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        platform: what the installation decides.
        now: seconds of the monotonic clock; old answers of agents are left out.
    """
    known = index.app(key)
    if not isinstance(known, KnownApp):
        return None
    pods = index.pods(key)
    driver = find_pod(pods, driver_pod_name(key[1]), ROLE_DRIVER) or _parted(index, known.app)
    agent = valid_report(index.reports.get(key), known, driver, now)
    executors = tuple(pod for pod in pods if pod.role == ROLE_EXECUTOR)
    return Observation(
        app=known.app,
        spec_hash=known.spec_hash,
        platform=index.platform_of(key[0], platform),
        driver=driver,
        executors=executors,
        executor_ends=_ends_of(index, key, driver),
        purge=find_pod(pods, purge_pod_name(key[1]), ROLE_PURGE),
        releasing=find_pod(pods, release_pod_name(key[1]), ROLE_SNAPSHOT),
        rehearsals=tuple(pod for pod in pods if pod.role == ROLE_REHEARSAL),
        repartitions=tuple(pod for pod in pods if pod.role == ROLE_REPARTITION),
        agent=agent,
        silence=index.silences.get(key, "") if agent is None else "",
        access_ready=access_ready(index.checked_access.age(key, now), driver, executors, agent),
        rival=index.rival(known.app),
        origin=_origin(index, known),
        origin_unreadable=_origin_is_unreadable(index, known),
        last_snapshot=index.of(SnapshotIndex).newest_ready(known.app),
        snapshots=index.of(SnapshotIndex).of_app(key) if _regards_snapshots(known.app) else (),
        refused_writes=index.of(SnapshotIndex).refused_writes(key) if known.metadata.deletion_timestamp else {},
        advice=index.of(AutoscalingIndex).advice(known.app),
        memory=index.memory(key),
        deciding_since=index.deciding_since,
    )


def _regards_snapshots(app: StreamingApp) -> bool:
    # Those of a schedule that somebody took away are there at the application's deletion, too.
    return app.spec.snapshots is not None or app.metadata.deletion_timestamp is not None


def _ends_of(index: Index, key: Key, driver: PodRecord | None) -> tuple[PodRecord, ...]:
    return tuple(pod for pod in index.last_ends.executors(key) if driver is not None and of_driver(pod, driver))


def _parted(index: Index, app: StreamingApp) -> PodRecord | None:
    # End and deletion can be so close that nothing is decided in between: its termination message would be lost.
    driver, status = index.last_ends.driver((app.metadata.namespace, app.metadata.name)), app.status
    if driver is None or driver.ended is None or app.metadata.deletion_timestamp is not None:
        return None
    # Once the status knows no driver, or a later one, its absence has been judged.
    its_own = driver.app_uid == app.metadata.uid and driver.epoch >= status.epoch and status.driver is not None
    return driver if its_own and not is_reported(driver.ended, status) else None


def _origin(index: Index, known: KnownApp) -> StreamSnapshot | None:
    start = known.app.spec.start_from
    return index.of(SnapshotIndex).get((known.metadata.namespace, start.snapshot_name)) if start is not None else None


def _origin_is_unreadable(index: Index, known: KnownApp) -> bool:
    start = known.app.spec.start_from
    return (
        start is not None
        and index.of(SnapshotIndex).unreadable((known.metadata.namespace, start.snapshot_name)) is not None
    )
