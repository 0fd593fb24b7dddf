"""Rules for a driver that ended and is not simply restarted: policy, budget, fence. No I/O.

The kubelet restarts failed processes and the runtime counts failures, so the operator only reports, and launches again
after an edit.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable

from tidegate.api.status.stops import stop_was_asked_for
from tidegate.api.streaming_app import Phase, RestartPolicy, RestartsStatus, StreamingAppStatus
from tidegate.app.actions import DeleteDriver
from tidegate.app.observation import Observation, is_reported
from tidegate.app.rules import messages
from tidegate.app.rules.live.ended_driver import ends_to_be_retried, judge_ended_driver
from tidegate.app.rules.pods import ends
from tidegate.app.rules.pods.ends import ended_for_good_with, judge_exhausted_driver, obey_policy_never
from tidegate.app.rules.upgrade.adoption import report_of_fenced
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.pods.records import fault_messages
from tidegate.pods.records.faults import end_problem, last_report, read_termination
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate_spark.contract.reasons import Reason, reason_from

_FINAL: dict[str, Callable[[str], str]] = {
    Reason.RESTART_BUDGET_EXHAUSTED: messages.budget_exhausted,
    Reason.FENCED: messages.fenced,
    Reason.RESTART_POLICY_NEVER: messages.policy_never,
}
"""Reasons of an application that failed for good: the loss of its pod is no reason to start it again."""


def stay_ended(o: Observation, now: float) -> Verdict | None:
    """Keep what ended for good as it is while its pod is cleared away: that is no reason to start it again."""
    driver = o.driver
    if driver is None or not driver.terminating or driver.spec_hash != o.spec_hash:
        return None
    if driver.app_uid != o.app.metadata.uid or ends_to_be_retried(driver) or start_finished_again(o, now):
        return None
    if o.app.spec.suspend and ended_for_good_with(driver, Reason.COMPLETED) is None:
        return None
    rules = (obey_policy_never, adopt_lost_epoch, judge_fenced_driver, judge_exhausted_driver, judge_ended_driver)
    verdict = next((found for found in (rule(o, now) for rule in rules) if found is not None), None)
    return verdict if verdict is not None and not verdict.after else None


def clear_earlier_driver(o: Observation, now: float) -> Verdict | None:
    """Keep an application ended that the status says to have ended for good, and delete its pod of an earlier epoch.

    A late watch shows that pod, or a former leader created it late. Else the deletion of the pod would be reported in
    place of the end, and the application be started again.
    """
    driver = o.driver
    if driver is None or driver.epoch >= o.app.status.epoch or driver.app_uid != o.app.metadata.uid:
        return None
    if driver.ended is not None and is_reported(driver.ended, o.app.status):
        return None  # the status has its end: it ran, because the operator ended before it created this epoch's pod
    verdict = None if o.app.spec.suspend else _as_it_ended(o)
    if verdict is None or driver.terminating:
        return verdict
    return dataclasses.replace(verdict, after=(DeleteDriver(driver),))


def adopt_lost_epoch(o: Observation, now: float) -> Verdict | None:
    """Take over what the storage knows and the status does not: that was lost, or is older, or somebody edited it.

    It goes to the status first; then the driver that was not to run makes room for one with the right configuration.
    """
    driver, termination = o.driver, report_of_fenced(o)
    if driver is None or termination is None:
        return None
    stored, known = (termination.adopt_epoch, termination.adopt_lineage), (o.app.status.epoch, o.app.status.lineage)
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        Reason.EPOCH_ADOPTED,
        messages.epoch_adopted(stored, known, termination.adopted_from),
        after=(DeleteDriver(driver),),
        adopt=stored,
        adopt_opening=termination.adopt_opening,
        warning=True,
    )


def judge_fenced_driver(o: Observation, now: float) -> Verdict | None:
    """Leave a driver alone that another one took the storage from: two that take turns would be worse than none."""
    termination = ended_for_good_with(o.driver, Reason.FENCED)
    if termination is None or o.driver is None:
        return None
    if termination.adopt_epoch and termination.adopt_epoch <= o.app.status.epoch:
        # Its epoch was already adopted; only this pod is still in the way.
        message = messages.older_pod_replaced(o.driver.name)
        return Verdict(
            Phase.STARTING, Health.RECONCILING, Reason.DRIVER_STARTING, message, after=(DeleteDriver(o.driver),)
        )
    return Verdict(
        Phase.FAILED,
        Health.STALLED,
        Reason.FENCED,
        messages.fenced(fault_messages.sentence(termination.message.strip())),
    )


def start_finished_again(o: Observation, now: float) -> Verdict | None:
    """Start a finished application again if the policy is Always; quick ends are followed by exponential back-off."""
    driver = o.driver
    if driver is None or o.app.spec.restart.policy is not RestartPolicy.ALWAYS:
        return None
    if ended_for_good_with(driver, Reason.COMPLETED) is None:
        return None
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        Reason.RESTARTED,
        messages.policy_always(),
        after=(DeleteDriver(driver),),
    )


def ignore_stale_pod(o: Observation, now: float) -> Verdict | None:
    """Keep an application ended that the status says to have ended for good: a late watch shows its pod running."""
    driver = o.driver
    if driver is None or not driver.running or driver.terminating or driver.epoch != o.app.status.epoch:
        return None
    return _as_it_ended(o)


def leave_failed_alone(o: Observation, now: float) -> Verdict | None:
    """Keep an application failed whose pod was cleared away; a changed spec starts it again."""
    verdict = _as_it_ended(o) if o.driver is None else None
    return verdict if verdict is not None and verdict.phase is Phase.FAILED else None


def _as_it_ended(o: Observation) -> Verdict | None:
    """Return what the status says of an application that ended for good with the present spec."""
    status = o.app.status
    ready = status.condition(Health.READY.value)
    if ready is None or status.applied_spec_hash != o.spec_hash:
        return None
    if status.phase is Phase.COMPLETED:
        return Verdict(Phase.COMPLETED, Health.READY, Reason.COMPLETED, messages.FINISHED)
    if ready.reason == Reason.RESTART_POLICY_NEVER and o.app.spec.restart.policy is not RestartPolicy.NEVER:
        return None  # the policy that it waits for was changed
    final = _FINAL.get(ready.reason) if status.phase is Phase.FAILED else None
    if final is None:
        return None
    # The message is built again, because the condition's may mention an edit that was reverted since.
    return Verdict(Phase.FAILED, Health.STALLED, reason_from(ready.reason), final(ends.last_end(o)))


def cut_batch_event(o: Observation, now: float) -> tuple[PublishEvent, ...]:
    """Return the event that the driver ended inside a batch: nothing is lost, but the batch is run again."""
    ended = o.driver.ended if o.driver is not None else None
    termination = read_termination(ended)
    if ended is None or termination is None or termination.boundary or not is_new_end(o):
        return ()
    if termination.batch_failed:  # its end says why
        return ()
    reason, message = Reason.BATCH_GIVEN_UP, messages.BATCH_GIVEN_UP
    if not termination.given_up:
        reason = Reason.GRACE_PERIOD_EXCEEDED
        message = messages.grace_period_exceeded(o.app.spec.driver.stop_grace_period_seconds)
    assert o.driver is not None
    return (PublishEvent(reason, message, True, f"{o.driver.epoch}/{ended.completion_time:.0f}"),)


def is_new_end(o: Observation) -> bool:
    """Return whether the driver's last end is not in the status yet."""
    ended = o.driver.ended if o.driver is not None else None
    return ended is not None and not is_reported(ended, o.app.status)


