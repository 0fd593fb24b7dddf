"""Counts the driver processes that ended between two statuses of an application. No I/O.

The first status is the stored one, which contains what any earlier operator process counted: so a restart of the
operator neither repeats nor misses an end.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.api.status.status import Phase, StreamingAppStatus, UpgradePhase
from tidegate.api.status.stops import stop_was_asked_for
from tidegate_spark.contract.protocol import EXIT_CODES
from tidegate_spark.contract.reasons import Reason

RESUMED = "Resumed"
_TOLD = frozenset(EXIT_CODES)
_OF_THE_KUBELET = {
    "OOMKilled": Reason.OUT_OF_MEMORY,
    "Error": Reason.DRIVER_CRASHED,
    "ContainerCannotRun": Reason.DRIVER_CRASHED,
    "StartError": Reason.DRIVER_CRASHED,
    "": Reason.DRIVER_CRASHED,
}
"""The kubelet's words for the end of a container, in those that conditions use."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Ends of driver processes for one reason, each followed by another process."""

    reason: str
    times: int


def restarts_between(old: StreamingAppStatus, new: StreamingAppStatus) -> tuple[Restart, ...]:
    """Return the restarts that ``new`` has and ``old`` does not; the reasons are the conditions' words.

    Args:
        old: as it was before an operator's write.
        new: as it was written, of the same application.
    """
    if new.epoch > old.epoch:
        # The first launch of an application follows nothing, and neither does one after launches without a process.
        return (Restart(_reason_of_launch(old, new), 1),) if old.epoch and _had_a_process(old) else ()
    times = _process_restarts(new) - _process_restarts(old)
    if new.epoch < old.epoch or times <= 0:
        return ()
    return (Restart(_word(new.last_exit.reason if new.last_exit else ""), times),)


def _process_restarts(status: StreamingAppStatus) -> int:
    # Without a driver the number starts again from nothing: with the next one comes a new epoch.
    return status.driver.restarts if status.driver else 0


def _had_a_process(status: StreamingAppStatus) -> bool:
    """Return whether the launch of a status came to a driver process, as far as was seen."""
    if status.phase is Phase.PENDING:
        return False  # its pod was refused, or never made
    ready, driver = status.condition("Ready"), status.driver
    if status.phase is not Phase.STARTING or ready is None or ready.reason != Reason.DRIVER_STARTING:
        return True
    return driver is not None and (driver.start_time is not None or driver.restarts > 0)


def _reason_of_launch(old: StreamingAppStatus, new: StreamingAppStatus) -> str:
    if old.phase is Phase.SUSPENDED:
        return RESUMED
    if old.applied_spec_hash and new.applied_spec_hash != old.applied_spec_hash:
        back = new.upgrade is not None and new.upgrade.phase is UpgradePhase.ROLLING_BACK
        return Reason.ROLLED_BACK if back else Reason.SPEC_CHANGED
    if stop_was_asked_for(old):
        return RESUMED  # the wish was taken back before the driver had ended
    last, driver = old.last_exit, old.driver
    started = driver.start_time if driver else None
    if last is None or (started and last.completion_time and last.completion_time < started):
        return Reason.DRIVER_LOST  # the last word, if there is one, is of an earlier process
    return _word(last.reason)


def _word(reason: str) -> str:
    # What neither the runtime nor the kubelet says of a container is said of the whole pod: Evicted, NodeShutdown …
    return reason if reason in _TOLD else _OF_THE_KUBELET.get(reason, Reason.DRIVER_LOST)
