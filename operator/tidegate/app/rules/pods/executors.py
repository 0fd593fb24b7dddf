"""How many executors there are to be, how a driver reaches that number, and what prevents it. No I/O.

Every other module asks :func:`target_executors` for the number.
"""

from __future__ import annotations

import datetime
from typing import Any

from tidegate.api.streaming_app import StreamingApp, UpgradePhase
from tidegate.api.values.errors import SpecError
from tidegate.app.actions import Action, SetExecutors
from tidegate.app.observation import Observation, has_other_key
from tidegate.app.rules.pods import executor_end_messages, executor_messages
from tidegate.app.rules.pods.executor_ends import END_REASONS, last_end
from tidegate.autoscaling.algorithm.quota_messages import quota_message
from tidegate.autoscaling.algorithm.situation import SHORT_SECONDS
from tidegate.autoscaling.rules.inputs import is_autoscaled
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.admission.admission_error import complaint_of
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_to_try
from tidegate.pods.records.faults import Problem, start_problem
from tidegate.pods.records.names import SHARED_ACCESS_NAME, driver_pod_name
from tidegate.pods.records.record import PodRecord, of_driver, process_of
from tidegate_spark.contract.control_protocol import MessageState
from tidegate_spark.contract.protocol import PROTOCOL, ROLE_EXECUTOR, AgentReport, DriverState, works_with
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotState

SILENT_SECONDS = 180.0
"""For how long executors have to be missing whose pods run: a large image, or a busy node, keeps them for a while."""
ORDERS_STAND_SECONDS = 60.0
"""After orders about snapshots were given, until they count as not wanted any more."""
LINGER_SECONDS = 600.0
"""For how long one may end its tasks before that is reported: those of a catch-up batch take minutes."""


def target_executors(o: Observation) -> int:
    """Return how many executors there are to be: the autoscaler's target if there is one, else as the spec says."""
    asked = o.app.spec.autoscaling
    if asked is None or not is_autoscaled(o.app):
        return o.app.spec.executor.instances
    known = o.app.status.autoscaling
    advised = o.advice.evaluation.past.target if o.advice is not None else 0
    target = advised or (known.target if known is not None else None) or o.app.spec.executor.instances
    # Bounded also before the first evaluation, so that a launch does not start with executors that are removed at once.
    return max(asked.min_executors, min(target, asked.max_executors))


def wanted_executors(o: Observation) -> int:
    """Return how many executors there should be: as the driver was asked for, or will be."""
    reported = o.agent.report.executors_wanted if o.agent else 0
    return reported or target_executors(o)


def running_executors(o: Observation) -> int:
    """Return how many executors are registered with the driver or, as long as it does not answer, how many run.

    Those that only end their tasks are not among them.
    """
    if o.agent is not None:
        return o.agent.report.executors_running
    return sum(1 for pod in o.executors if pod.running and not pod.terminating)


def rescale_live(o: Observation, now: float) -> tuple[Action, ...]:
    """Change the number of executors through the agent, without a restart."""
    if o.driver is None or o.driver.terminating or o.agent is None or _is_to_stop(o.app):
        return ()
    wanted = target_executors(o)
    report = o.agent.report
    if report.state is not DriverState.RUNNING or report.executors_wanted == wanted:
        return ()
    if is_autoscaled(o.app):
        # The autoscaler's own event says why.
        return (SetExecutors(o.driver, wanted),)
    events = PublishEvent(
        Reason.RESCALED,
        executor_messages.rescaled(report.executors_wanted, wanted),
        False,
        f"{o.driver.epoch}/{o.app.metadata.generation}",
    )
    return (SetExecutors(o.driver, wanted), events)


def _is_to_stop(app: StreamingApp) -> bool:
    """Return whether the driver is stopped anyway: the next one is launched with the number that holds then."""
    upgrade = app.status.upgrade
    return app.spec.suspend or (upgrade is not None and upgrade.phase is UpgradePhase.STOPPING)


def lacks_pods(o: Observation, now: float) -> bool:
    """Return whether executors have been missing for a while of which there is not even a pod."""
    if o.driver is None or o.agent is None or not is_short(o.agent.report, now, SHORT_SECONDS):
        return False
    return len(_pods(o, o.driver)) < o.agent.report.executors_wanted


def is_short(report: AgentReport, now: float, seconds: float) -> bool:
    """Return whether fewer executors have run than are wanted for so long, beside those that wait for others to go.

    Spark counts the pods of executors that end their tasks: for each of those there is one less that is missing, until
    it has gone. How long that may last is :func:`lingering_problem`'s business.
    """
    since = report.executors_short_since
    return report.state is DriverState.RUNNING and _missing(report) > 0 and 0 < since <= now - seconds


