"""The gate: a version is stable after enough batches, or fails before. No I/O."""

from __future__ import annotations

from msgspec.structs import replace

from tidegate.api.spec_hash import has_same_store
from tidegate.api.streaming_app import Phase, RollbackPolicy, UpgradeMode, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import refusal_message, refusal_of
from tidegate.app.rules.pods.executor_ends import failing_executors_problem
from tidegate.app.rules.pods.work_pod import never_starts, seconds_to_start
from tidegate.app.rules.upgrade import messages, record
from tidegate.app.rules.upgrade.launched import (
    committed_nothing,
    ends_as_kept,
    has_not_begun,
    is_launched_after_its_time,
)
from tidegate.app.rules.upgrade.record import Step, active_queries, change
from tidegate.app.rules.upgrade.rollback import rolled_back
from tidegate.engine.rules.pauses import time_left
from tidegate.pods.records import faults
from tidegate.pods.records.fault_messages import reported
from tidegate.pods.records.faults import Problem, end_problem, read_termination
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import QueryReport, Worked
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotState

IDLE = 60.0
"""Seconds without a batch after which a version under test that lacks nothing but input is Ready."""


def is_passed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Call the version under test stable, also after it had failed."""
    if not is_stable(o, record.missing_queries(o, upgrade, now), _phase_began(upgrade)):
        return _passed_before(o, upgrade, now)
    runs = o.driver is not None and o.driver.running
    without_input = tuple(query.name for query in _short_of_batches(o)) if runs else ()
    message = messages.stable(_batches(o), record.unstarted_queries(o, upgrade), without_input)
    return change(upgrade, message, stable=record.stable_now(o, now), previous=o.app.status.last_stable)


def _passed_before(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Call a version stable that worked for longer than its test while no operator heard of it, and ended since."""
    worked = _worked_before(o, _phase_began(upgrade))
    if worked is None:
        return None
    message = messages.stable_before(worked.batches, o.app.spec.upgrade.timeout_seconds)
    return change(upgrade, message, stable=record.stable_now(o, now), previous=o.app.status.last_stable)


