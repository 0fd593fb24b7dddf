"""How long a version under test has run, and what it committed, as far as that is certain. No I/O.

A rollback that nobody asked for may undo only what a version did within the time of its test; unknown counts as longer.
"""

from __future__ import annotations

from tidegate.api.streaming_app import UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation, applied_hash
from tidegate.pods.records.faults import has_completed, last_report, read_termination
from tidegate.pods.records.names import driver_pod_name
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import Reason


def is_in_time(o: Observation, upgrade: UpgradeStatus, now: float) -> bool:
    """Return whether the version under test has certainly not run for longer than it had to show that it is stable.

    When it was launched is known only of the first launch at the gate. Later ones, another version in its place and
    input after a pause begin the record's time again; then what counts is when the upgrade began.
    """
    known = upgrade.phase is UpgradePhase.GATE and upgrade.reason == Reason.LAUNCHED and _is_only_launch(o, upgrade)
    since = upgrade.phase_start_time if known else upgrade.start_time
    return since is not None and now < since.timestamp() + o.app.spec.upgrade.timeout_seconds


def is_launched_after_its_time(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether the present launch of the version under test is a later one, and it may have run for long before.

    Nothing that it did then is undone because this pod does not start: an earlier one did, so it is not the version.
    """
    if not upgrade.epoch or _is_only_launch(o, upgrade) or upgrade.start_time is None:
        return False
    launched, limit = upgrade.phase_start_time, o.app.spec.upgrade.timeout_seconds
    return launched is not None and launched.timestamp() >= upgrade.start_time.timestamp() + limit


def was_refused(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether the API server refused every pod of the only launch: any other answer clears the refusal."""
    refusal = o.memory.refusal
    if refusal is None or not refusal.recorded or not _is_only_launch(o, upgrade):
        return False  # or of a launch that had no epoch yet
    return (refusal.pod_name, refusal.epoch) == (driver_pod_name(o.app.metadata.name), upgrade.epoch)


def spec_was_launched_last(o: Observation) -> bool:
    """Return whether this application launched the spec's version last, and its process has begun."""
    driver = o.driver
    if driver is not None and (driver.app_uid != o.app.metadata.uid or driver.terminating or has_not_begun(driver)):
        return False
    return applied_hash(o) == o.spec_hash


def has_not_begun(driver: PodRecord) -> bool:
    """Return whether the main process of this pod has never run."""
    return driver.ended is None and not driver.running and not driver.restarts


def has_finished(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether the version under test has done its work, be its pod there or not."""
    last = o.app.status.last_exit
    if o.driver is not None:
        return has_completed(o.driver)
    if last is None or last.completion_time is None or upgrade.start_time is None:
        return False
    return last.reason == Reason.COMPLETED and last.completion_time >= upgrade.start_time


def committed_nothing(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether it is certain that the version under test has committed no batch.

    No later pod reports what an earlier one did, be it of this version or of one that it took the place of.
    """
    driver = o.driver
    if not _is_only_launch(o, upgrade):
        return False
    if driver is None:
        return was_refused(o, upgrade)
    if driver.restarts > 1 or driver.ended is None:
        return has_not_begun(driver)
    termination = read_termination(driver.ended)
    if termination is None or termination.committed != 0:
        return False
    if not driver.restarts:
        return not driver.running
    # The kubelet keeps the last report of one process. After a restart that is the first one's only while the second
    # runs, and what that one did is to be asked of it.
    of_second = driver.ready if o.agent is None else any(query.committed for query in o.agent.report.queries)
    return driver.running and not of_second


def ends_as_kept(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether it is certain that the version under test has ended with the batches that were kept before it.

    By its only launch, which committed nothing; or by the rollback snapshot, which all queries reported at the end.
    """
    if committed_nothing(o, upgrade):
        return True
    reported = last_report(o.driver)
    kept = upgrade.rollback_snapshot.batches if upgrade.rollback_snapshot is not None else ()
    if reported is None or not kept:
        return False
    return {query.name: query.batch_id for query in kept} == {name: b for name, b in reported.batches.items() if b >= 0}


def _is_only_launch(o: Observation, upgrade: UpgradeStatus) -> bool:
    return 0 < upgrade.epoch == o.app.status.epoch
