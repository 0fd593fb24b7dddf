"""Builds a message as a CloudEvent, checked as the driver checks it. Pure."""

from __future__ import annotations

import datetime
from typing import Any

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.envelope import SPEC_VERSION, compact, entry_of
from tidegate_spark.control.channels.ports import LARGEST_EVENT, Received
from tidegate_spark.control.messages.validation import RejectedError, Vocabulary, check
from tidegate_spark.control_log.entries import Kind
from tidegate_spark.control_writer import messages
from tidegate_spark.control_writer.errors import InvalidMessageError

Expires = float | datetime.timedelta | datetime.datetime | None
"""Seconds from now, or a time that knows its zone; None: never."""
_ANY_TYPE = Vocabulary({}, any_type=True)


def event_of(  # noqa: PLR0913 - the parts of one message
    source: str, name: str, kind: str, payload: Any, *, expires: Expires, now: float
) -> bytes:
    """Return a message as the inbox has it.

    Args:
        source: who sends it.
        name: its id, of this source alone.
        kind: its type.
        payload: what JSON can say.
        expires: until when it may come into force.
        now: seconds since the epoch.

    Raises:
        InvalidMessageError: the driver would reject it whatever the program understands; the message names the field.
    """
    event = {"specversion": SPEC_VERSION, "id": name, "source": source, "type": kind, "time": _text_of(now)}
    if expires is not None:
        event["expirytime"] = _text_of(_moment_of(expires, now))
    try:
        body = compact({**event, "data": payload}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessageError(Reason.INVALID_PAYLOAD, messages.payload_not_json(error)) from error
    if len(body) > LARGEST_EVENT:
        message = messages.message_too_long(len(body), LARGEST_EVENT)
        raise InvalidMessageError(Reason.EVENT_TOO_LARGE, message)
    entry = entry_of(Received("", body))
    if entry.kind is not Kind.MESSAGE:
        raise InvalidMessageError(entry.reason, entry.message)
    try:
        check(entry, _ANY_TYPE)
    except RejectedError as error:
        raise InvalidMessageError(error.reason, str(error)) from error
    return body


def _moment_of(expires: Expires, now: float) -> float:
    if isinstance(expires, datetime.datetime):
        if expires.tzinfo is None:
            raise InvalidMessageError(Reason.INVALID_EXPIRES, messages.TIME_WITHOUT_ZONE)
        return expires.timestamp()
    seconds = expires.total_seconds() if isinstance(expires, datetime.timedelta) else expires
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        message = messages.expiry_of_other_kind(expires)
        raise InvalidMessageError(Reason.INVALID_EXPIRES, message)
    return now + seconds


def _text_of(seconds: float) -> str:
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)  # noqa: UP017 - older Pythons
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidMessageError(Reason.INVALID_EXPIRES, messages.expiry_unreadable(error)) from error
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
