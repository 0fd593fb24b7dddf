"""Scheduled snapshots: when one is due, and whether it is needed. No I/O.

A StreamSnapshot is named after its due time, so repeated attempts make one object, and the existing ones show how far
the schedule is. Of several missed times only the last is made up for.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidegate.api.lost_status import has_launched
from tidegate.api.status.bounds import LONGEST_NAME, MOST_ITEMS
from tidegate.api.stream_snapshot import (
    SnapshotPhase,
    StreamSnapshot,
    is_damaged,
    is_scheduled,
    scheduled_at,
)
from tidegate.api.streaming_app import Condition, QueryStatus, ScheduleStatus, SnapshotsSpec
from tidegate.api.values.times import Interval, Schedule, ScheduleError, next_time, previous_time
from tidegate.app.actions import Action, CreateSnapshot
from tidegate.app.observation import Observation, own_snapshots
from tidegate.app.rules import messages
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.present_condition import present_condition
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.pauses import NOT_CREATED_PAUSE, time_left
from tidegate.engine.rules.table import earliest
from tidegate.snapshots.builders.stream_snapshot import build_scheduled, scheduled_name
from tidegate_spark.contract.protocol import QueryReport
from tidegate_spark.contract.reasons import Reason

REFUSED_PAUSE = 300.0
"""Seconds until a StreamSnapshot is made again that the API server did not take."""
SCHEDULE_WITHOUT_TIMES = "SnapshotScheduleInvalid"
"""Type of the condition."""


@dataclass(frozen=True, slots=True)
class ScheduleDecision:
    """What to do about an application's schedule, and what to say of it."""

    status: ScheduleStatus | None = None
    actions: tuple[Action, ...] = ()
    wake_after: float | None = None
    fault: str = ""
    """Why the schedule has no times; empty if it has."""


NOTHING = ScheduleDecision()


def evaluate_schedule(o: Observation, now: float) -> ScheduleDecision:
    """Return what the schedule asks for now.

    Args:
        o: the observation.
        now: seconds since the epoch.
    """
    spec = o.app.spec.snapshots
    if spec is None or spec.suspend or o.app.metadata.deletion_timestamp is not None:
        return NOTHING
    if not spec.schedule and not spec.interval_seconds:
        return NOTHING
    times = schedule_of(spec, o.app.metadata.uid)
    text = str(times)
    try:
        previous, coming = previous_time(times, now), next_time(times, now)
    except ScheduleError as error:
        return _invalid(o, text, str(error))
    status = _progress(o, text, now)
    status = msgspec.structs.replace(status, next_schedule_time=_time(coming))
    wake = max(0.0, coming - now) if coming is not None else None
    if previous is None or previous <= _reached(status):
        return ScheduleDecision(status, wake_after=wake)
    return _at_a_time(o, ScheduleDecision(status, wake_after=wake), previous, now)


def schedule_condition(o: Observation, decision: ScheduleDecision, now: float) -> tuple[Condition, ...]:
    """Return the condition of a schedule that has no times; none if it has, or is suspended."""
    return present_condition(o, SCHEDULE_WITHOUT_TIMES, Reason.SCHEDULE_INVALID, decision.fault, now)


def schedule_of(spec: SnapshotsSpec, uid: str) -> Schedule | Interval:
    """Return when snapshots of the application with this uid are due."""
    if spec.schedule:
        return Schedule(spec.schedule, spec.time_zone)
    return Interval(spec.interval_seconds, uid)


def _at_a_time(o: Observation, decision: ScheduleDecision, slot: float, now: float) -> ScheduleDecision:
    """Return what to do about a time that has come, or came while nobody looked."""
    assert decision.status is not None
    if not has_launched(o.app.status):
        return _dealt_with(decision, slot, messages.NOT_STARTED)
    name = scheduled_name(o.app.metadata.name, slot)
    if any(s.metadata.name == name for s in own_snapshots(o)):
        # Somebody's own by now, or on its way out: it would be found there again and again.
        return _dealt_with(decision, slot, messages.snapshot_there(name))
    if is_unchanged(o):
        return _dealt_with(decision, slot, messages.UNCHANGED)
    waits_for = next((s for s in _own(o) if not s.is_final), None)
    if waits_for is not None:
        # Its end wakes the application; then the time that came last counts.
        message = messages.snapshot_in_progress(waits_for.metadata.name)
        return ScheduleDecision(
            msgspec.structs.replace(decision.status, message=message), wake_after=decision.wake_after
        )
    refused, left = not_created(o, name, now)
    # Also while it is tried again: it is true until one is there.
    status = msgspec.structs.replace(decision.status, message=refused or decision.status.message)
    if left:
        return ScheduleDecision(status, wake_after=earliest(left, decision.wake_after))
    return ScheduleDecision(status, (CreateSnapshot(build_scheduled(o.app, slot)),), decision.wake_after)


