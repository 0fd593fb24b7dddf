"""Rules for ``spec.suspend``: no pods, all state. No I/O."""

from __future__ import annotations

from tidegate.api.lost_status import may_have_launched
from tidegate.api.streaming_app import Phase
from tidegate.app.actions import ConfirmDriverGone, DeleteDriver
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.pods.disowned import wait_for_disowned_driver
from tidegate.app.rules.pods.overdue import wait_for_end
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.pods.records.faults import has_completed
from tidegate.pods.records.names import driver_pod_name
from tidegate_spark.contract.reasons import Reason


def stop_driver_of_suspended(o: Observation, now: float) -> Verdict | None:
    """Stop the driver at a batch boundary; a finished one holds nothing and stays what it is."""
    driver = o.driver
    if driver is None or not o.app.spec.suspend or has_completed(driver):
        return None
    return Verdict(
        Phase.STOPPING,
        Health.RECONCILING,
        Reason.SUSPENDING,
        messages.suspending(driver.name),
        after=(DeleteDriver(driver),),
    )


def stay_suspended(o: Observation, now: float) -> Verdict | None:
    """Keep a suspended application without pods. It is what the spec asks for, so it counts as ready."""
    if o.driver is not None or not o.app.spec.suspend:
        return None
    if o.executors:  # a finished one, too, is a pod that people see until it is gone
        overdue = wait_for_end(o.executors, Phase.STOPPING, now)
        if isinstance(overdue, Verdict):
            return overdue
        message = messages.EXECUTORS_DELETED
        return Verdict(Phase.STOPPING, Health.RECONCILING, Reason.SUSPENDING, message, wake_after=overdue)
    # What a watch does not show may run: whoever restored a status, or took a driver's labels off while no operator
    # looked, would read that nothing does.
    known = o.app.status.phase is Phase.SUSPENDED or not may_have_launched(o.app)
    found = None if known else wait_for_disowned_driver(o, Phase.STOPPING, now)
    if found is not None:
        return found
    gone = () if known else (ConfirmDriverGone(driver_pod_name(o.app.metadata.name)),)
    return Verdict(Phase.SUSPENDED, Health.READY, Reason.SUSPENDED, messages.SUSPENDED, before=gone)