def _missing(report: AgentReport) -> int:
    return max(0, report.executors_wanted - report.executors_running - report.executors_leaving)


def shortage_problem(o: Observation, driver: PodRecord, now: float) -> Problem | None:
    """Return what keeps executors that are wanted from running, None if they all run, or nothing is known yet."""
    pods, lingering = _pods(o, driver), lingering_problem(o, driver, now)
    problem = next((found for found in map(start_problem, pods) if found is not None), None)
    if problem is None and o.agent is not None:
        problem = _ends_problem(o, o.agent.report, now) or _missing_without_problem(o, o.agent.report, len(pods), now)
    if lingering is None:
        return problem
    if problem is not None:
        return Problem(problem.reason, executor_messages.both(problem.message, lingering.message))
    short = o.agent is not None and o.agent.report.executors_running < o.agent.report.executors_wanted
    return Problem(Reason.EXECUTORS_MISSING, lingering.message) if short else None


def _ends_problem(o: Observation, report: AgentReport, now: float) -> Problem | None:
    """Return why executors are missing that ended, None if they are not missing for that."""
    if report.state is not DriverState.RUNNING or not _missing(report):
        return None
    until = report.executors_held_until if report.executors_held_until > now else 0.0
    if not until and not is_short(report, now, SHORT_SECONDS):
        return None  # a lost one is replaced at once and not reported
    problem = last_end(o, 0.0 if until else report.executors_short_since - SHORT_SECONDS)
    if problem is None and not until:
        return None
    if problem is None:
        problem = Problem(Reason.EXECUTORS_MISSING, executor_end_messages.ends_unseen(report.executors_ended))
    return Problem(problem.reason, executor_end_messages.next_attempt(problem.message, until))


def shortage_reason(problem: Problem) -> Reason:
    """Return the reason of a driver that lacks executors: how they ended, or else that they are missing."""
    return problem.reason if problem.reason in END_REASONS else Reason.EXECUTORS_MISSING


def lacks_key(o: Observation) -> bool:
    """Return whether the driver has another key than the operator: known without asking it, and for good."""
    return o.driver is not None and o.agent is None and has_other_key(o, o.driver)


def silence_problem(o: Observation) -> Problem | None:
    """Return what an agent that does not answer keeps from happening, None if it answers, or nobody knows yet.

    The kubelet finds it ready on another port: so the driver is well, and nobody would look for what is wrong.
    """
    other_key = lacks_key(o)
    if not o.silence and not other_key:
        return None
    pod, namespace = driver_pod_name(o.app.metadata.name), o.app.metadata.namespace
    running, wanted = running_executors(o), target_executors(o)
    if o.driver is not None and other_key:
        message = executor_messages.other_key(o.driver.agent_secret, running, wanted)
    else:
        message = executor_messages.agent_unreachable(o.silence, running, wanted, pod, namespace)
    return Problem(Reason.AGENT_UNREACHABLE, message)


def other_protocol_problem(o: Observation) -> Problem | None:
    """Return which of operator and runtime is to be upgraded, None if they understand each other, or nothing is known.

    A much earlier runtime does not know that it should refuse; its driver runs on with what both know.
    """
    if o.agent is None or works_with(o.agent.report.protocol):
        return None
    its = o.agent.report.protocol
    if its > PROTOCOL:
        return Problem(Reason.PROTOCOL_MISMATCH, executor_messages.operator_too_old(its))
    return Problem(Reason.PROTOCOL_MISMATCH, executor_messages.runtime_too_old(its))


def refused_orders_problem(o: Observation, now: float) -> Problem | None:
    """Return which order the agent refuses that is still given, None if it takes all of them."""
    if o.driver is None:
        return None
    process, (given, _) = process_of(o.driver), o.memory.orders_given
    by_whom, why = o.memory.executors_refused
    if by_whom == process and rescale_live(o, now):
        return Problem(Reason.ORDER_REFUSED, executor_messages.order_refused(why))
    by_whom, why = o.memory.orders_refused
    # The order is repeated every few seconds while it is wanted.
    if by_whom == process and now - given < ORDERS_STAND_SECONDS:
        return Problem(Reason.ORDER_REFUSED, executor_messages.order_refused(why))
    return None


