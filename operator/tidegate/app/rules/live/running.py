"""Rules for an application with a driver pod: its phase, and whether the pod must go. No I/O."""

from __future__ import annotations

import dataclasses

from tidegate.api.status.stops import stop_was_asked_for
from tidegate.api.streaming_app import Phase, UpgradePhase
from tidegate.app.actions import DeleteDriver
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.launch.launch import reason_not_built, starting_message, why_not_built
from tidegate.app.rules.live.ended_driver import ends_to_be_retried, stalled
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.pods.ends import ended_for_good
from tidegate.app.rules.pods.executors import (
    is_short,
    lingering_problem,
    observe_again_in,
    other_protocol_problem,
    refused_orders_problem,
    running_executors,
    shortage_problem,
    shortage_reason,
    silence_problem,
    target_executors,
    unknown_values_problem,
)
from tidegate.app.rules.pods.overdue import OVERDUE
from tidegate.app.rules.upgrade.adoption import later_launch_is_to_be_heard
from tidegate.app.rules.upgrade.record import BEFORE_A_LAUNCH, is_pending, runs_ready, takes_orders
from tidegate.app.rules.verdict import Verdict
from tidegate.autoscaling.algorithm.situation import SHORT_SECONDS
from tidegate.engine.rules.health import Health, health_without_start
from tidegate.pods.records.faults import Problem, end_problem, reported_problem, start_problem, why_still_there
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_spark.contract.reasons import Reason

AGENT_PATIENCE = 10.0
"""Seconds for the agent of a driver that has just become ready to report more than the kubelet: one write, not two."""


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
            Reason.DRIVER_NOT_GONE,
            why_still_there(driver),
        )
    if o.app.spec.suspend:
        return Verdict(
            Phase.STOPPING,
            Health.RECONCILING,
            Reason.SUSPENDING,
            messages.suspending(driver.name),
            wake_after=overdue_at - now,
        )
    changed = driver.spec_hash != o.spec_hash or _is_divided_next(o)
    if not changed and ends_to_be_retried(driver):
        return stalled(Phase.FAILED, end_problem(driver), wake_after=overdue_at - now)
    if driver.disruption:
        return _disrupted(driver, overdue_at - now)
    if changed:
        reason, then = why_another_version(o)
    else:
        reason = Reason.RESUMING if stop_was_asked_for(o.app.status) else Reason.DRIVER_STOPPING
        then = messages.NEW_POD_FOLLOWS
    message = messages.stopping_and(driver.name, then, ended=driver.finished)
    return Verdict(Phase.STOPPING, Health.RECONCILING, reason, message, wake_after=overdue_at - now)


def _disrupted(driver: PodRecord, left: float) -> Verdict:
    """Return the verdict about a driver that the cluster ends, which is overdue in so many seconds."""
    reason, message = Reason.NODE_TAINTED, messages.node_tainted(driver.name, driver.node)
    if not driver.tainted:
        reason, message = Reason.DRIVER_LOST, messages.disrupted(driver.name, driver.node, driver.disruption)
    return Verdict(Phase.STOPPING, Health.RECONCILING, reason, message, wake_after=left, warning=True)


def stop_driver_of_earlier_app(o: Observation, now: float) -> Verdict | None:
    """Stop a driver that a deleted application of the same name left: it writes another one's state."""
    driver = o.driver
    if driver is None or driver.app_uid == o.app.metadata.uid:
        return None
    return Verdict(
        Phase.PENDING,
        Health.RECONCILING,
        Reason.EARLIER_DRIVER,
        messages.of_deleted_app(driver.name),
        after=(DeleteDriver(driver),),
    )


def wait_to_hear_later_driver(o: Observation, now: float) -> Verdict | None:
    """Decide nothing beside a status from before the launch of the driver that runs, until its agent is heard.

    Its report says in which lineage it runs, which voids what such a status says of upgrades: for that it would be
    stopped, with no copy and no rehearsal. Nor is its epoch recorded before: then nobody could see how old the rest is.
    """
    driver = o.driver
    if driver is None or not later_launch_is_to_be_heard(o, now):
        return None
    message = messages.running(driver.name)
    return Verdict(Phase.RUNNING, Health.RECONCILING, Reason.RUNNING, message, silent=True, wake_after=AGENT_PATIENCE)


def keep_driver_of_invalid_spec(o: Observation, now: float) -> Verdict | None:
    """Leave a driver as it is while no pod can be made of the changed spec: nothing would come after it."""
    driver = o.driver
    if driver is None or not _is_replaced(o, driver) or ended_for_good(driver) or driver.phase == "Failed":
        return None
    why_not = why_not_built(o)
    if not why_not:
        return None
    phase = Phase.RUNNING if runs_ready(o) else Phase.STARTING
    message = messages.left_running(why_not, driver.name)
    return Verdict(phase, Health.STALLED, reason_not_built(o), message)


