"""Which scheduled snapshots retention deletes: too many, too old, or useless. No I/O.

Each is judged by the limits noted on it and by its neighbours, so it works without the application. Order and age go by
the API server's clock; while ours disagrees with it, nothing is too old.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.api.stream_snapshot import (
    ANNOTATION_KEEP,
    SnapshotPhase,
    is_scheduled,
    is_to_be_exported,
    owner_uid,
    retention_of,
)
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.snapshots.actions import DeleteSnapshot, SnapshotAction, StampRetention
from tidegate.snapshots.builders.stream_snapshot import keep_text
from tidegate.snapshots.history import is_known_whole
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages
from tidegate.snapshots.rules.verdict import SnapshotVerdict, refers_to_its_app
from tidegate_spark.contract.reasons import Reason

LARGEST_SKEW = 300.0
"""Seconds between our clock and the API server's up to which ages are believed."""
DISAGREEMENT_PAUSE = 600.0
"""Seconds until the clocks are compared again."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What the retention says of one snapshot."""

    why: str = ""
    """It goes, for this reason; empty if it stays."""
    again_after: float | None = None
    """Seconds until it may be too old."""


def let_expire(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Delete the resource of a scheduled snapshot that is not to be kept; its files go as with any other."""
    why = _judge(o, now).why
    if not why:
        return None
    name = o.snapshot.metadata.name
    message = messages.expired(name, why)
    events = PublishEvent(Reason.SNAPSHOT_EXPIRED, message, False, "expired")
    phase = o.snapshot.status.phase or SnapshotPhase.PENDING
    return SnapshotVerdict(
        phase,
        Health.RECONCILING,
        Reason.SNAPSHOT_EXPIRED,
        message,
        after=(events, DeleteSnapshot(o.snapshot)),
        silent=True,
    )


def expires_in(o: SnapshotObservation, now: float) -> float | None:
    """Return in how many seconds it may be too old, None if it will not be by the passing of time."""
    return _judge(o, now).again_after


def renew_stamp(o: SnapshotObservation) -> tuple[SnapshotAction, ...]:
    """Return what notes on a scheduled snapshot how long it stays, if its application says otherwise by now."""
    if not is_scheduled(o.snapshot) or o.app is None or not refers_to_its_app(o) or not owner_uid(o.snapshot):
        return ()
    wanted = keep_text(o.app)
    return () if o.snapshot.metadata.annotations.get(ANNOTATION_KEEP) == wanted else (StampRetention(wanted),)


def _judge(o: SnapshotObservation, now: float) -> _Judgement:
    snapshot = o.snapshot
    if not is_scheduled(snapshot) or not snapshot.is_final or renew_stamp(o):
        return _Judgement()
    if retention_of(snapshot).with_app and not o.app_unreadable and not refers_to_its_app(o):
        return _Judgement(messages.STORAGE_GONE)
    if o.begun_by or is_to_be_exported(snapshot):
        return _Judgement()
    never_complete = snapshot.status.phase is SnapshotPhase.FAILED and snapshot.status.ready_time is None
    return _judge_failed(o) if never_complete else _judge_ready(o, now)


def _judge_failed(o: SnapshotObservation) -> _Judgement:
    return _Judgement(messages.FAILED_EARLIER) if o.later.scheduled else _Judgement()


def _judge_ready(o: SnapshotObservation, now: float) -> _Judgement:
    rule = retention_of(o.snapshot)
    if not o.later.whole:
        return _Judgement()  # the newest, whoever asked for it
    if is_known_whole(o.snapshot) and not o.later.known_whole:
        return _Judgement()  # all later ones are still to be read back, and may be damaged
    if rule.max_count is not None and o.later.whole_scheduled >= rule.max_count:
        return _Judgement(messages.too_many(rule.max_count))
    return _judge_age(o, rule.max_age_seconds, now)


def _judge_age(o: SnapshotObservation, max_age: int | None, now: float) -> _Judgement:
    created = o.snapshot.metadata.creation_timestamp
    if not max_age or created is None:
        return _Judgement()
    left = created.timestamp() + max_age - now
    if left > 0:
        return _Judgement(again_after=left)
    if abs(o.clock_skew) > LARGEST_SKEW:
        return _Judgement(again_after=DISAGREEMENT_PAUSE)
    return _Judgement(messages.too_old(max_age))
