"""The pod of a rehearsal or a repartition: created, awaited, read. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidegate.api.values.errors import SpecError
from tidegate.app.actions import Action
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.cache.process_state import Refusal
from tidegate.engine.rules.pauses import refused_for
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.faults import (
    KILLED_BY_MEMORY,
    SIGKILL,
    Problem,
    is_named,
    lost_from_sight,
    start_problem,
)
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import EXIT_STOPPED
from tidegate_spark.contract.reasons import Reason

DEADLINE = "DeadlineExceeded"
"""The kubelet's word for a pod that was ended because of its activeDeadlineSeconds."""
LONGEST_WAIT = 300.0
"""Seconds until it is looked whether a time is over, at most: clocks are set back."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is to be done about the pods, and when to check again."""

    actions: tuple[Action, ...] = ()
    wake_after: float | None = None


NOTHING = Kept()


def create_pod(o: Observation, name: str, build: Callable[[], tuple[Action, ...]], now: float) -> Kept:
    """Return the creation of a pod; a pause after the API server refused it, nothing if the spec allows none."""
    refusal = _refusal_of(o, name)
    if refusal is not None and (left := refused_for(refusal.at, refusal.attempts, now)):
        return Kept(wake_after=left)
    try:
        return Kept(build())
    except SpecError:
        return NOTHING  # of the driver's pod it was tried when the upgrade began


def never_starts(pod: PodRecord | None, seconds: float, patience: float) -> Problem | None:
    """Return what keeps a pod from starting that no longer wait changes, None as long as it may pass."""
    problem = start_problem(pod) if pod is not None and not pod.running else None
    return problem if is_named(problem) and seconds >= patience else None


def seconds_to_start(pod: PodRecord | None, seconds: float, now: float) -> float:
    """Return for how many of the seconds that its work has been under way a pod could start: since it had a node.

    Before that there was no room for it, nobody who would have created it, or another pod in its place. One without a
    node counts from its creation.
    """
    return seconds if pod is None else min(seconds, max(0.0, now - (pod.scheduled_at or pod.created_at)))


def why_not_running(o: Observation, pod: PodRecord | None, name: str) -> str:
    """Return as text why there is no process in a pod, or no pod."""
    problem = start_problem(pod) if pod is not None else None
    if problem is not None:
        return problem.message
    refusal = _refusal_of(o, name) if pod is None else None
    return refusal.message if refusal is not None else messages.pod_did_not_run(name)


def _refusal_of(o: Observation, name: str) -> Refusal | None:
    """Return what keeps a pod away: the API server's refusal, or what runs in place of the driver and may write."""
    refusal = o.memory.refusal
    if refusal is None:
        return None
    return refusal if refusal.pod_name == name or (refusal.holds_end and o.driver is None) else None


def silent_end(pod: PodRecord) -> Reason:
    """Return how a process ended that left no report: NoRoom if it was lost, StartFailed if by itself."""
    ended = pod.ended
    if pod.reason == DEADLINE:
        return Reason.DEADLINE_EXCEEDED
    if ended is None or pod.reason or lost_from_sight(ended):
        return Reason.NO_ROOM  # evicted, or gone with its node
    if ended.reason == KILLED_BY_MEMORY:
        return Reason.OUT_OF_MEMORY
    return Reason.NO_ROOM if ended.exit_code in (SIGKILL, EXIT_STOPPED) else Reason.START_FAILED


def progress(pod: PodRecord | None) -> str:
    """Return what a pod does that says nothing itself, empty without one."""
    if pod is None:
        return ""
    problem = start_problem(pod) if not pod.running and not pod.finished else None
    return problem.message if problem is not None else messages.see_pod(pod.name, pod.namespace)


def check_in(left: Iterable[float]) -> float | None:
    """Return after how many seconds the next of these times is over, None if all are."""
    soonest = earliest(*(seconds for seconds in left if seconds > 0))
    return None if soonest is None else min(LONGEST_WAIT, soonest)