def count_restarts(o: Observation, verdict: Verdict, now: float) -> RestartsStatus | None:
    """Return the status's account of ends that nobody asked for; None if there is nothing to account for."""
    known = o.app.status.restarts or RestartsStatus()
    requested = verdict.launch and not verdict.unplanned
    reason = _unplanned_end(o, verdict)
    counted = RestartsStatus(
        total=known.total + bool(reason),
        last_reason=reason or known.last_reason,
        recent_failure_times=() if requested else recent_failures(o, now),
    )
    return counted if counted != RestartsStatus() else None


def recent_failures(o: Observation, now: float) -> tuple[datetime.datetime, ...]:
    """Return when the application failed within the window: as the driver reports it, else as the status has it."""
    reported = last_report(o.driver)
    if reported is not None:
        times = reported.failures
    elif o.agent is not None:
        times = o.agent.report.failures
    else:
        known = o.app.status.restarts
        times = tuple(time.timestamp() for time in known.recent_failure_times) if known else ()
    since = now - o.app.spec.restart.window_seconds
    return tuple(t for t in map(time_from_seconds, times) if t is not None and t.timestamp() > since)


def _unplanned_end(o: Observation, verdict: Verdict) -> str:
    """Return one word for an end of the driver that is to be counted now, or an empty string."""
    if o.driver is None:
        # Counted at the first reconcile without it, because the status has no driver after that.
        return Reason.DRIVER_LOST if verdict.unplanned and _ran_when_last_seen(o.app.status) else ""
    asked = o.app.spec.suspend or o.driver.spec_hash != o.spec_hash
    withdrawn = o.driver.terminating and stop_was_asked_for(o.app.status)
    if asked or withdrawn or not is_new_end(o):
        return ""
    termination = read_termination(o.driver.ended)
    if termination is not None and termination.reason in (Reason.COMPLETED, Reason.STOPPED):
        return "" if termination.reason is Reason.COMPLETED else Reason.STOPPED
    return end_problem(o.driver).reason


def _ran_when_last_seen(status: StreamingAppStatus) -> bool:
    started = status.driver.start_time if status.driver else None
    ended = status.last_exit.completion_time if status.last_exit else None
    return started is not None and (ended is None or ended < started)
