"""observe: one StreamSnapshot's observation out of the index. Writes nothing."""

from __future__ import annotations

from tidegate.model.stream_snapshot import StreamSnapshot, snapshot_id
from tidegate.observe.gather import find_pod, valid_report
from tidegate.observe.index import Index, KnownApp, UnreadableApp
from tidegate.observe.snapshot_observation import SnapshotObservation
from tidegate.resources.names import driver_pod_name, snapshot_pod_name
from tidegate.resources.platform import Platform
from tidegate.workqueue import Key
from tidegate_spark.protocol import ROLE_DRIVER, ROLE_SNAPSHOT


def observe_snapshot(index: Index, key: Key, platform: Platform, now: float) -> SnapshotObservation | None:
    """Return everything a decision about a snapshot may know, or None if it is gone.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        platform: what the installation decides.
        now: seconds of the monotonic clock; old answers of agents are left out.
    """
    snapshot = index.snapshots.get(key)
    if snapshot is None:
        return None
    app_key, identity = snapshot.app_key, snapshot_id(snapshot.metadata)
    known, pods = index.app(app_key), index.pods(app_key)
    driver = find_pod(pods, driver_pod_name(app_key[1]), ROLE_DRIVER)
    readable = known if isinstance(known, KnownApp) else None
    report = valid_report(index.reports.get(app_key), readable, driver, now) if readable else None
    return SnapshotObservation(
        snapshot=snapshot,
        platform=platform,
        app=readable.app if readable else None,
        app_unreadable=isinstance(known, UnreadableApp),
        driver=driver,
        agent=report.report if report else None,
        taking=find_pod(pods, snapshot_pod_name(identity, disposing=False), ROLE_SNAPSHOT),
        disposing=find_pod(pods, snapshot_pod_name(identity, disposing=True), ROLE_SNAPSHOT),
        forks=tuple(
            name for name in map(lambda fork: _waits(index, fork, snapshot), index.snapshots.forks(key)) if name
        ),
        memory=index.snapshots.memory(key),
    )


def _waits(index: Index, fork: Key, origin: StreamSnapshot) -> str:
    """Return the name of an application that is to begin with a snapshot and has not yet; else an empty string."""
    known = index.app(fork)
    if not isinstance(known, KnownApp) or known.metadata.deletion_timestamp is not None:
        return ""
    began = known.app.status.start_from
    has_another = began is not None and began.id != origin.status.snapshot_id
    return "" if has_another or (began is not None and began.begun) else fork[1]