def unknown_values_problem(o: Observation) -> Problem | None:
    """Return in which fields of its report the runtime uses words of a newer version, None if it uses none."""
    if o.agent is None:
        return None
    report = o.agent.report
    found = {
        "state": report.state is DriverState.UNKNOWN,
        "snapshots.state": any(each.state is SnapshotState.UNKNOWN for each in report.snapshots),
        "snapshots.reason": any(each.reason is Reason.UNKNOWN for each in report.snapshots),
        "control.messages.state": any(each.state is MessageState.UNKNOWN for each in report.control.messages),
    }
    fields = tuple(name for name, is_unknown in found.items() if is_unknown)
    return Problem(Reason.UNKNOWN, executor_messages.unknown_values(fields)) if fields else None


def _missing_without_problem(o: Observation, report: AgentReport, pods: int, now: float) -> Problem | None:
    wanted = report.executors_wanted
    if lacks_pods(o, now):
        return Problem(Reason.EXECUTORS_MISSING, executor_messages.no_pods(wanted - pods, _why_no_pods(o, wanted)))
    if is_short(report, now, SILENT_SECONDS):
        name, namespace = o.app.metadata.name, o.app.metadata.namespace
        message = executor_messages.not_registered(_missing(report), name, namespace)
        return Problem(Reason.EXECUTORS_MISSING, message)
    return None


def lingering_problem(o: Observation, driver: PodRecord, now: float) -> Problem | None:
    """Return which executor was to go and has not gone for long, None if none is known."""
    report = o.agent.report if o.agent is not None else None
    if report is None or not report.executors_leaving:
        return None
    if not 0 < report.executors_leaving_since <= now - LINGER_SECONDS:
        return None
    which = f"-exec-{report.executor_leaving_longest}"
    pod = next((each.name for each in o.executors if of_driver(each, driver) and each.name.endswith(which)), "")
    others = report.executors_leaving - 1
    time = datetime.datetime.fromtimestamp(int(report.executors_leaving_since), datetime.UTC)
    message = executor_messages.lingering(
        report.executor_leaving_longest,
        f"{time:%Y-%m-%dT%H:%M:%SZ}",
        others,
        (pod, driver.namespace),
        short=report.executors_running < report.executors_wanted,
    )
    return Problem(Reason.EXECUTORS_LINGER, message)


def observe_again_in(o: Observation, now: float) -> float | None:
    """Return in how many seconds a shortage or a lingering executor will be reported; None: there is none."""
    if o.agent is None:
        return None
    report = o.agent.report
    times = (
        *((report.executors_short_since, each) for each in (SHORT_SECONDS, SILENT_SECONDS)),
        (report.executors_leaving_since, LINGER_SECONDS),
    )
    return min((since + each - now for since, each in times if since > 0 and since + each > now), default=None)


def _pods(o: Observation, driver: PodRecord) -> list[PodRecord]:
    return [pod for pod in o.executors if of_driver(pod, driver) and not pod.terminating and not pod.finished]


def _why_no_pods(o: Observation, wanted: int) -> str:
    driver, namespace = driver_pod_name(o.app.metadata.name), o.app.metadata.namespace
    if o.quota is not None and o.quota.unsure:
        return executor_messages.quota_unsure(quota_message(o.quota), driver, namespace)
    if o.quota is not None and o.quota.most < wanted:
        return executor_messages.quota_reached(quota_message(o.quota))
    if _runs_as_former_account(o):
        return executor_messages.former_account(SHARED_ACCESS_NAME, driver, namespace)
    pod = executor_to_try(o) if o.executor_refused else None
    if pod is not None:
        complaint = complaint_of(o.executor_refused, o.app, ROLE_EXECUTOR, pod, o.platform.floors.unread)
        return executor_messages.refused_because(complaint.text, ", ".join(complaint.fields))
    return executor_messages.refused(driver, namespace)


def executor_to_try(o: Observation) -> dict[str, Any] | None:
    """Return a pod like those of the driver's executors; None if it runs another version, or none can be made."""
    if o.driver is None or o.driver.spec_hash != o.spec_hash:
        return None
    try:
        return build_executor_to_try(o.app, o.driver.epoch, app_storage(o.app), o.platform)
    except SpecError:
        return None


def _runs_as_former_account(o: Observation) -> bool:
    """Return whether the driver runs as the account that drivers shared once, whose Role is not put back any more."""
    named = o.app.spec.service_account_name
    return o.driver is not None and o.driver.service_account == SHARED_ACCESS_NAME and named != SHARED_ACCESS_NAME
