"""Builds the status from an observation and a verdict, and decides whether to write it. No I/O.

Progress is written at most once a minute; phase, conditions, epoch and the first committed batch at once. An
application that commits nothing costs no write.
"""

from __future__ import annotations

import dataclasses

import msgspec

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import (
    Condition,
    DriverStatus,
    ExecutorsStatus,
    LastExit,
    QueryStatus,
    RepartitionResult,
    RepartitionStatus,
    StreamingAppStatus,
    UpgradePhase,
)
from tidegate.app.observation import Observation, applied_hash
from tidegate.app.rules.launch.plaintext_secrets import secrets_condition
from tidegate.app.rules.live.autoscaling import autoscaling_status
from tidegate.app.rules.live.availability import available_condition
from tidegate.app.rules.live.channel_status import channel_condition, control_status
from tidegate.app.rules.live.ignored_instances import instances_condition
from tidegate.app.rules.live.ignored_periods import periods_condition
from tidegate.app.rules.live.restarting import count_restarts
from tidegate.app.rules.live.start_from import build_last_snapshot, build_started_from
from tidegate.app.rules.live.unused_offsets import offsets_condition
from tidegate.app.rules.origin import lineage_to_launch, recorded_or_found, starts_elsewhere
from tidegate.app.rules.pods.executors import running_executors, wanted_executors
from tidegate.app.rules.pods.last_batch import LONGEST_QUERY_NAME, MOST_QUERIES, last_batch, last_batches
from tidegate.app.rules.schedule import ScheduleDecision, evaluate_schedule, schedule_condition
from tidegate.app.rules.upgrade.record import adopted, recorded, with_recorded_versions
from tidegate.app.rules.upgrade.repartition.phase import with_progress, without_progress
from tidegate.app.rules.upgrade.starting_offsets import ignored_offsets, with_ignored_offsets
from tidegate.app.rules.upgrade.table import at_launch
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.conditions import build_conditions
from tidegate.engine.rules.pauses import METRICS_INTERVAL, time_left
from tidegate.pods.records.faults import last_report, read_termination
from tidegate.pods.records.metadata import executor_selector
from tidegate.pods.records.names import driver_pod_name
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import FIRST_LINEAGE, AgentReport, QueryReport, store_identity

_ABSURD_RATE = 1e12
EXECUTORS_INTERVAL = 5.0
"""Seconds between two writes of a changed number of executors: whoever scales wants to see it."""


def build_status(o: Observation, verdict: Verdict, now: float, *, runs: bool = False) -> StreamingAppStatus:
    """Return what the status should be.

    Args:
        o: everything that is known.
        verdict: what is said of the application.
        now: seconds since the epoch.
        runs: whether its queries run, whatever the verdict says of the spec.
    """
    in_other = verdict.adopt[1] not in (0, o.app.status.lineage)
    o = _with_adopted(o, verdict)
    old, report = o.app.status, o.agent.report if o.agent else None
    epoch = verdict.launch or max(old.epoch, o.driver.epoch if o.driver else 0)
    # Of a driver whose agent was not heard yet it is not known in which one it runs.
    lineage = lineage_to_launch(o) if verdict.launch else old.lineage
    queries = () if verdict.launch else _known_queries(o, lineage)
    listed = listed_queries(queries)
    is_new = bool(report and report.queries) or not queries
    unlisted = len(queries) - len(listed) if is_new else old.more_queries
    upgrade = at_launch(old.upgrade, verdict.launch, now) if verdict.launch else with_progress(o)
    schedule = evaluate_schedule(o, now)
    return StreamingAppStatus(
        phase=verdict.phase,
        conditions=(
            *build_conditions(old.conditions, verdict, o.app.metadata.generation, now),
            available_condition(o, verdict, upgrade, now, runs=runs),
            *_passing_conditions(o, verdict, schedule, now),
        ),
        observed_generation=o.app.metadata.generation,
        epoch=epoch,
        lineage=lineage,
        state_partitions=_state_partitions(o, verdict, lineage),
        applied_spec_hash=o.spec_hash if verdict.launch else applied_hash(o),
        store=_store(o, verdict),
        driver=_driver(o, verdict),
        last_exit=_last_exit(o.driver) or old.last_exit,
        restarts=count_restarts(o, verdict, now),
        queries=listed,
        more_queries=unlisted,
        # What the driver's termination message says is of the lineage that it was to run in.
        batch=None if in_other else last_batch(o, queries, lineage),
        batches=() if in_other else last_batches(o, lineage),
        input_rows_per_second=_rows_per_second(report) if report and report.queries else None,
        executors=_executors(o),
        selector=executor_selector(o.app.metadata.name),
        start_from=build_started_from(o, verdict),
        ignored_starting_offsets=ignored_offsets(o),
        last_snapshot=build_last_snapshot(o),
        last_stable=recorded(o.app.spec, old.last_stable),
        upgrade=with_recorded_versions(o.app.spec, upgrade),
        snapshots=schedule.status,
        control=control_status(o),
        autoscaling=autoscaling_status(o),
    )