def first_version_is_stable(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Call the first version stable, so that the next one can be rolled back."""
    status = o.app.status
    under_way = status.upgrade is not None and status.upgrade.phase in record.UNDER_WAY
    if status.last_stable or under_way or not (is_stable(o) or _worked_before(o, 0.0) or _has_finished_for_good(o)):
        return None
    return Step(stable=record.stable_now(o, now))


def _has_finished_for_good(o: Observation) -> bool:
    """Return whether an application has finished, be it that its last process found nothing to do: it has batches."""
    driver = _driver_of_version(o)
    return driver is not None and faults.has_completed(driver) and bool(o.app.status.known_batches())


def _driver_of_version(o: Observation) -> PodRecord | None:
    """Return the driver, if it is this application's own, and of the version in force."""
    driver = o.driver
    is_its = driver is not None and driver.spec_hash == o.spec_hash and driver.app_uid == o.app.metadata.uid
    return driver if is_its else None


def is_stable(o: Observation, missing: tuple[str, ...] = (), since: float = 0.0) -> bool:
    """Return whether one process of the spec's version committed enough, with each of its queries, or has finished.

    Args:
        o: everything that is known.
        missing: queries without which it is not stable, unless it has finished.
        since: when its test began; 0 if with its process.
    """
    driver = _driver_of_version(o)
    if driver is None:
        return False
    reports = faults.last_report(driver)
    if reports is not None and reports.reason is Reason.COMPLETED:
        return any(batch >= 0 for batch in reports.batches.values())
    if not _works(o) or missing or not active_queries(o):  # what has ended by itself has done what it was to do
        return False
    return not _short_of_batches(o) or _works_for_long(o, since)


def _works_for_long(o: Observation, since: float) -> bool:
    """Return whether a query worked for longer than the test's time, and the others lack nothing but input.

    Else the first failure of a query that had no input for weeks would undo the weeks of the others. Hours without
    input for any of them show nothing, so what counts is when a batch was committed.
    """
    driver, wanted = o.driver, o.app.spec.upgrade.stable_batches
    if driver is None or not driver.running or o.agent is None or o.agent.report.control.paused:
        return False  # a paused query has no batches, although it has input
    if any(query.at_batch or query.lag_rows > 0 for query in _short_of_batches(o)):
        return False
    over = max(since, driver.start_time) + o.app.spec.upgrade.timeout_seconds
    return any(query.committed >= wanted and query.last_commit_time >= over for query in active_queries(o))


def _worked_before(o: Observation, since: float) -> Worked | None:
    """Return what the termination message of a process shows, if by that it worked for longer than the test's time.

    What it did within that time is undone if it fails, whether or not somebody looked; what it did later is kept.
    """
    driver, upgrade = _driver_of_version(o), o.app.spec.upgrade
    if driver is None:
        return None
    reported = read_termination(driver.ended)  # of a process that was started again as well
    for worked in reported.worked if reported is not None else ():
        over = max(since, worked.since) + upgrade.timeout_seconds
        if worked.batches >= upgrade.stable_batches and worked.until >= over:
            return worked
    return None


def is_stable_again(o: Observation) -> bool:
    """Return whether the version in force, which was stable before, has shown since its last start that it still is.

    Each of its queries has committed enough, or waits for input. A query that is ready has finished the batches of
    earlier processes; a paused one counts as ready, whatever it did.
    """
    driver, queries = o.driver, active_queries(o)
    if is_stable(o):
        return True
    if driver is None or driver.spec_hash != o.spec_hash or not driver.running or not queries or not _works(o):
        return False
    paused = o.agent is not None and o.agent.report.control.paused
    return _lacks_only_input(o) and (not paused or all(query.committed for query in queries))


def _works(o: Observation) -> bool:
    """Return whether the driver's agent says that all its queries run."""
    return record.takes_orders(o) and o.agent is not None and o.agent.report.ready and not record.failed_queries(o)


def failed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll back a version that failed."""
    problem, stable = _failure(o, upgrade, now), o.app.status.last_stable
    if problem is None or stable is None or why_not_rolled_back(o, upgrade):
        return None
    return rolled_back(o, upgrade, stable, problem)


def failed_for_good(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record why a version that failed is not rolled back."""
    problem = _failure(o, upgrade, now)
    if problem is None:
        return None
    return change(upgrade, messages.failed(problem.message, why_not_rolled_back(o, upgrade)), problem.reason)


def lacks_records_and_did_nothing(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll back a version that committed nothing because a source lost records: the previous one may read others.

    That undoes nothing, and says nothing against the version. If the previous one lacks the same records, it waits for
    them in its place: what was rolled back is not tried again by itself.
    """
    stable, driver = o.app.status.last_stable, o.driver
    if stable is None or driver is None or driver.spec_hash != o.spec_hash or _is_suspended(o):
        return None
    if driver.terminating or driver.running:
        return None
    if not faults.ended_for_all_versions(driver) or upgrade.mode is UpgradeMode.STATELESS:
        return None  # or somebody gave up the state with which the previous version would read on
    if not ends_as_kept(o, upgrade) or why_not_rolled_back(o, upgrade):
        return None
    termination, why = read_termination(driver.ended), end_problem(driver)
    if termination is not None:  # what the registry says to do is for the version in force
        why = Problem(why.reason, messages.lost_for_new_version(reported(termination.exception, termination.message)))
    return rolled_back(o, upgrade, stable, why)


def is_idle_now(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record that the version under test has no input, in the write that makes it Ready."""
    idle = upgrade.idle_start_time is None and idle_in(o, upgrade, now) == 0.0
    return change(upgrade, idle_start_time=time_from_seconds(now)) if idle else None


def has_input_again(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Restart the time of the version under test when its input returns."""
    if upgrade.idle_start_time is None or waits_for_input(o, upgrade, now) or is_unheard(o):
        return None  # whoever decided before knew that it waits
    return change(upgrade, reason=Reason.INPUT_ARRIVED, idle_start_time=None, phase_start_time=time_from_seconds(now))


def pod_is_refused_or_there(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record that the pod of the version under test does not come, or start, and what follows, until it does."""
    if upgrade.reason != Reason.LAUNCHED:
        return None
    message = messages.STARTED if o.driver is not None else upgrade.message
    why = _why_not_started(o, upgrade)
    if why:
        stays, limit = why_not_rolled_back(o, upgrade), o.app.spec.upgrade.timeout_seconds
        if not stays and is_launched_after_its_time(o, upgrade) and upgrade.rollback_snapshot is not None:
            stays = messages.by_hand(messages.RAN_FOR_LONG, upgrade.rollback_snapshot.id)
        message = messages.not_started(why, stays or messages.rolled_back_after(limit))
    return change(upgrade, message) if message != upgrade.message else None


def _why_not_started(o: Observation, upgrade: UpgradeStatus) -> str:
    """Return why the version has no process, empty if that is not known, or the conditions say what follows.

    They do of a first pod that does not start: it is rolled back, with the cause. Of a later one nothing follows.
    """
    refusal, driver = refusal_of(o), o.driver
    if driver is not None:
        if driver.terminating or not has_not_begun(driver) or not is_launched_after_its_time(o, upgrade):
            return ""
        problem = faults.start_problem(driver)
        # The conditions have the cause in full. A scheduler's text changes, and each change would be a write here.
        return messages.pod_does_not_start(problem.reason) if problem is not None else ""
    return refusal_message(o, refusal) if refusal is not None and refusal.recorded and refusal.attempts else ""


def rollback_snapshot_is_settled(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record that the rollback snapshot is complete, or lost."""
    snapshot = upgrade.rollback_snapshot
    if snapshot is None or snapshot.batches or snapshot.loss:
        return None
    report = record.find_report(o, snapshot.id)
    if report is not None and report.state is SnapshotState.READY and report.queries:
        return change(record.with_complete_snapshot(upgrade, {name: it.batch for name, it in report.queries.items()}))
    if report is None or report.state not in (SnapshotState.FAILED, SnapshotState.DISPOSED):
        return None
    return change(upgrade, rollback_snapshot=replace(snapshot, lost_message=report.message or report.state.value))


def something_is_disposed_of(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Remove deleted snapshots of earlier upgrades from the record."""
    reports = o.agent.report.snapshots if o.agent is not None else ()
    gone = {report.id for report in reports if report.state is SnapshotState.DISPOSED}
    left = tuple(name for name in upgrade.obsolete if name not in gone)
    return change(upgrade, obsolete=left) if left != upgrade.obsolete else None


def _is_suspended(o: Observation) -> bool:
    return o.app.spec.suspend or o.app.status.phase is Phase.SUSPENDED


def _failure(o: Observation, upgrade: UpgradeStatus, now: float) -> Problem | None:
    driver, limit = o.driver, o.app.spec.upgrade.timeout_seconds
    if _is_suspended(o):
        return None
    if driver is not None and driver.spec_hash != o.spec_hash:
        driver = None
    if driver is not None:
        if _lacks_state_of_both(o, driver):
            return None
        if not driver.terminating and faults.blames_version(driver) and not _may_be_stable_since(o):
            return end_problem(driver)
        patience = o.app.spec.pod_start_timeout_seconds
        seconds = seconds_to_start(driver, record.seconds_in_phase(upgrade, now), now)
        counts = has_not_begun(driver) and not is_launched_after_its_time(o, upgrade)
        slow = never_starts(driver, seconds, patience) if counts else None
        problem = slow or failing_executors_problem(o, now)
        if problem is not None:
            return problem
    if _seconds_that_count(o, driver, upgrade, now) < limit or waits_for_input(o, upgrade, now) or is_unheard(o):
        return None
    return Problem(Reason.UPGRADE_TIMEOUT, messages.not_stable_in_time(limit, _shown(o)))


def _may_be_stable_since(o: Observation) -> bool:
    """Return whether the last known end may be outdated: the agent has not reported yet, and will in a moment.

    No operator ran when it happened, or it would have ended the gate.
    """
    return is_unheard(o) and not o.silence


def _lacks_state_of_both(o: Observation, driver: PodRecord) -> bool:
    """Return whether a version ended because the storage lacks its state, where the previous one has it, too.

    A rollback would make a lineage of what there is, and so continue from an older state unnoticed.
    """
    termination, stable = read_termination(driver.ended), o.app.status.last_stable
    if termination is None or stable is None or termination.reason not in (Reason.STORAGE_OLDER, Reason.STORAGE_EMPTY):
        return False
    return has_same_store(o.app.spec, stable)


def _seconds_that_count(o: Observation, driver: PodRecord | None, upgrade: UpgradeStatus, now: float) -> float:
    """Return how long the version has had to show that it is stable.

    No time passes while its pod is lost, however long no operator ran: its next launch begins its time again. Faults
    that the previous version would have as well, and restarts of the node, cost no time either: it counts from the
    start after such an end. Nor does the start of a later pod, after the version may have worked for long.
    """
    later = is_launched_after_its_time(o, upgrade)
    if _is_without_pod(o) or (later and (refusal_of(o) is not None if driver is None else has_not_begun(driver))):
        return 0.0
    seconds = record.seconds_under_test(upgrade, now)
    if driver is None:
        return seconds
    since_start = max(0.0, now - driver.start_time) if driver.running else 0.0
    restarted = driver.running and (later or faults.lost_from_sight(driver.ended))
    return min(seconds, since_start) if restarted or faults.ended_for_all_versions(driver) else seconds


def _is_without_pod(o: Observation) -> bool:
    """Return whether the version's pod is gone or on its way out: not because it is refused, or has done its work."""
    if o.driver is not None:
        return o.driver.terminating
    return refusal_of(o) is None and o.app.status.phase is not Phase.COMPLETED


def _shown(o: Observation) -> str:
    """Return what the version has shown in its time, or why it could not show anything."""
    refusal, driver = refusal_of(o), o.driver
    if refusal is not None:
        return messages.no_pod_created(refusal.reason)
    problem = faults.start_problem(driver) if driver is not None and has_not_begun(driver) else None
    if problem is not None:
        return messages.pod_not_started(problem.reason)
    fault = o.agent.report.fault if o.agent is not None else None
    return messages.held_up(_batches(o), fault.reason, fault.message) if fault is not None else _batches(o)


def waits_for_input(o: Observation, upgrade: UpgradeStatus, now: float) -> bool:
    """Return whether the version runs, and all that is missing are batches that nobody has input for."""
    return _works(o) and not record.missing_queries(o, upgrade, now) and _lacks_only_input(o)


def _lacks_only_input(o: Observation) -> bool:
    return all(query.lag_rows <= 0 for query in _short_of_batches(o))


def _short_of_batches(o: Observation) -> tuple[QueryReport, ...]:
    """Return the queries that run and have not committed enough."""
    wanted = o.app.spec.upgrade.stable_batches
    return tuple(query for query in active_queries(o) if query.committed < wanted)


def idle_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    """Return in how many seconds a version under test counts as idle, None if it has work or does not run."""
    if not waits_for_input(o, upgrade, now):
        return None
    return time_left(
        max(_phase_began(upgrade), *(query.last_commit_time for query in active_queries(o)), 0.0), IDLE, now
    )


def _phase_began(upgrade: UpgradeStatus) -> float:
    return upgrade.phase_start_time.timestamp() if upgrade.phase_start_time is not None else 0.0


def is_unheard(o: Observation) -> bool:
    """Return whether only the kubelet's report is known, that the driver is ready: it is neither late nor at work.

    An operator that has just begun has not heard the agent yet.
    """
    return o.agent is None and record.runs_ready(o)


def is_idle(o: Observation, upgrade: UpgradeStatus, now: float) -> bool:
    """Return whether a version under test lacks nothing but input, or did when it was last heard of."""
    return idle_in(o, upgrade, now) == 0.0 or (upgrade.idle_start_time is not None and is_unheard(o))


def why_not_rolled_back(o: Observation, upgrade: UpgradeStatus) -> str:
    """Return why a version that failed stays, with how a person rolls it back if one can; empty if it is not to."""
    stable, snapshot = o.app.status.last_stable, upgrade.rollback_snapshot
    if stable is None:
        return messages.NO_STABLE_VERSION
    if snapshot is not None and snapshot.loss:
        return messages.state_lost(snapshot.loss)
    if gone := record.secret_gone(o.app.spec, stable):
        return messages.secret_gone(gone)
    if o.app.spec.upgrade.rollback_policy is RollbackPolicy.NEVER:
        return messages.by_hand(messages.POLICY_NEVER, snapshot.id if snapshot is not None else "")
    return "" if snapshot is not None or committed_nothing(o, upgrade) else messages.LAST_STATE


def _batches(o: Observation) -> str:
    return messages.batches((query.name, query.committed) for query in active_queries(o))
