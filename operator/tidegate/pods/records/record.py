"""A pod as a compact record of what decisions need. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.pods.records.start_delay import StartDelay

FINISHED = ("Succeeded", "Failed")
DELETED_BY_TAINT, PREEMPTED = "DeletionByTaintManager", "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container's process ended; time in seconds since the epoch."""

    exit_code: int
    reason: str
    """The kubelet's word: Completed, Error, OOMKilled, ContainerCannotRun …"""
    message: str
    """The termination message."""
    completion_time: float
    start_time: float = 0.0
    """When that process started; 0 if nobody saw it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container does not run."""

    container: str
    image: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodRecord:
    """One pod of ours; times in seconds since the epoch, 0 if unknown."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    app: str
    """Of which application it is, by its owner; empty: it is none of ours, whatever its labels say."""
    role: str
    epoch: int
    spec_hash: str
    app_uid: str
    """Of the application that made it."""
    phase: str
    """Of its main container, if that has ended for good: a sidecar, of a service mesh for instance, keeps the pod's
    own phase at Running for as long as it runs itself."""
    created_at: float
    node: str = ""
    ip: str = ""
    ready: bool = False
    ready_time: float = 0.0
    """Since when it has been ready, by its node's clock; 0 if it is not."""
    running: bool = False
    """The main container's process runs."""
    start_time: float = 0.0
    """When the main container's present process started."""
    scheduled_at: float = 0.0
    """When it was given a node; 0 if it has none."""
    restarts: int = 0
    waiting: Waiting | None = None
    """The first container, init containers included, that waits for something other than its turn."""
    ended: Exit | None = None
    """The main container's last end: of the present state if it has ended, of the process before this one otherwise."""
    init_ended: Exit | None = None
    """The failed end of an init container."""
    init_name: str = ""
    unschedulable: str = ""
    """The scheduler's words, if it found no node."""
    silent_since: float = 0.0
    """Since when none of its containers runs and nothing in the pod says why; 0: one does, it does, or it has ended."""
    delay: StartDelay | None = None
    """Why that is so; what only events say is read after a while, and added by the observation."""
    reason: str = ""
    """The pod's own reason, for example Evicted."""
    message: str = ""
    disruption: str = ""
    """Why the cluster ends it, in the word of its condition DisruptionTarget; empty: it does not."""
    cpu_limit: str = ""
    """Of the main container, as the API server has it: a LimitRange may have given it one; empty: it has none."""
    service_account: str = ""
    """As which it runs."""
    executor_slots: int = 0
    """Of a driver: tasks that each of its executors runs at a time, as it was launched; 0: it does not say."""
    agent_secret: str = ""
    """Of a driver: name of the Secret of its agent's keys; empty: an operator from before those launched it."""
    signs: bool = False
    """Of a driver: the operator that launched it gave it a runtime that signs. Else its image's own may be older."""
    configuration_secret: str = ""
    """Of a driver: name of the Secret with the long part of its configuration; empty: the pod itself has all of it."""
    owner_uid: str = ""
    """Of its controlling owner: the application, a snapshot, or an executor's driver pod."""
    labelled: bool = True
    """It has the labels that it was given. Without them a watch leaves it out, and so do selectors of others."""
    delete_by: float = 0.0
    """When the grace period of a requested deletion ends; 0 if nobody asked."""
    finalizers: tuple[str, ...] = ()
    """Of one that is deleted and has no process left, by its node's word: what keeps the object."""

    @property
    def tainted(self) -> bool:
        """Whether it has to go because its node was tainted, by somebody or because it does not answer."""
        return self.disruption == DELETED_BY_TAINT

    @property
    def terminating(self) -> bool:
        """Whether somebody asked for its deletion."""
        return self.delete_by > 0

    @property
    def finished(self) -> bool:
        """Whether its main container will never run again."""
        return self.phase in FINISHED


def of_driver(executor: PodRecord, driver: PodRecord) -> bool:
    """Return whether an executor is this driver's own: not an earlier one's, and not by a number that a label says."""
    return executor.owner_uid == driver.uid


def process_of(pod: PodRecord) -> str:
    """Return what identifies one process of a pod: orders to it, and reports from it, are of that one alone."""
    return f"{pod.uid}/{pod.restarts}"


def seconds_since_notified(driver: PodRecord | None, reported: str, at: float, now: float) -> float:
    """Return how long ago the driver process that runs now got an order; infinity if it did not.

    Args:
        driver: its pod.
        reported: the process that got it last, as :func:`process_of` names it.
        at: when; one that is still to come was noted before somebody set the clock back.
        now: seconds since the epoch.
    """
    if driver is None or reported != process_of(driver) or at > now:
        return float("inf")
    return now - at