def _with_adopted(o: Observation, verdict: Verdict) -> Observation:
    """Return the observation with the counts that the application's storage has, where the status has lost them."""
    if not any(verdict.adopt):
        return o
    stored = adopted(o.app.status, *verdict.adopt, verdict.adopt_opening)
    return dataclasses.replace(o, app=msgspec.structs.replace(o.app, status=with_ignored_offsets(o, stored)))


def _known_queries(o: Observation, lineage: int) -> tuple[QueryStatus, ...]:
    report = o.agent.report if o.agent else None
    reported = tuple(_query(q) for q in report.queries) if report and report.queries else o.app.status.queries
    return tuple(_at_the_end(q, o.driver) for q in reported) if lineage == o.app.status.lineage else reported


def _passing_conditions(
    o: Observation, verdict: Verdict, schedule: ScheduleDecision, now: float
) -> tuple[Condition, ...]:
    """Return the conditions that an application has only for as long as there is something to report."""
    return (
        *channel_condition(o, verdict, now),
        *instances_condition(o, now),
        *periods_condition(o, now),
        *schedule_condition(o, schedule, now),
        *secrets_condition(o, now),
        *offsets_condition(o, now),
    )


def write_is_due_in(o: Observation, new: StreamingAppStatus, now: float) -> float | None:
    """Return in how many seconds the new status is to be written: 0 is now, None is never."""
    old = o.app.status
    if is_news(old, new):
        return 0.0
    if old.executors != new.executors or _advised(old) != _advised(new):
        return time_left(o.memory.status_written_at, EXECUTORS_INTERVAL, now)
    if _progress(old) != _progress(new):
        return time_left(o.memory.status_written_at, METRICS_INTERVAL, now)
    return None


def is_news(old: StreamingAppStatus, new: StreamingAppStatus) -> bool:
    """Return whether a status differs in more than metrics and in how far the application has got."""
    return _core(old) != _core(new)


def _core(status: StreamingAppStatus) -> tuple[object, ...]:
    last = status.last_exit
    return (
        status.phase,
        tuple((c.type, c.status, c.reason, c.observed_generation) for c in status.conditions),
        status.observed_generation,
        status.epoch,
        status.lineage,
        status.state_partitions,
        status.applied_spec_hash,
        status.selector,
        # The first committed batch of a driver is the sign of life that people wait for.
        any(query.batch_id is not None for query in status.queries),
        # Each end is reported once: its event and its count depend on its being written at once.
        (last.reason, last.exception, last.exit_code, last.completion_time) if last else None,
        status.restarts,
        status.start_from,
        status.ignored_starting_offsets,
        status.last_snapshot,
        status.last_stable,
        without_progress(status.upgrade),
        status.snapshots,
        # The target is written before the driver hears of it; an edit is recognized by what the spec said before.
        (status.autoscaling.target, status.autoscaling.last_scale, status.autoscaling.basis)
        if status.autoscaling
        else None,
    )


def _advised(status: StreamingAppStatus) -> tuple[object, ...]:
    known = status.autoscaling
    return (known.mode, known.recommended, known.reason) if known is not None else ()


def _progress(status: StreamingAppStatus) -> tuple[object, ...]:
    repartition = status.upgrade.repartition if status.upgrade is not None else None
    # Rates change with every poll; only with a committed batch are they written.
    return (
        tuple((q.name, q.batch_id) for q in status.queries),
        tuple(c.message for c in status.conditions),
        status.driver.restarts if status.driver else 0,
        status.last_exit,
        status.control,
        repartition.progress if repartition is not None else None,
    )


def _executors(o: Observation) -> ExecutorsStatus:
    wanted, running = wanted_executors(o), running_executors(o)
    leaving = o.agent.report.executors_leaving if o.agent is not None else 0
    return ExecutorsStatus(
        wanted=wanted, running=running, summary=f"{running}/{wanted}", leaving=leaving or msgspec.UNSET
    )


def _state_partitions(o: Observation, verdict: Verdict, lineage: int) -> int:
    """Return how many partitions the lineage's state has, 0 as long as that is not known.

    As the queries report that read it; before they have, what it was to have when the lineage was opened.
    """
    known, wanted = o.app.status, o.app.spec.state.partitions
    if not lineage:
        return 0
    if verdict.launch:
        return _partitions_at_launch(o, lineage)
    if any(verdict.adopt):
        return known.state_partitions  # what the spec says was of another lineage, and this one's driver will report it
    reported = _reported_partitions(o)
    if reported:
        return known.state_partitions if known.state_partitions in reported else max(reported)
    if _is_filled_by_another(o, lineage):
        return known.state_partitions  # the snapshot's, whatever the spec says
    return known.state_partitions or wanted  # which an earlier operator did not write down, and nobody could change


