"""Whether a driver has ended for good, and rules for one that failed and is not restarted. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import Phase, RestartPolicy
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.pods.records import fault_messages
from tidegate.pods.records.faults import blames_version, end_problem, read_termination, silent_end
from tidegate.pods.records.names import driver_pod_name
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import Termination
from tidegate_spark.contract.reasons import Reason


def ended_for_good(driver: PodRecord) -> bool:
    """Return whether the driver's process ended and will not be started again.

    The container's exit code is looked at and not only the pod's phase, which follows later, or never with a sidecar.
    """
    done = driver.ended is not None and driver.ended.exit_code == 0 and not driver.running
    return driver.phase == "Succeeded" or (done and driver.phase != "Failed")


def ended_for_good_with(driver: PodRecord | None, reason: Reason) -> Termination | None:
    """Return the termination message of a driver that ended for good with this reason, None if it did not."""
    if driver is None or driver.running or driver.ended is None or driver.ended.exit_code != 0:
        return None
    termination = read_termination(driver.ended)
    return termination if termination is not None and termination.reason is reason else None


def judge_exhausted_driver(o: Observation, now: float) -> Verdict | None:
    """Say that the application failed too often, and why it did the last time."""
    termination = ended_for_good_with(o.driver, Reason.RESTART_BUDGET_EXHAUSTED)
    if termination is None:
        return None
    message = messages.budget_exhausted(fault_messages.sentence(termination.message.strip()))
    return Verdict(Phase.FAILED, Health.STALLED, Reason.RESTART_BUDGET_EXHAUSTED, message)


def obey_policy_never(o: Observation, now: float) -> Verdict | None:
    """Leave an application that failed by itself failed. Lost pods and faults of dependencies are not its failures."""
    driver = o.driver
    if driver is None or o.app.spec.restart.policy is not RestartPolicy.NEVER:
        return None
    if driver.phase != "Failed" or not blames_version(driver):
        return None
    termination = read_termination(driver.ended)
    # An ordinary failure restarts, which is no remedy here.
    last = end_problem(driver).message
    if termination is not None:
        last = fault_messages.sentence(fault_messages.reported(termination.exception, termination.message))
    return Verdict(Phase.FAILED, Health.STALLED, Reason.RESTART_POLICY_NEVER, messages.policy_never(last))


def last_end(o: Observation) -> str:
    """Return how the driver ended last as the status has it, in the words of :func:`end_problem` for the pod itself."""
    last, pod = o.app.status.last_exit, driver_pod_name(o.app.metadata.name)
    if last is None:
        return ""
    if last.message or last.exception:
        # Only where it is not the budget's is the class of the exception a part of the message already.
        exhausted = last.reason == Reason.RESTART_BUDGET_EXHAUSTED
        return fault_messages.sentence(fault_messages.reported("" if exhausted else last.exception, last.message))
    return silent_end(pod, o.app.metadata.namespace, last.reason, last.exit_code).message
