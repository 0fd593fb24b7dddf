"""Builds one StreamSnapshot's observation from the index. Writes nothing."""

from __future__ import annotations

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import StreamSnapshot, owner_uid
from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.index import Index
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.reports import find_pod, valid_report
from tidegate.engine.resource_key import Key
from tidegate.pods.records.faults import has_completed
from tidegate.pods.records.names import (
    driver_pod_name,
    export_pod_prefix,
    is_verify_pod_name,
    purge_pod_name,
    snapshot_pod_name,
)
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.observation import SnapshotObservation
from tidegate_spark.contract.protocol import ROLE_DRIVER, ROLE_EXPORT, ROLE_PURGE, ROLE_SNAPSHOT


def observe_snapshot(
    index: Index, key: Key, platform: Platform, now: float, clock_skew: float = 0.0
) -> SnapshotObservation | None:
    """Return everything a decision about a snapshot may know, or None if it is gone.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        platform: what the installation decides.
        now: seconds of the monotonic clock; old answers of agents are left out.
        clock_skew: seconds by which our clock is ahead of the API server's.
    """
    snapshot = index.of(SnapshotIndex).get(key)
    if snapshot is None:
        return None
    app_key, identity = snapshot.app_key, snapshot_id(snapshot.metadata)
    known, pods = index.app(app_key), index.pods(app_key)
    driver = find_pod(pods, driver_pod_name(app_key[1]), ROLE_DRIVER)
    own = [pod for pod in pods if pod.owner_uid == snapshot.metadata.uid]
    readable = known if isinstance(known, KnownApp) else None
    report = valid_report(index.reports.get(app_key), readable, driver, now) if readable else None
    return SnapshotObservation(
        snapshot=snapshot,
        platform=index.platform_of(key[0], platform),
        app=readable.app if readable else None,
        app_unreadable=isinstance(known, UnreadableApp),
        driver=driver,
        agent=report.report if report else None,
        taking=find_pod(own, snapshot_pod_name(identity, disposing=False), ROLE_SNAPSHOT),
        disposing=find_pod(own, snapshot_pod_name(identity, disposing=True), ROLE_SNAPSHOT),
        verifying=_find_verifying(own, identity),
        exporting=_find_exporting(own, identity),
        purged=uid_of_purged(index, app_key) == owner_uid(snapshot) != "",
        forks=_waiting_forks(index, snapshot),
        begun_by=tuple(name for _, name in index.of(SnapshotIndex).forks(key)),
        later=index.of(SnapshotIndex).history.later(snapshot),
        waiting=index.of(SnapshotIndex).waiting.of_app(app_key),
        without_app=_without_app(index, app_key),
        clock_skew=clock_skew,
        memory=index.of(SnapshotIndex).memory(key),
    )


def uid_of_purged(index: Index, app: Key) -> str:
    """Return the uid of the application of this name whose storage was purged, empty if none was."""
    purge = find_pod(index.pods(app), purge_pod_name(app[1]), ROLE_PURGE)
    return purge.app_uid if purge is not None and has_completed(purge) else ""


def _without_app(index: Index, app_key: Key) -> OpenCount:
    if not app_key[1] or index.app(app_key) is not None:
        return OpenCount()
    # Imported ones name no application, and are counted for themselves.
    waiting = index.of(SnapshotIndex).waiting
    return waiting.without_app(app_key[0]) - waiting.of_app((app_key[0], ""))


def _find_exporting(pods: list[PodRecord], identity: str) -> PodRecord | None:
    # The name has the export's number: one that is not wanted any more may still be there.
    prefix = export_pod_prefix(identity)
    named = (pod for pod in pods if pod.role == ROLE_EXPORT and pod.name.startswith(prefix))
    return min((p for p in named if p.name.removeprefix(prefix).isdecimal()), key=lambda p: p.name, default=None)


def _find_verifying(pods: list[PodRecord], identity: str) -> PodRecord | None:
    # Its name has the number that asked for it, likewise.
    named = (pod for pod in pods if pod.role == ROLE_SNAPSHOT and is_verify_pod_name(pod.name, identity))
    return min(named, key=lambda p: p.name, default=None)


def _waiting_forks(index: Index, snapshot: StreamSnapshot) -> tuple[str, ...]:
    found = []
    for fork in index.of(SnapshotIndex).forks(snapshot.key):
        known = index.app(fork)
        if isinstance(known, KnownApp) and _waits(known.app, snapshot):
            found.append(fork[1])
    return tuple(found)


def _waits(fork: StreamingApp, origin: StreamSnapshot) -> bool:
    began = fork.status.start_from
    if fork.metadata.deletion_timestamp is not None:
        return False
    if began is None:
        return not fork.status.lineage  # else it has started before its status was lost
    # One that was recorded with an earlier snapshot of the same name needs that one.
    return began.id == origin.status.snapshot_id and not began.has_started