def _partitions_at_launch(o: Observation, lineage: int) -> int:
    known, wanted = o.app.status, o.app.spec.state.partitions
    repartition = known.upgrade.repartition if known.upgrade is not None else None
    if repartition is not None and _has_made(repartition, lineage):
        return repartition.partitions
    found = repartition is not None and repartition.result == RepartitionResult.NOT_NEEDED
    pin = known.upgrade.rollback_snapshot if known.upgrade is not None else None
    if lineage != known.lineage and _starts_with_pin(known) and pin is not None and pin.partitions:
        return pin.partitions
    if _is_filled_by_another(o, lineage):
        return known.state_partitions
    nothing_yet = known.last_stable is None and known.batch is None
    return wanted if lineage != known.lineage or found or nothing_yet else known.state_partitions or wanted


def _has_made(repartition: RepartitionStatus, lineage: int) -> bool:
    """Return whether a lineage was made by a repartition, whatever somebody has written into the status before."""
    return repartition.result == RepartitionResult.COMPLETED and repartition.lineage == lineage


def _reported_partitions(o: Observation) -> set[int]:
    """Return the numbers of partitions of the queries' state, of those that have committed a batch by now."""
    # What a late watch shows of an earlier epoch may be of another lineage.
    if o.agent is None or o.driver is None or o.driver.epoch < o.app.status.epoch:
        return set()
    return {query.state_partitions for query in o.agent.report.queries if query.state_partitions > 0}


def _is_filled_by_another(o: Observation, lineage: int) -> bool:
    """Return whether the lineage began with a snapshot that was not made for it."""
    began = recorded_or_found(o)
    if began is None:
        start = o.app.spec.start_from  # the status that said so may be lost
        return lineage == FIRST_LINEAGE and start is not None and bool(start.snapshot_name)
    return began.lineage == lineage and not began.undone_lineage


def _starts_with_pin(known: StreamingAppStatus) -> bool:
    """Return whether the lineage to be launched starts from what an upgrade kept of the previous one."""
    upgrade = known.upgrade
    return upgrade is not None and (upgrade.phase is UpgradePhase.ROLLING_BACK or starts_elsewhere(upgrade))


def _store(o: Observation, verdict: Verdict) -> str:
    """Return the store of the last launch: of this one, as recorded, or by the version of the driver that is there."""
    known, driver, storage = o.app.status.store, o.driver, o.app.spec.storage
    if not verdict.launch:
        own = driver is not None and driver.app_uid == o.app.metadata.uid
        if known or driver is None or not own or driver.spec_hash != spec_hash(o.app):
            return known
    return store_identity(storage.endpoint, storage.region)


def _driver(o: Observation, verdict: Verdict) -> DriverStatus | None:
    if o.driver is None:
        return DriverStatus(pod_name=driver_pod_name(o.app.metadata.name)) if verdict.launch else None
    return DriverStatus(
        pod_name=o.driver.name, restarts=o.driver.restarts, start_time=time_from_seconds(o.driver.start_time)
    )


def _last_exit(driver: PodRecord | None) -> LastExit | None:
    ended = driver.ended if driver else None
    if driver is None or ended is None:
        return None
    termination = read_termination(ended)
    return LastExit(
        reason=termination.reason if termination else driver.reason or ended.reason,
        exception=termination.exception if termination else "",
        message=termination.message if termination else driver.message,
        exit_code=ended.exit_code,
        completion_time=time_from_seconds(ended.completion_time),
    )


def listed_queries(queries: tuple[QueryStatus, ...]) -> tuple[QueryStatus, ...]:
    """Return those that a status has room for: a driver can have thousands, and its program gives them their names."""
    named = {query.name: query for query in queries if len(query.name) <= LONGEST_QUERY_NAME}
    return tuple(named[name] for name in (named if len(named) <= MOST_QUERIES else sorted(named)[:MOST_QUERIES]))


def _query(report: QueryReport) -> QueryStatus:
    return QueryStatus(
        name=report.name,
        batch_id=report.batch_id if report.batch_id >= 0 else None,
        starts_empty=report.starts_empty,
        input_rows_per_second=round(_plausible(report.input_rows_per_second), 1),
        processed_rows_per_second=round(_plausible(report.processed_rows_per_second), 1),
        state_rows=report.state_rows,
        state_bytes=report.state_bytes,
        last_commit_time=time_from_seconds(report.last_commit_time),
    )


def _at_the_end(query: QueryStatus, driver: PodRecord | None) -> QueryStatus:
    """Return the query with the batch of its driver's termination message: nobody asks an agent that has ended."""
    # Of one that the kubelet started again it is not known yet whether it commits: its first batch is news.
    reported = last_report(driver)
    last = reported.batches.get(query.name, -1) if reported else -1
    seen = -1 if query.batch_id is None else query.batch_id
    return msgspec.structs.replace(query, batch_id=last) if last > seen else query


def _rows_per_second(report: AgentReport) -> int:
    return round(sum(_plausible(q.input_rows_per_second) for q in report.queries))


def _plausible(rate: float) -> float:
    # An agent is the application's own process: a rate that is no number must not keep the operator from deciding.
    return rate if 0.0 <= rate < _ABSURD_RATE else 0.0
