"""Why executors ended without having been asked to, and whether executors of a version ever live. No I/O.

Only ends during the present driver process count.
"""

from __future__ import annotations

from tidegate.api.foreign_text import last_lines, names_full_disk
from tidegate.app.observation import Observation
from tidegate.app.rules.pods import executor_end_messages as messages
from tidegate.pods.records.faults import (
    KILLED_BY_MEMORY,
    SIGKILL,
    Problem,
    end_problem,
    init_problem,
    is_over_limit,
    lost_from_sight,
)
from tidegate.pods.records.record import Exit, PodRecord, of_driver
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import is_of_version

LIVES_SECONDS = 120.0
"""An executor that has run for so long shows that executors of its version can."""
ENOUGH_ENDS, ENOUGH_LATER = 3, 2
"""Ends after which a version's executors count as failing, and how many of them were started after the first had ended:
of one cause that passes, such as a driver that was slow to listen, there is no second round."""
BY_KUBELET = "TerminationByKubelet"
_ASKED_CODES = frozenset({0, 143, SIGKILL})
"""Exit codes of a pod that somebody deleted: after SIGTERM, or SIGKILL when its grace period is over."""
_HEAP_EXHAUSTED = 52
"""Spark's exit code of an executor whose JVM needed more heap (org.apache.spark.util.SparkExitCode.OOM)."""
END_REASONS = frozenset(
    {
        Reason.EXECUTORS_FAILING,
        Reason.EXECUTORS_LOST,
        Reason.EPHEMERAL_STORAGE_EXCEEDED,
        Reason.DISK_FULL,
        Reason.OUT_OF_MEMORY,
    }
)
"""Reasons that say more of executors than that they are missing."""


def executor_end_problem(pod: PodRecord) -> Problem | None:
    """Return why an executor ended that is not there any more, None if it was asked to, or nobody saw how."""
    ended = pod.ended
    if pod.reason or pod.disruption or (ended is not None and lost_from_sight(ended)):
        return _end_from_outside_problem(pod)
    if ended is None:
        return init_problem(pod) if pod.finished else None
    return _own_end_problem(pod, ended)


def _end_from_outside_problem(pod: PodRecord) -> Problem:
    if is_over_limit(pod):
        return end_problem(pod)
    if pod.disruption and pod.disruption != BY_KUBELET:
        text = messages.disrupted(pod.name, pod.node, pod.disruption)
    elif pod.reason or pod.disruption:
        text = messages.ended_by_kubelet(pod.name, pod.node, pod.reason, pod.message)
    else:
        text = messages.lost_with_node(pod.name, pod.node)
    return Problem(Reason.EXECUTORS_LOST, text)


def _own_end_problem(pod: PodRecord, ended: Exit) -> Problem | None:
    lines = last_lines(ended.message)
    if ended.reason == KILLED_BY_MEMORY:
        return Problem(Reason.OUT_OF_MEMORY, messages.out_of_memory(pod.name))
    if ended.exit_code == 0 or (pod.terminating and ended.exit_code in _ASKED_CODES):
        return None
    if names_full_disk(ended.message):
        return Problem(Reason.DISK_FULL, messages.disk_full(pod.name, pod.node, lines))
    if ended.exit_code == _HEAP_EXHAUSTED:
        return Problem(Reason.OUT_OF_MEMORY, messages.heap_exhausted(pod.name, lines))
    if ended.exit_code == SIGKILL:
        return Problem(Reason.EXECUTORS_FAILING, messages.killed(pod.name))
    return Problem(Reason.EXECUTORS_FAILING, messages.failed(pod.name, ended.exit_code, ended.reason, lines))


def unasked_ends(o: Observation) -> tuple[tuple[PodRecord, Problem], ...]:
    """Return the executors of the present driver process that ended though nobody asked for it, and why each did."""
    driver = o.driver
    if driver is None or not driver.running:
        return ()
    named = ((pod, executor_end_problem(pod)) for pod in o.executor_ends if pod.created_at >= driver.start_time)
    return tuple((pod, problem) for pod, problem in named if problem is not None)


def failing_executors_problem(o: Observation, now: float) -> Problem | None:
    """Return why the executors of the driver's version end as soon as they start, None if they do not, or may live.

    Ends by the cluster's fault are left out: they say nothing about the version.
    """
    ends = unasked_ends(o)
    blamed = [pod for pod, problem in ends if is_of_version(problem.reason)]
    if not blamed or o.agent is None or o.agent.report.state is not DriverState.RUNNING or _any_lived(o, now):
        return None
    first_end = _ended_at(blamed[0])
    later = [pod for pod in blamed if pod.created_at >= first_end]
    report = o.agent.report
    # An operator that has just started saw one end; the driver has counted all.
    counted = len(blamed) == len(ends) and report.executors_ended >= report.executors_wanted + ENOUGH_LATER
    if not counted and (len(blamed) < ENOUGH_ENDS or len(later) < ENOUGH_LATER):
        return None
    return executor_end_problem(blamed[-1])


def _any_lived(o: Observation, now: float) -> bool:
    driver = o.driver
    assert driver is not None
    alive = (pod for pod in o.executors if of_driver(pod, driver) and pod.running)
    if any(0 < pod.start_time <= now - LIVES_SECONDS for pod in alive):
        return True
    return any(_lived(pod.ended) >= LIVES_SECONDS for pod in o.executor_ends if pod.ended is not None)


def _lived(ended: Exit) -> float:
    """Return for how long an executor's process ran, 0 if none did: a pod may wait for minutes before."""
    return ended.completion_time - ended.start_time if ended.start_time else 0.0


def _ended_at(pod: PodRecord) -> float:
    return pod.ended.completion_time if pod.ended is not None else pod.created_at


def last_end(o: Observation, since: float) -> Problem | None:
    """Return why an executor of the present driver process ended last, None if none has since some time."""
    ends = [(pod, problem) for pod, problem in unasked_ends(o) if _ended_at(pod) >= since]
    return ends[-1][1] if ends else None