def not_created(o: Observation, name: str, now: float) -> tuple[str, float]:
    """Return why this snapshot was not created when that was tried last, and in how many seconds it is tried again.

    Args:
        o: the observation.
        name: of the StreamSnapshot.
        now: seconds since the epoch.
    """
    refusal, failure = o.memory.snapshot_refusal, o.memory.snapshot_not_created
    if refusal is not None and refusal.name == name and (left := time_left(refusal.at, REFUSED_PAUSE, now)):
        return refusal.message, left
    if failure is None or failure.name != name:
        return "", 0.0
    return failure.message, time_left(failure.at, NOT_CREATED_PAUSE, now)


def is_unchanged(o: Observation) -> bool:
    """Return whether another snapshot would be the same as the newest: no query has committed a batch since."""
    newest = o.last_snapshot
    if newest is None or newest.metadata.deletion_timestamp is not None or newest.status.app is None:
        return False
    if is_damaged(newest):
        return False  # nothing can be started from it: another one is needed
    reported = o.agent.report.queries if o.agent is not None else ()
    now = _taken_batches(reported or o.app.status.queries)
    then = {query.name: query.batch_id for query in newest.status.queries}
    # The newest may have others as well, of queries that the application has no more.
    return bool(now) and now.items() <= then.items() and newest.status.app.lineage == lineage_of(o)


def _taken_batches(queries: Sequence[QueryStatus | QueryReport]) -> dict[str, int]:
    """Return what a snapshot would hold now; as :func:`of_queries_that_continue`."""
    committed = [query for query in queries if query.batch_id is not None and query.batch_id >= 0]
    continued = [query for query in committed if not query.starts_empty]
    taken = {query.name: query.batch_id for query in continued or committed if query.batch_id is not None}
    # Of more, the status of the snapshot has the first ones.
    return {name[:LONGEST_NAME]: taken[name] for name in sorted(taken)[:MOST_ITEMS] if len(name) <= LONGEST_NAME}


def _progress(o: Observation, text: str, now: float) -> ScheduleStatus:
    """Return how far the schedule is, without times that are still to come: somebody set the clock back since."""
    known = o.app.status.snapshots
    if known is None or known.schedule != text or known.start_time is None:
        return ScheduleStatus(schedule=text, start_time=_time(now))
    since, last = (
        known.start_time.timestamp(),
        known.last_schedule_time.timestamp() if known.last_schedule_time is not None else 0.0,
    )
    taken = max((at for at in map(scheduled_at, _own(o)) if at <= now), default=0.0)
    last = max(last if last <= now else 0.0, taken)
    message = known.message if last and _time(last) == known.last_schedule_time else ""
    return ScheduleStatus(
        schedule=text,
        start_time=known.start_time if since <= now else _time(now),
        last_schedule_time=_time(last) if last else None,
        message=message,
    )


def _reached(status: ScheduleStatus) -> float:
    times = (status.start_time, status.last_schedule_time)
    return max((at.timestamp() for at in times if at is not None), default=0.0)


def _own(o: Observation) -> tuple[StreamSnapshot, ...]:
    """Return this very application's scheduled snapshots that nobody deletes."""
    return tuple(
        snapshot
        for snapshot in own_snapshots(o)
        if is_scheduled(snapshot)
        and snapshot.metadata.deletion_timestamp is None
        and snapshot.status.phase is not SnapshotPhase.DELETING
    )


def _dealt_with(decision: ScheduleDecision, slot: float, message: str) -> ScheduleDecision:
    assert decision.status is not None
    status = msgspec.structs.replace(decision.status, last_schedule_time=_time(slot), message=message)
    return ScheduleDecision(status, wake_after=decision.wake_after)


def _invalid(o: Observation, text: str, why: str) -> ScheduleDecision:
    message = messages.schedule_invalid(why)
    events = PublishEvent(Reason.SCHEDULE_INVALID, message, True, f"generation {o.app.metadata.generation}")
    known = o.app.status.snapshots
    is_reported = known is not None and known.message == message
    status = ScheduleStatus(schedule=text, message=message)
    return ScheduleDecision(status, () if is_reported else (events,), fault=message)


def _time(seconds: float | None) -> datetime.datetime | None:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC) if seconds is not None else None
