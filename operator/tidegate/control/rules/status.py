"""Builds the status of a message from an observation and a verdict, and decides whether to write it. No I/O."""

from __future__ import annotations

import datetime

import msgspec

from tidegate.api.control_message import APPLIED, FINAL, ControlMessageStatus, MessagePhase, MessageQuery
from tidegate.api.status.status import Condition
from tidegate.control.rules.verdict import MessageVerdict, Seen, refers_to_its_app
from tidegate.engine.rules.conditions import build_conditions
from tidegate_spark.contract.control_protocol import LONGEST_ERROR, MOST_ERRORS, MessageReport, QueryAcknowledgement

MOST_QUERIES, MOST_RESULTS, LONGEST_RESULT, LONGEST_NAME = 64, 16, 1024, 253
_LARGEST = 2**53


def build_message_status(s: Seen, verdict: MessageVerdict, offered: bool) -> ControlMessageStatus:
    """Return what the status should be; ``offered`` if the message is given to a driver after it was written."""
    old, metadata = s.message.status, s.message.metadata
    now = _time(s.at)
    reported = s.report if refers_to_its_app(s) else None
    status = msgspec.structs.replace(
        old,
        phase=verdict.phase,
        conditions=(*build_conditions(old.conditions, verdict, metadata.generation, s.at), _applied(s, verdict)),
        observed_generation=metadata.generation,
        order=old.order or metadata.resource_version,
        app_uid=s.message.app_uid or _receiver(s),
        origin=s.message.origin,
        offered_time=old.offered_time or (now if offered else None),
        expiration_time=_time(s.message.expires) if s.message.expires else None,
        completion_time=old.completion_time or (now if verdict.phase in FINAL else None),
    )
    status = status if reported is None else _with_report(status, reported, now)
    return msgspec.structs.replace(status, results={**status.results, **_some(dict(verdict.results))})


def _receiver(s: Seen) -> str:
    """Return the uid of the application that gets it; one that is being deleted gets nothing any more."""
    app = s.o.app
    return app.metadata.uid if app is not None and app.metadata.deletion_timestamp is None else ""


def is_core(old: ControlMessageStatus, new: ControlMessageStatus) -> bool:
    """Return whether more than messages and numbers has changed: whoever waits, waits for that."""
    return _core(old) != _core(new)


def _core(status: ControlMessageStatus) -> ControlMessageStatus:
    silent = tuple(msgspec.structs.replace(condition, message="") for condition in status.conditions)
    return msgspec.structs.replace(status, conditions=silent, queries=(), acks="", batch=None)


def _applied(s: Seen, verdict: MessageVerdict) -> Condition:
    status = "True" if verdict.phase is MessagePhase.APPLIED else "False"
    old = s.message.status.condition(APPLIED)
    return Condition(
        type=APPLIED,
        status=status,
        reason=verdict.reason,
        message=verdict.message,
        observed_generation=s.message.metadata.generation,
        last_transition_time=old.last_transition_time if old is not None and old.status == status else _time(s.at),
    )


def _with_report(status: ControlMessageStatus, report: MessageReport, now: datetime.datetime) -> ControlMessageStatus:
    named = sorted(report.queries.items())[:MOST_QUERIES]
    queries = tuple(_query(name, it) for name, it in named)
    batches = [query.batch_id for query in queries if query.batch_id is not None]
    sequence = report.sequence if 0 < report.sequence < _LARGEST else status.sequence
    return msgspec.structs.replace(
        status,
        sequence=sequence,
        published_time=status.published_time or (now if sequence else None),
        queries=queries,
        batch=max(batches, default=None),
        acks=f"{sum(q.applied for q in queries)}/{sum(q.ran for q in queries)}" if queries else "",
        results=_some(report.results),
    )


def _some(results: dict[str, str]) -> dict[str, str]:
    some = sorted(results.items())[:MOST_RESULTS]
    return {name[:LONGEST_NAME]: text[:LONGEST_RESULT] for name, text in some}


def _query(name: str, it: QueryAcknowledgement) -> MessageQuery:
    return MessageQuery(
        name=name[:LONGEST_NAME],
        batch_id=it.batch if 0 <= it.batch < _LARGEST else None,
        applied=_plausible(it.applied),
        ran=_plausible(it.ran),
        errors=tuple(error[:LONGEST_ERROR] for error in it.errors[:MOST_ERRORS]),
        more_errors=_plausible(it.more_errors),
        missing=tuple(worker[:LONGEST_ERROR] for worker in it.missing[:MOST_ERRORS]),
    )


def _plausible(number: int) -> int:
    return min(max(number, 0), _LARGEST)


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
