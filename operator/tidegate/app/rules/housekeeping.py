"""Actions beside the main decision: leftovers, copies, notices. No I/O."""

from __future__ import annotations

from tidegate.app.actions import Action, DeleteExecutor, EnsureLaunchSecrets, RememberReported, RestoreLabels
from tidegate.app.observation import Observation, has_other_key, lacks_access, pods_of
from tidegate.app.rules.launch.configuration import provide_again
from tidegate.app.rules.upgrade.copying import order_copies
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent
from tidegate.pods.records.record import PodRecord, of_driver
from tidegate_spark.contract.protocol import FINALIZER, MOST_NOTICES
from tidegate_spark.contract.reasons import reason_from

VOLUME_PATIENCE = 30.0
"""Seconds from a pod's creation after which what it wants to mount is looked after."""

UNLABELLED_SECONDS = 30.0
"""Seconds after which a pod is looked for again whose labels cannot be restored: the role of an earlier chart."""


def keep_prerequisites(o: Observation, now: float) -> tuple[Action, ...]:
    """Put back what a running driver needs: people and namespace cleaners remove things."""
    if o.driver is None:
        return ()
    actions: tuple[Action, ...] = ()
    if FINALIZER not in o.app.metadata.finalizers:
        actions = (*actions, AddFinalizer())
    if lacks_access(o):
        actions = (*actions, EnsureAccess())
    waits = any(_waits_for_volumes(pod, now) for pod in (o.driver, *o.executors))
    # Secrets cannot be read. Those of another key have other names and unknown content.
    if waits and not has_other_key(o, o.driver):
        actions = (*actions, EnsureLaunchSecrets(o.driver.epoch))
    if _waits_for_volumes(o.driver, now):
        actions = (*actions, *provide_again(o))
    return actions


def check_configuration_in(o: Observation, now: float) -> float | None:
    """Return in how many seconds the Secret of a driver that does not start is made again; None: nothing has to be."""
    driver = o.driver
    if driver is None or driver.phase != "Pending" or not driver.configuration_secret:
        return None
    left = driver.created_at + VOLUME_PATIENCE + 1.0 - now  # the API server's times have whole seconds
    return left if left > 0 else None


def _waits_for_volumes(pod: PodRecord, now: float) -> bool:
    """Return whether a pod is on a node for a while, and no container of it says why it does not start."""
    quiet = pod.phase == "Pending" and bool(pod.node) and pod.waiting is None and not pod.terminating
    return quiet and now - pod.created_at > VOLUME_PATIENCE


def remove_leftover_executors(o: Observation, now: float) -> tuple[Action, ...]:
    """Remove executors of an earlier driver process: they end by themselves, but Spark forgot their pods."""
    return tuple(DeleteExecutor(pod) for pod in o.executors if not pod.terminating and _is_left_over(o.driver, pod))


def restore_labels(o: Observation) -> tuple[Action, ...]:
    """Give pods back the labels that somebody took off, or changed: network policies and our watch go by them.

    First of all, because it shows which pods are there at all.
    """
    unlabelled = tuple(pod for pod in pods_of(o) if not pod.labelled)
    return (RestoreLabels(unlabelled),) if unlabelled else ()


def check_labels_in(o: Observation) -> float | None:
    """Return in how many seconds pods are read once more that no watch reports; None: there are none."""
    return UNLABELLED_SECONDS if any(not pod.labelled for pod in pods_of(o)) else None


def notice_events(o: Observation, now: float) -> tuple[Action, ...]:
    """Publish, as events, what the runtime wants people to know once."""
    if o.agent is None:
        return ()
    report = o.agent.report
    known = o.memory.reported[1] if o.memory.reported[0] == report.epoch else 0
    # The agent is the application's own process, so its notices are bounded.
    new = [notice for notice in report.notices[:MOST_NOTICES] if notice.sequence > known]
    if not new:
        return ()
    events = tuple(
        PublishEvent(reason_from(n.reason), n.message, n.warning, f"{report.epoch}/{n.sequence}") for n in new
    )
    return (*events, RememberReported(report.epoch, max(n.sequence for n in new)))


def _is_left_over(driver: PodRecord | None, executor: PodRecord) -> bool:
    if driver is None or not of_driver(executor, driver):
        return True
    return executor.finished and driver.running and executor.created_at < driver.start_time


HOUSEKEEPING = (keep_prerequisites, remove_leftover_executors, order_copies, notice_events)
