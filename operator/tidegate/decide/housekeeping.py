"""What is done beside the main decision, whatever that was: leftovers, copies, notices. No I/O."""

from __future__ import annotations

from tidegate.decide.actions import (
    Action,
    AddFinalizer,
    DeleteExecutor,
    EnsureAccess,
    EnsureAgentSecret,
    PublishEvent,
    RememberTold,
)
from tidegate.decide.upgrades.orders import order_copies
from tidegate.observe.observation import Observation, lacks_access
from tidegate.observe.pods import PodRecord, of_driver
from tidegate_spark.protocol import FINALIZER
from tidegate_spark.reasons import reason_from


def keep_prerequisites(o: Observation, now: float) -> tuple[Action, ...]:
    """Put back what a running driver needs: people and namespace cleaners remove things."""
    if o.driver is None:
        return ()
    actions: tuple[Action, ...] = ()
    if FINALIZER not in o.app.metadata.finalizers:
        actions = (*actions, AddFinalizer())
    if o.memory.secret_missing:
        actions = (*actions, EnsureAgentSecret())
    if lacks_access(o):
        actions = (*actions, EnsureAccess())
    return actions


def remove_leftover_executors(o: Observation, now: float) -> tuple[Action, ...]:
    """Remove executors of an earlier driver process: they end by themselves, but Spark forgot their pods."""
    return tuple(DeleteExecutor(pod) for pod in o.executors if not pod.terminating and _is_left_over(o.driver, pod))


def tell_notices(o: Observation, now: float) -> tuple[Action, ...]:
    """Tell as events what the runtime wants people to know once."""
    if o.agent is None:
        return ()
    report = o.agent.report
    known = o.memory.told[1] if o.memory.told[0] == report.epoch else 0
    new = [notice for notice in report.notices if notice.sequence > known]
    if not new:
        return ()
    told = tuple(PublishEvent(reason_from(n.reason), n.message, n.warning, f"{report.epoch}/{n.sequence}") for n in new)
    return (*told, RememberTold(report.epoch, max(n.sequence for n in new)))


def _is_left_over(driver: PodRecord | None, executor: PodRecord) -> bool:
    if driver is None or not of_driver(executor, driver):
        return True
    return executor.finished and driver.running and executor.created_at < driver.start_time


HOUSEKEEPING = (keep_prerequisites, remove_leftover_executors, order_copies, tell_notices)
