"""Whether the last check of a driver's access still counts. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.cache.index import Index
from tidegate.cache.process_state import TimedReport
from tidegate.engine.resource_key import Key
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import (
    ROLE_EXECUTOR,
    AgentReport,
    DriverState,
)

ACCESS_AGE = 60.0
"""Seconds for which a look at the driver's access counts where something may be wrong with it, or a launch needs it."""


def access_is_due(index: Index, key: Key, report: AgentReport, now: float) -> bool:
    """Return whether a report hints at a lack of access, and the last look at the access was a while ago.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        report: the newest one.
        now: seconds of the monotonic clock.
    """
    executors = [pod for pod in index.pods(key) if pod.role == ROLE_EXECUTOR]
    return lacks_executors(report, executors) and index.checked_access.age(key, now) >= ACCESS_AGE


def access_ready(
    age: float, driver: PodRecord | None, executors: Sequence[PodRecord], agent: TimedReport | None
) -> bool:
    """Return whether the access of a driver is there, as far as is known without looking."""
    # People and namespace cleaners delete access. A driver with all its executors shows that its access exists, so it
    # is not read, not even by a new operator: that would be thousands of requests at each start. One that is to be
    # launched, fails, or gets no executors shows nothing.
    if driver is None:
        return age < ACCESS_AGE
    failed = driver.ended is not None and driver.ended.exit_code != 0 and not driver.ready
    if failed or (agent is not None and lacks_executors(agent.report, executors)):
        return age < ACCESS_AGE
    return True


def lacks_executors(report: AgentReport, executors: Sequence[PodRecord]) -> bool:
    """Return whether a driver says that it has fewer executors than it wants, and none is being made."""
    # An executor's pod that waits for a node was created: the driver may create pods.
    created = sum(1 for pod in executors if not pod.terminating and not pod.finished)
    return report.state is DriverState.RUNNING and max(report.executors_running, created) < report.executors_wanted
