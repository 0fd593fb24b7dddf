"""observe: one application's Observation out of the index. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.stream_snapshot import StreamSnapshot
from tidegate.model.streaming_app import StreamingApp
from tidegate.observe.autoscaling_index import AutoscalingIndex
from tidegate.observe.index import Index, KnownApp
from tidegate.observe.observation import Observation, is_told
from tidegate.observe.pods import PodRecord, of_driver
from tidegate.observe.process_state import TimedReport
from tidegate.observe.reports import find_pod, valid_report
from tidegate.observe.snapshot_index import SnapshotIndex
from tidegate.resource_key import Key
from tidegate.resources.names import driver_pod_name, purge_pod_name, release_pod_name
from tidegate.resources.platform import Platform
from tidegate_spark.contract.protocol import (
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    ROLE_SNAPSHOT,
    AgentReport,
    DriverState,
)

ACCESS_AGE = 60.0
"""Seconds for which a look at the driver's access counts where something may be wrong with it, or a launch needs it."""


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
        access_ready=_access_ready(index.checked_access.age(key, now), driver, executors, agent),
        rival=index.rival(known.app),
        origin=_origin(index, known),
        origin_unreadable=_origin_is_unreadable(index, known),
        last_snapshot=index.of(SnapshotIndex).newest_ready(known.app),
        snapshots=index.of(SnapshotIndex).of_app(key) if known.app.spec.snapshots is not None else (),
        advice=index.of(AutoscalingIndex).advice(known.app),
        memory=index.memory(key),
        deciding_since=index.deciding_since,
    )


def access_is_due(index: Index, key: Key, report: AgentReport, now: float) -> bool:
    """Return whether a report hints at a lack of access, and the last look at the access was a while ago.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        report: the newest one.
        now: seconds of the monotonic clock.
    """
    executors = [pod for pod in index.pods(key) if pod.role == ROLE_EXECUTOR]
    return _lacks_executors(report, executors) and index.checked_access.age(key, now) >= ACCESS_AGE


def _access_ready(
    age: float, driver: PodRecord | None, executors: Sequence[PodRecord], agent: TimedReport | None
) -> bool:
    # People and namespace cleaners remove things. A driver that has all it asked for shows that its access is there,
    # and nobody reads it, not even a new operator: it would be thousands of requests at each start. One that is to be
    # launched, fails, or gets no executors shows nothing of the kind.
    if driver is None:
        return age < ACCESS_AGE
    failed = driver.ended is not None and driver.ended.exit_code != 0 and not driver.ready
    if failed or (agent is not None and _lacks_executors(agent.report, executors)):
        return age < ACCESS_AGE
    return True


def _lacks_executors(report: AgentReport, executors: Sequence[PodRecord]) -> bool:
    # An executor's pod that waits for a node was created: the driver may create pods.
    created = sum(1 for pod in executors if not pod.terminating and not pod.finished)
    return report.state is DriverState.RUNNING and max(report.executors_running, created) < report.executors_wanted


def _ends_of(index: Index, key: Key, driver: PodRecord | None) -> tuple[PodRecord, ...]:
    return tuple(pod for pod in index.executor_ends.of(key) if driver is not None and of_driver(pod, driver))


def _parted(index: Index, app: StreamingApp) -> PodRecord | None:
    # End and deletion can come so close together that nothing was decided in between: its last words would be lost.
    driver, status = index.parted_driver((app.metadata.namespace, app.metadata.name)), app.status
    if driver is None or driver.ended is None or app.metadata.deletion_timestamp is not None:
        return None
    # Once the status knows no driver, or a later one, its absence has been judged.
    its_own = driver.app_uid == app.metadata.uid and driver.epoch >= status.epoch and status.driver is not None
    return driver if its_own and not is_told(driver.ended, status) else None


def _origin(index: Index, known: KnownApp) -> StreamSnapshot | None:
    start = known.app.spec.start_from
    return index.of(SnapshotIndex).get((known.metadata.namespace, start.snapshot_name)) if start is not None else None


def _origin_is_unreadable(index: Index, known: KnownApp) -> bool:
    start = known.app.spec.start_from
    return (
        start is not None
        and index.of(SnapshotIndex).unreadable((known.metadata.namespace, start.snapshot_name)) is not None
    )