def stop_driver_of_changed_spec(o: Observation, now: float) -> Verdict | None:
    """Stop a driver that was started with other restart fields than the spec has now, or on the state to be left."""
    driver = o.driver
    if driver is None or not _is_replaced(o, driver):
        return None
    reason, then = why_another_version(o)
    return Verdict(
        Phase.STOPPING,
        Health.RECONCILING,
        reason,
        messages.stopping_and(driver.name, then, ended=driver.finished),
        after=(DeleteDriver(driver),),
    )


def _is_replaced(o: Observation, driver: PodRecord) -> bool:
    """Return whether a driver is not the one that is to run: of another version, or on the state to be left.

    A rollback by hand may go back to the very version that runs: it did not differ in more than its number, or offsets.
    """
    upgrade = o.app.status.upgrade
    is_left = upgrade is not None and upgrade.phase is UpgradePhase.ROLLING_BACK and not upgrade.epoch
    return is_left or driver.spec_hash != o.spec_hash or (_is_divided_next(o) and _runs_in_known_lineage(o))


def _is_divided_next(o: Observation) -> bool:
    """Return whether the next launch follows on a repartition only."""
    upgrade = o.app.status.upgrade
    return upgrade is not None and upgrade.phase in BEFORE_A_LAUNCH and is_pending(upgrade)


def _runs_in_known_lineage(o: Observation) -> bool:
    """Return whether the driver reports the lineage that the status has.

    Whoever lost the status may run the spec's version on state in the former number of partitions, and an older status
    has it repartitioned. A driver that was launched after that runs in another lineage, and voids such a record.
    """
    return takes_orders(o) and o.agent is not None and o.agent.report.lineage == lineage_of(o)


def why_another_version(o: Observation) -> tuple[Reason, str]:
    """Return why another version than the driver's is to run, in one word, and which."""
    upgrade = o.app.status.upgrade
    if upgrade is not None and upgrade.phase is UpgradePhase.ROLLING_BACK:
        return Reason.UPGRADE_ROLLING_BACK, messages.STABLE_VERSION_FOLLOWS
    why_not = why_not_built(o)
    if why_not:
        return Reason.SPEC_CHANGED, messages.problem_follows(why_not)
    known = upgrade.repartition if upgrade is not None and is_pending(upgrade) else None
    if known is not None:
        return Reason.SPEC_CHANGED, messages.repartition_follows(known.from_partitions, known.partitions)
    return Reason.SPEC_CHANGED, messages.CHANGED_SPEC_FOLLOWS


def judge_unstarted_driver(o: Observation, now: float) -> Verdict | None:
    """Name what keeps the pod's containers from starting."""
    problem = start_problem(o.driver) if o.driver is not None and not o.driver.running else None
    if problem is None:
        return None
    return Verdict(Phase.STARTING, health_without_start(problem.reason), problem.reason, problem.message)


def judge_reported_driver(o: Observation, now: float) -> Verdict | None:
    """Believe the agent: it knows best what the driver is doing."""
    if o.driver is None or not o.driver.running or o.agent is None:
        return None
    report = o.agent.report
    phase = _phase_of(report)
    if report.fault is not None:
        return stalled(phase, reported_problem(report.fault, o.driver))
    # A newer runtime may report an unknown state: then the kubelet's readiness counts.
    if report.state in (DriverState.RUNNING, DriverState.UNKNOWN):
        return _judge_readiness(o, o.driver, report.ready or o.driver.ready, now)
    if report.state in (DriverState.STOPPING, DriverState.ENDED):
        if not o.driver.terminating and o.app.status.phase in (Phase.STARTING, Phase.FAILED):
            return None  # it ends by itself before it has run; its termination message comes in a moment
        return Verdict(
            phase,
            Health.RECONCILING,
            Reason.DRIVER_STOPPING,
            messages.stopping(o.driver.name),
        )
    return None


def _judge_readiness(o: Observation, driver: PodRecord, ready: bool, now: float) -> Verdict | None:
    """Call it running once its queries run; a script that has not come so far, or fails on its way, still starts."""
    if ready:
        return _running(o, driver, now)
    ran = _ran_before(o, driver)
    short = _without_executors(o, driver, now, Phase.RUNNING if ran else Phase.STARTING)
    if short is not None or not ran:
        return short
    message = messages.queries_missing(driver.name, driver.namespace)
    return Verdict(
        Phase.RUNNING, Health.RECONCILING, Reason.DRIVER_NOT_READY, message, wake_after=observe_again_in(o, now)
    )


def _without_executors(o: Observation, driver: PodRecord, now: float, phase: Phase) -> Verdict | None:
    """Name what keeps executors from a driver whose queries do not run yet: without any of them none ever will."""
    problem = shortage_problem(o, driver, now)
    if problem is None or o.agent is None:
        return None
    # Executors of the previous version may still be ending, and then make room.
    stuck = not running_executors(o) and is_short(o.agent.report, now, SHORT_SECONDS)
    verdict = _lacking(o, driver, problem, phase, Health.STALLED if stuck else Health.RECONCILING)
    return dataclasses.replace(verdict, wake_after=observe_again_in(o, now))


