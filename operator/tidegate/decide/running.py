"""Rules for an application with a driver pod: what it is doing, and whether it must go. No I/O."""

from __future__ import annotations

from tidegate.decide.actions import DeleteDriver
from tidegate.decide.faults import Problem, name_end, name_reported, name_start_problem, read_termination
from tidegate.decide.launch import starting_message
from tidegate.decide.verdict import Health, Verdict
from tidegate.model.streaming_app import Phase
from tidegate.observe.observation import Observation
from tidegate.observe.pods import PodRecord
from tidegate_spark.protocol import AgentReport, DriverState, Reason

OVERDUE = 60.0
"""Seconds after the end of its grace period at which a pod that is still there is called stuck."""


def wait_for_driver_to_go(o: Observation, now: float) -> Verdict | None:
    """Wait for the old pod to be gone from the API: only then may a new driver be created."""
    driver = o.driver
    if driver is None or not driver.terminating:
        return None
    overdue_at = driver.delete_by + OVERDUE
    if now >= overdue_at:
        return Verdict(
            Phase.STOPPING,
            Health.STALLED,
            "DriverNotGone",
            f"Node {driver.node} does not confirm the end of pod {driver.name}. If the node is down for good, taint it "
            "node.kubernetes.io/out-of-service, and the application goes on elsewhere.",
        )
    changed = driver.spec_hash != o.spec_hash
    return Verdict(
        Phase.STOPPING,
        Health.RECONCILING,
        "SpecChanged" if changed else "DriverStopping",
        f"Driver pod {driver.name} stops at a batch boundary"
        + ("; the changed spec is started then." if changed else "; a new one follows."),
        wake_after=overdue_at - now,
    )


def stop_driver_of_earlier_app(o: Observation, now: float) -> Verdict | None:
    """Stop a driver that a deleted application of the same name left: it writes another one's state."""
    driver = o.driver
    if driver is None or driver.app_uid == o.app.metadata.uid:
        return None
    return Verdict(
        Phase.PENDING,
        Health.RECONCILING,
        "EarlierDriver",
        f"Pod {driver.name} belongs to an application of the same name that was deleted; it is stopped first.",
        after=(DeleteDriver(driver),),
    )


def stop_driver_of_changed_spec(o: Observation, now: float) -> Verdict | None:
    """Stop a driver that was started with other restart fields than the spec has now."""
    driver = o.driver
    if driver is None or driver.spec_hash == o.spec_hash:
        return None
    return Verdict(
        Phase.STOPPING,
        Health.RECONCILING,
        "SpecChanged",
        f"Driver pod {driver.name} stops at a batch boundary; the changed spec is started then.",
        after=(DeleteDriver(driver),),
    )


def replace_lost_driver(o: Observation, now: float) -> Verdict | None:
    """Replace a pod that the kubelet is through with: evicted, or its node shut down."""
    driver = o.driver
    if driver is None or driver.phase != "Failed":
        return None
    problem = name_end(driver)
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        problem.reason,
        f"{problem.message} A new driver pod follows.",
        after=(DeleteDriver(driver),),
    )


def judge_ended_driver(o: Observation, now: float) -> Verdict | None:
    """Judge a driver that ended for good (exit code 0): the work is done, or the runtime refuses to do it."""
    driver = o.driver
    if driver is None or driver.phase != "Succeeded":
        return None
    told = read_termination(driver.ended)
    if told is None or told.reason is Reason.COMPLETED:
        return Verdict(Phase.COMPLETED, Health.READY, "Completed", "The application has finished.")
    return _stalled(Phase.FAILED, name_end(driver))


def judge_unstarted_driver(o: Observation, now: float) -> Verdict | None:
    """Name what keeps the pod's containers from starting."""
    problem = name_start_problem(o.driver) if o.driver is not None and not o.driver.running else None
    return _stalled(Phase.STARTING, problem) if problem else None


def judge_reported_driver(o: Observation, now: float) -> Verdict | None:
    """Believe the agent: it knows best what the driver is doing."""
    if o.driver is None or not o.driver.running or o.agent is None:
        return None
    report = o.agent.report
    phase = _phase_of(report)
    if report.fault is not None:
        return _stalled(phase, name_reported(report.fault))
    if report.state is DriverState.RUNNING:
        return _running(o.driver)
    if report.state in (DriverState.STOPPING, DriverState.ENDED):
        return Verdict(
            phase, Health.RECONCILING, "DriverStopping", f"The driver in pod {o.driver.name} stops at a batch boundary."
        )
    return None


def judge_ready_driver(o: Observation, now: float) -> Verdict | None:
    """Believe the kubelet where the operator can not reach the pod: it asks the same agent."""
    driver = o.driver
    if driver is None or not driver.running or not driver.ready or o.agent is not None:
        return None
    return _running(driver)


def judge_silent_driver(o: Observation, now: float) -> Verdict | None:
    """Keep a driver that ran and is not heard of running: its node or the network may be cut off."""
    driver, known = o.driver, o.app.status
    if driver is None or not driver.running or o.agent is not None or known.phase is not Phase.RUNNING:
        return None
    if known.epoch != driver.epoch or known.driver is None or known.driver.restarts != driver.restarts:
        return None
    message = f"The driver in pod {driver.name} is not ready, and its agent does not answer."
    return Verdict(Phase.RUNNING, Health.RECONCILING, "DriverNotReady", message)


def judge_crashed_driver(o: Observation, now: float) -> Verdict | None:
    """Name the fault the process ended with, until the driver that the kubelet started again runs."""
    driver = o.driver
    if driver is None or driver.ended is None or driver.ended.exit_code == 0:
        return None
    told = read_termination(driver.ended)
    if told is not None and told.reason is Reason.STOPPED:
        return None  # asked to stop from outside, at a batch boundary: the next start is an ordinary one
    return _stalled(Phase.FAILED, name_end(driver))


def wait_for_driver_to_start(o: Observation, now: float) -> Verdict | None:
    """Wait: the pod is there, and nothing is known to be wrong with it."""
    if o.driver is None:
        return None
    epoch = max(o.driver.epoch, o.app.status.epoch)
    return Verdict(Phase.STARTING, Health.RECONCILING, "DriverStarting", starting_message(o, epoch))


def _phase_of(report: AgentReport) -> Phase:
    if report.state is DriverState.RUNNING:
        return Phase.RUNNING
    return Phase.STOPPING if report.state in (DriverState.STOPPING, DriverState.ENDED) else Phase.STARTING


def _running(driver: PodRecord) -> Verdict:
    return Verdict(Phase.RUNNING, Health.READY, "Running", f"The driver in pod {driver.name} runs.")


def _stalled(phase: Phase, problem: Problem) -> Verdict:
    return Verdict(phase, Health.STALLED, problem.reason, problem.message)
