"""Takes over epoch and lineage from the storage when the status differs. No I/O.

The status is a copy that can be lost, restored from a backup or edited; the storage is the truth, and drivers report
it. Steps of an upgrade that refer to another lineage are void then.
"""

from __future__ import annotations

import msgspec

from tidegate.api.status.autoscaling_status import AutoscalingStatus
from tidegate.api.streaming_app import UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.origin import lacks_starting_point, lineage_of
from tidegate.app.rules.pods.ends import ended_for_good_with
from tidegate.app.rules.upgrade import messages as upgrade_messages
from tidegate.app.rules.upgrade.launched import has_not_begun
from tidegate.app.rules.upgrade.record import (
    UNDER_WAY,
    Step,
    adopted,
    change,
    is_pending,
    may_be_heard_yet,
    without_rollback_snapshot,
)
from tidegate.autoscaling.rules.inputs import is_autoscaled
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.protocol import FIRST_LINEAGE, AgentReport, DriverState, Termination
from tidegate_spark.contract.reasons import Reason

LONGEST_WAIT = 60.0
"""Seconds for an agent that could be asked to answer, or to be known to be silent."""


def driver_runs_elsewhere(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Take over epoch and lineage of the driver that runs, if the status has others."""
    report = _report_from_elsewhere(o)
    if report is None:
        return _void_by_later_launch(o, upgrade, now)
    found = (report.epoch, report.lineage)
    return Step(adopt=found, autoscaling=_autoscaling_of_lost_status(o, report.executors_wanted))


def _void_by_later_launch(o: Observation, upgrade: UpgradeStatus | None, now: float) -> Step | None:
    """Take over the epoch of a driver that reports no lineage yet, or has ended, where an upgrade would act on it.

    A launch is recorded before its pod is made: that upgrade is from before this launch, and what it would roll back or
    stop may have been stable since.
    """
    driver, status = o.driver, o.app.status
    if driver is None or upgrade is None or upgrade.phase not in UNDER_WAY or has_not_begun(driver):
        return None
    if not _is_later_launch(o) or later_launch_is_to_be_heard(o, now):
        return None
    return Step(adopt=(driver.epoch, status.lineage))


def later_launch_is_to_be_heard(o: Observation, now: float) -> bool:
    """Return whether the driver was launched after the status, and its agent may be heard in a moment."""
    if o.driver is None or not _is_later_launch(o) or not may_be_heard_yet(o):
        return False
    return 0.0 <= now - max(o.driver.ready_time, o.deciding_since) < LONGEST_WAIT


def _is_later_launch(o: Observation) -> bool:
    driver = o.driver
    return driver is not None and driver.app_uid == o.app.metadata.uid and driver.epoch > o.app.status.epoch


def runs_spec_elsewhere(o: Observation) -> bool:
    """Return whether the driver runs what the spec says, in an epoch or lineage that the status does not know."""
    report, driver = _report_from_elsewhere(o), o.driver
    return report is not None and driver is not None and driver.spec_hash == o.spec_hash


def runs_another_elsewhere(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether what runs voids a record, and is not the version under test: that was replaced since."""
    report, driver = _report_from_elsewhere(o), o.driver
    if report is None or driver is None or driver.spec_hash == upgrade.to_spec_hash:
        return False
    return adopted(o.app.status, report.epoch, report.lineage).upgrade is None


def _report_from_elsewhere(o: Observation) -> AgentReport | None:
    """Return the report of the driver that runs, if it has another epoch or lineage than the status."""
    driver, status = o.driver, o.app.status
    report = o.agent.report if o.agent is not None else None
    if driver is None or report is None or report.state is not DriverState.RUNNING or not report.lineage:
        return None
    if driver.app_uid != o.app.metadata.uid or report.epoch != driver.epoch or driver.epoch < status.epoch:
        return None  # a late watch may show an earlier epoch, of another lineage
    return report if (report.epoch, report.lineage) != (status.epoch, status.lineage) else None


def _autoscaling_of_lost_status(o: Observation, wanted: int) -> AutoscalingStatus | None:
    """Return the autoscaler's status with the number that the driver has, if the status was lost with the target.

    Without it, the driver would be scaled down to ``executor.instances`` at once.
    """
    asked, known = o.app.spec.autoscaling, o.app.status.autoscaling
    if o.app.status.lineage or asked is None or not is_autoscaled(o.app) or wanted <= 0:
        return None
    if known is not None and known.target:
        return None
    target = max(asked.min_executors, min(wanted, asked.max_executors))
    return msgspec.structs.replace(known or AutoscalingStatus(mode=asked.mode.value), target=target)


def version_was_not_stopped(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Go on with the test of a version that the spec was set back to before its driver was stopped for a newer one.

    What it can be rolled back to was kept for it. It may have run for long, so that its time is not that of a launch.
    """
    if not upgrade.epoch or is_pending(upgrade) or not _runs(o, upgrade):
        return None
    return change(upgrade, upgrade_messages.NOT_STOPPED, lineage=lineage_of(o))


def new_version_runs_already(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Start the test of a version whose driver runs although the record does not know of its launch.

    Otherwise the upgrade would wait for ever for a driver of the previous version to stop. Nothing was kept to roll
    back to: the state has moved on with the new version.
    """
    if upgrade.repartition is not None or not _runs(o, upgrade):
        return None  # a version with repartitioned state runs in another lineage than this one
    assert o.driver is not None
    return change(
        without_rollback_snapshot(upgrade),
        upgrade_messages.STARTED,
        epoch=o.driver.epoch,
        lineage=lineage_of(o),
        starting_offsets="",  # it continues where it was
    )


def _runs(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether the driver launched last is there, of the version under test, which the spec asks for."""
    driver = o.driver
    if driver is None or driver.terminating:
        return False
    if not driver.spec_hash == upgrade.to_spec_hash == o.spec_hash != upgrade.from_spec_hash:
        return False
    return (driver.app_uid, driver.epoch) == (o.app.metadata.uid, o.app.status.epoch)


def adoption_event(o: Observation, step: Step | None) -> tuple[PublishEvent, ...]:
    """Return the event of a step by which the status got epoch and lineage of the driver that runs."""
    if step is None or not any(step.adopt):
        return ()
    known = (o.app.status.epoch, o.app.status.lineage)
    occasion = "/".join(str(number) for number in (*step.adopt, *known))
    return (PublishEvent(Reason.EPOCH_ADOPTED, messages.epoch_adopted(step.adopt, known), True, occasion),)


def report_of_fenced(o: Observation) -> Termination | None:
    """Return the last report of a driver that was not to run, if that says what the status does not."""
    driver, status, began = o.driver, o.app.status, o.app.status.start_from
    termination = ended_for_good_with(driver, Reason.FENCED)
    if driver is None or termination is None or not termination.adopt_epoch or unproven_place(o) is not None:
        return None
    if termination.adopt_epoch > status.epoch or termination.adopted_from:
        return termination
    if driver.epoch < status.epoch:
        return None  # a message of an earlier launch is in the status, or obsolete
    opens = status.upgrade is not None or (began is not None and began.lineage == termination.adopt_lineage)
    return (
        termination
        if termination.adopt_lineage not in (0, status.lineage) or (termination.adopt_opening and opens)
        else None
    )


def unproven_place(o: Observation) -> Termination | None:
    """Return the termination message by which an application that starts from a snapshot continues in its place.

    None if it says that there is something of the application. Without that, an earlier runtime would start
    empty there with the next launch. In an empty place it names the first lineage, with the epoch that it was given:
    any other epoch or lineage it has from a claim.
    """
    driver, termination = o.driver, ended_for_good_with(o.driver, Reason.FENCED)
    if driver is None or termination is None or termination.adopt_found or termination.adopted_from:
        return None
    as_if_empty = (termination.adopt_epoch, termination.adopt_lineage) == (driver.epoch, FIRST_LINEAGE)
    return termination if as_if_empty and lacks_starting_point(o) else None
