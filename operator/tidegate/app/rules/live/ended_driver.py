"""Rules for an application whose driver has ended, for now or for good: its reason, and the next step. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import Phase
from tidegate.api.values.times import growing_pause
from tidegate.app.actions import Action, DeleteDriver
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.launch.launch import FIRST_PAUSE, LONGEST_PAUSE
from tidegate.app.rules.pods.ends import ended_for_good
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import time_left
from tidegate.pods.records.faults import Problem, end_problem, has_unknown_termination, read_termination
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import is_retried, start_fixes


def replace_lost_driver(o: Observation, now: float) -> Verdict | None:
    """Replace a pod that the kubelet is through with: evicted, or its node shut down."""
    driver = o.driver
    if driver is None or driver.phase != "Failed":
        return None
    problem = end_problem(driver)
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        problem.reason,
        messages.new_pod_after(problem.message),
        after=(DeleteDriver(driver),),
        warning=True,
    )


def judge_ended_driver(o: Observation, now: float) -> Verdict | None:
    """Judge a driver that ended for good (exit code 0): the work is done, or the runtime refuses to do it."""
    driver = o.driver
    if driver is None or not ended_for_good(driver):
        return None
    termination = read_termination(driver.ended)
    if has_unknown_termination(driver.ended):
        message = messages.unknown_termination(driver.name)
        return Verdict(Phase.FAILED, Health.STALLED, Reason.UNKNOWN_TERMINATION, message)
    if termination is None or termination.reason is Reason.COMPLETED:
        return Verdict(Phase.COMPLETED, Health.READY, Reason.COMPLETED, messages.FINISHED)
    problem = end_problem(driver)
    if not ends_to_be_retried(driver):
        return stalled(Phase.FAILED, problem)
    completion_time = driver.ended.completion_time if driver.ended else 0.0
    if not o.memory.launched_at <= completion_time <= now:
        completion_time = o.memory.launched_at  # by our clock, because the node's may differ
    left = time_left(completion_time, growing_pause(o.memory.quick_relaunches + 1, FIRST_PAUSE, LONGEST_PAUSE), now)
    if left:
        return stalled(Phase.FAILED, problem, wake_after=left)
    return stalled(Phase.FAILED, problem, after=(DeleteDriver(driver),))


def judge_crashed_driver(o: Observation, now: float) -> Verdict | None:
    """Name the fault the process ended with, until the driver that the kubelet started again runs.

    A driver that had run is on its way back after its first crash. It has failed when that does not help: it ends again
    before it has run, or with a fault that a start cannot fix.
    """
    driver = o.driver
    if driver is None or driver.ended is None or driver.ended.exit_code == 0:
        return None
    termination = read_termination(driver.ended)
    if termination is not None and termination.reason is Reason.STOPPED:
        return None  # it was asked to stop, at a batch boundary: the next start is an ordinary one
    problem = end_problem(driver)
    if (termination is None or start_fixes(termination.reason)) and _on_its_way_back(o, driver, driver.ended):
        message = messages.restarting_after(problem.message, driver.name)
        return Verdict(Phase.STARTING, Health.RECONCILING, problem.reason, message, warning=True)
    return stalled(Phase.FAILED, problem)


def ends_to_be_retried(driver: PodRecord) -> bool:
    """Return whether a driver that ended for good did so for a reason that may go away without a changed spec."""
    termination = read_termination(driver.ended) if ended_for_good(driver) else None
    return termination is not None and is_retried(termination.reason)


def _on_its_way_back(o: Observation, driver: PodRecord, ended: Exit) -> bool:
    known = o.app.status
    if known.epoch != driver.epoch:
        return False
    if known.phase in (Phase.RUNNING, Phase.STOPPING):
        return True  # nothing was written since it ran: this is the first crash
    # A crash that was reported keeps its reason; a later one is the second in a row.
    reported_of = known.last_exit.completion_time if known.last_exit else None
    return (
        known.phase is Phase.STARTING
        and reported_of is not None
        and reported_of == time_from_seconds(ended.completion_time)
    )


def stalled(
    phase: Phase, problem: Problem, *, after: tuple[Action, ...] = (), wake_after: float | None = None
) -> Verdict:
    """Return the verdict about an application that does not go on, by what is wrong."""
    return Verdict(phase, Health.STALLED, problem.reason, problem.message, after=after, wake_after=wake_after)