def _ran_before(o: Observation, driver: PodRecord) -> bool:
    """Return whether the status says that this very process ran."""
    known = o.app.status
    same = known.epoch == driver.epoch and known.driver is not None and known.driver.restarts == driver.restarts
    return same and known.phase is Phase.RUNNING


def judge_ready_driver(o: Observation, now: float) -> Verdict | None:
    """Believe the kubelet where the operator cannot reach the pod: it asks the same agent."""
    driver = o.driver
    if driver is None or not driver.running or not driver.ready or o.agent is not None:
        return None
    answer_due = driver.ready_time + AGENT_PATIENCE
    first_start = o.app.status.phase is Phase.STARTING and driver.ended is None and not driver.restarts
    # A node's clock that is ahead must not delay it.
    if first_start and driver.ready_time - 1 <= now < answer_due:
        message = starting_message(o, max(driver.epoch, o.app.status.epoch))
        return Verdict(Phase.STARTING, Health.RECONCILING, Reason.DRIVER_STARTING, message, wake_after=answer_due - now)
    return _running(o, driver, now)


def judge_silent_driver(o: Observation, now: float) -> Verdict | None:
    """Keep a driver that ran and is not heard of running or stopping: its node or the network may be cut off."""
    driver, known = o.driver, o.app.status
    if driver is None or not driver.running or o.agent is not None:
        return None
    if known.epoch != driver.epoch or known.driver is None or known.driver.restarts != driver.restarts:
        return None
    if known.phase is Phase.STOPPING:
        # The agent ends before its process does.
        message = messages.stopping(driver.name)
        return Verdict(Phase.STOPPING, Health.RECONCILING, Reason.DRIVER_STOPPING, message)
    if known.phase is not Phase.RUNNING:
        return None
    message = messages.silent(driver.name)
    return Verdict(Phase.RUNNING, Health.RECONCILING, Reason.DRIVER_NOT_READY, message)


def wait_for_driver_to_start(o: Observation, now: float) -> Verdict | None:
    """Wait: the pod is there, and nothing is known to be wrong with it. A script may work for long without Spark."""
    if o.driver is None:
        return None
    if o.agent is not None and o.agent.report.state is DriverState.STARTING:
        message = messages.before_spark(o.driver.name)
    elif o.driver.ended is not None or o.driver.restarts:
        message = messages.restarting(o.driver.name)
    else:
        message = starting_message(o, max(o.driver.epoch, o.app.status.epoch))
    return Verdict(
        Phase.STARTING, Health.RECONCILING, Reason.DRIVER_STARTING, message, wake_after=observe_again_in(o, now)
    )


def _phase_of(report: AgentReport) -> Phase:
    if report.fault is not None and report.state is DriverState.RUNNING:
        return Phase.STARTING  # Spark is there, and no query of ours
    if report.state is DriverState.RUNNING or (report.state is DriverState.UNKNOWN and report.ready):
        return Phase.RUNNING
    return Phase.STOPPING if report.state in (DriverState.STOPPING, DriverState.ENDED) else Phase.STARTING


def _running(o: Observation, driver: PodRecord, now: float) -> Verdict:
    problem = shortage_problem(o, driver, now)
    if problem is None and o.agent is not None and o.agent.report.control.paused:
        # A requested pause is no fault: neither Stalled nor Reconciling.
        return Verdict(Phase.RUNNING, Health.READY, Reason.PAUSED, messages.paused(driver.name))
    if problem is None:
        # An executor that stays costs money, and a silent agent prevents orders; batches are unaffected.
        aside = lingering_problem(o, driver, now) or silence_problem(o) or _misunderstanding_problem(o, now)
        again = observe_again_in(o, now)
        if aside is None:
            return Verdict(Phase.RUNNING, Health.READY, Reason.RUNNING, messages.running(driver.name), wake_after=again)
        message = messages.running_with(driver.name, aside.message)
        return Verdict(Phase.RUNNING, Health.READY, aside.reason, message, wake_after=again, warning=True)
    # Without any executor no batch is ever finished.
    health = Health.READY if running_executors(o) else Health.STALLED
    return dataclasses.replace(_lacking(o, driver, problem, Phase.RUNNING, health), wake_after=observe_again_in(o, now))


def _misunderstanding_problem(o: Observation, now: float) -> Problem | None:
    """Return what operator and runtime do not understand of each other, None if nothing is known."""
    return other_protocol_problem(o) or refused_orders_problem(o, now) or unknown_values_problem(o)


def _lacking(o: Observation, driver: PodRecord, problem: Problem, phase: Phase, health: Health) -> Verdict:
    running, wanted = running_executors(o), target_executors(o)
    message = messages.executors_missing(driver.name, running, wanted, problem.message)
    return Verdict(phase, health, shortage_reason(problem), message, warning=True)
