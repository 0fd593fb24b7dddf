"""The Observation of an application: all that one decision may use, as one frozen value. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidegate.api.stream_snapshot import StreamSnapshot, owner_uid
from tidegate.api.streaming_app import StreamingApp, StreamingAppStatus
from tidegate.app.builders.references import Reference
from tidegate.autoscaling.algorithm.recommend import Advice
from tidegate.autoscaling.algorithm.situation import Quota
from tidegate.cache.process_state import ProcessState, TimedReport
from tidegate.pods.records.names import agent_secret_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import Exit, PodRecord


@dataclass(frozen=True, slots=True)
class PodRejection:
    """What the API server finds wrong with a pod of the spec's version, which it was asked about before a launch."""

    role: str
    """Whose pod it is: the driver's, an executor's, or the one's that is to repartition the state."""
    server_message: str
    """The API server's."""
    missing: str = ""
    """The object that does not exist, with its kind, if that is all that is wrong: it may come without another edit."""


@dataclass(frozen=True, slots=True)
class CheckedReferences:
    """What came of asking for the objects to which the spec's version refers, before anything is stopped for it."""

    missing: tuple[Reference, ...] = ()
    """Known not to exist."""
    unchecked: tuple[Reference, ...] = ()
    """Of which nobody could say it: they may not be read, or there was no answer."""
    unanswered: bool = False
    """Of some there was no answer: there will be one."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One application and everything around it; taken at one moment, changed by nobody."""

    app: StreamingApp
    spec_hash: str
    platform: Platform
    driver: PodRecord | None = None
    """One that is gone is shown for one more look if its end is not in the status yet."""
    executors: tuple[PodRecord, ...] = ()
    """Sorted by name."""
    executor_ends: tuple[PodRecord, ...] = ()
    """Executors of this driver that ended or are gone, as they were seen last, the earliest first; not all of them."""
    purge: PodRecord | None = None
    releasing: PodRecord | None = None
    """The pod that releases the snapshot with which a deleted application was to begin."""
    rehearsals: tuple[PodRecord, ...] = ()
    """Pods in which a new version is, or was, rehearsed; sorted by name."""
    repartitions: tuple[PodRecord, ...] = ()
    """Pods in which the state is, or was, repartitioned; sorted by name."""
    agent: TimedReport | None = None
    """The newest answer of the driver process that runs now; None if there is none, or it is old."""
    silence: str = ""
    """Why the agent has not answered for several questions although the kubelet finds it ready; empty if it has."""
    access_ready: bool = False
    """The namespace's ServiceAccount, Role and RoleBinding are known to be as they should be."""
    rival: str = ""
    """Name of the application that has storage which overlaps this one's; empty if none has."""
    origin: StreamSnapshot | None = None
    """The snapshot that ``spec.startFrom`` names, if it is there."""
    origin_unreadable: bool = False
    """It is there, and cannot be read."""
    last_snapshot: StreamSnapshot | None = None
    """The newest complete one of this application."""
    snapshots: tuple[StreamSnapshot, ...] = ()
    """All that refer to an application of this name, whichever it was."""
    refused_writes: Mapping[str, str] = field(default_factory=dict)
    """Names of those that the API server does not let be changed, with what is said of it."""
    advice: Advice | None = None
    """The autoscaler's newest, since this process began."""
    quota: Quota | None = None
    """For how many executors the namespace has room; looked up where pods of executors are missing, else None."""
    executor_refused: str = ""
    """The API server's words about a pod like an executor's; asked where such pods are missing, else empty."""
    rejection: PodRejection | None = None
    """What is wrong with the pods of a version that was not launched yet; asked before anything is stopped for it."""
    references: CheckedReferences = CheckedReferences()
    """What such a version refers to, and does not exist; likewise."""
    memory: ProcessState = field(default_factory=ProcessState)
    deciding_since: float = 0.0
    """Since when this process decides, in seconds since the epoch: others before it may have heard what it has not."""


def lacks_access(o: Observation) -> bool:
    """Return whether the driver's access has to be made or looked at; one with an account of its own needs none."""
    return not o.access_ready and not o.app.spec.service_account_name


def has_other_key(o: Observation, driver: PodRecord) -> bool:
    """Return whether a driver was launched with another key than this operator's: then neither can reach the other."""
    return driver.agent_secret != agent_secret_name(driver.app, driver.app_uid, driver.epoch, o.platform.key_id)


def applied_hash(o: Observation) -> str:
    """Return the hash of the version that was launched last.

    The driver shows it, also if the status is lost or older than the driver. What a late watch shows of an earlier
    epoch, or of an earlier application of the name, is not what was launched last.
    """
    status, driver = o.app.status, o.driver
    own = driver is not None and driver.app_uid == o.app.metadata.uid
    if driver is not None and own and driver.spec_hash and driver.epoch >= status.epoch:
        return driver.spec_hash
    return status.applied_spec_hash


def is_reported(ended: Exit, status: StreamingAppStatus) -> bool:
    """Return whether the status has this end."""
    return status.last_exit is not None and status.last_exit.completion_time == time_from_seconds(ended.completion_time)


def own_snapshots(o: Observation) -> tuple[StreamSnapshot, ...]:
    """Return the snapshots of this very application, and none of an earlier one of its name."""
    return tuple(snapshot for snapshot in o.snapshots if owner_uid(snapshot) == o.app.metadata.uid)


def pods_of(o: Observation) -> tuple[PodRecord, ...]:
    """Return all pods that are known of an application, those on which the most depends first."""
    single = (pod for pod in (o.driver, o.purge, o.releasing) if pod is not None)
    return (*single, *o.repartitions, *o.rehearsals, *o.executors)


def with_pods(o: Observation, changed: Callable[[PodRecord], PodRecord]) -> Observation:
    """Return an observation whose pods are changed, each by itself."""
    return dataclasses.replace(
        o,
        driver=changed(o.driver) if o.driver is not None else None,
        executors=tuple(map(changed, o.executors)),
        purge=changed(o.purge) if o.purge is not None else None,
        releasing=changed(o.releasing) if o.releasing is not None else None,
        rehearsals=tuple(map(changed, o.rehearsals)),
        repartitions=tuple(map(changed, o.repartitions)),
    )
