"""Turns a broker's message into an entry of the control log: a message, or a rejection with its reason. Pure.

It never fails, and equal bytes give equal entries, so a message that comes twice counts once.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import json
import re
from typing import Any

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages
from tidegate_spark.control.channels.ports import LARGEST_EVENT, Received
from tidegate_spark.control.channels.wire import Moment, read_event
from tidegate_spark.control.messages.validation import RejectedError
from tidegate_spark.control_log.entries import Entry, Kind

SPEC_VERSION = "1.0"
JSON_TYPE, PROTOBUF_TYPE = "application/cloudevents+json", "application/cloudevents+protobuf"
_JSON_TYPES = frozenset({JSON_TYPE, "application/json", "text/json"})
LONGEST_ATTRIBUTE, LONGEST_TYPE, LONGEST_MESSAGE = 512, 128, 500
"""Characters of id and source, of the type, and of what is said about a message."""
_AT_ONCE = 1e-3
"""Expired long ago: 0 would be never."""
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)


def entry_of(received: Received) -> Entry:
    """Return a message as an entry that has no number yet, rejected if it is no event. Never raises."""
    event: dict[str, Any] = {}
    try:
        if received.unreadable:
            raise RejectedError(Reason.EVENT_TOO_LARGE if received.size else Reason.INVALID_EVENT, received.unreadable)
        if received.size:
            message = messages.message_too_long(received.size, LARGEST_EVENT)
            raise RejectedError(Reason.EVENT_TOO_LARGE, message)
        event, data = _read(received.body, received.content_type.partition(";")[0].strip().lower())
        name, source, kind = _identity(event)
        payload = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        payload.encode()
        return Entry(
            0,
            id=log_id(source, name),
            type=kind,
            payload=payload,
            expires=_expires(event.get("expirytime")),
            source=source,
            origin=received.origin,
            offset=received.offset,
        )
    except RejectedError as error:
        return _rejected(received, event, error.reason, str(error))
    except (ValueError, RecursionError) as error:
        return _rejected(received, event, Reason.INVALID_EVENT, messages.message_unreadable(error))


def compact(event: Any, *, allow_nan: bool = True) -> bytes:
    """Return a decoded event as JSON again: no longer than its sender may have written it, in whatever script.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot say it.
    """
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=allow_nan)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a character, which only an escape can say: whoever reads it says what it is
        return json.dumps(event, separators=(",", ":"), allow_nan=allow_nan).encode()


def log_id(source: str, name: str) -> str:
    """Return the id by which the log knows an event: its own may be another source's as well."""
    return f"{source.replace('%', '%25').replace('#', '%23')}#{name}"


def event_id(entry: Entry) -> str:
    """Return the id that the sender gave an event; empty if the message was none."""
    return entry.id.partition("#")[2]


def _read(body: bytes, content_type: str) -> tuple[dict[str, Any], Any]:
    """Return attributes and data of an event."""
    if content_type == PROTOBUF_TYPE:
        return _protobuf(body)
    if content_type in _JSON_TYPES:
        return _json(body)
    if content_type:
        message = messages.content_type_unknown(content_type, JSON_TYPE, PROTOBUF_TYPE)
        raise RejectedError(Reason.UNSUPPORTED_CONTENT_TYPE, message)
    return _either(body)


def _either(body: bytes) -> tuple[dict[str, Any], Any]:
    """Read what does not say what it is: a protobuf event may begin like a JSON object, but does not go on so."""
    first, second = (_json, _protobuf) if body.lstrip()[:1] == b"{" else (_protobuf, _json)
    try:
        return first(body)
    except RejectedError:
        raise
    except (ValueError, RecursionError) as error:
        try:
            return second(body)
        except RejectedError:
            raise
        except (ValueError, RecursionError) as other:
            if first is _json:
                raise error from None
            raise ValueError(f"it is neither JSON ({other}) nor an event in protobuf ({error})") from None


def _json(body: bytes) -> tuple[dict[str, Any], Any]:
    event = _loads(body.decode("utf-8"))
    if not isinstance(event, dict):
        raise RejectedError(Reason.INVALID_EVENT, messages.NOT_ONE_EVENT)
    if event.get("data") is not None and event.get("data_base64") is not None:
        raise RejectedError(Reason.INVALID_EVENT, messages.DATA_TWICE)
    _check_data_type(event)
    if event.get("data_base64") is None:
        return event, event.get("data")
    try:
        data = base64.b64decode(_text_of(event, "data_base64", 2 * LARGEST_EVENT), validate=True)
    except binascii.Error as error:
        raise RejectedError(Reason.INVALID_PAYLOAD, messages.not_base64(error)) from error
    return event, _payload(data)


def _protobuf(body: bytes) -> tuple[dict[str, Any], Any]:
    event, data = read_event(body)
    _check_data_type(event)
    return event, _payload(data) if data is not None else None


def _payload(data: bytes) -> Any:
    try:
        return _loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RejectedError(Reason.INVALID_PAYLOAD, messages.data_not_json(error)) from error


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_data_type(event: dict[str, Any]) -> None:
    reported = event.get("datacontenttype")
    kind = str(reported or "").partition(";")[0].strip().lower()
    if kind and kind not in ("application/json", "text/json") and not kind.endswith("+json"):
        raise RejectedError(Reason.UNSUPPORTED_CONTENT_TYPE, messages.data_of_other_kind(kind))


def _identity(event: dict[str, Any]) -> tuple[str, str, str]:
    """Return id, source and type."""
    version = event.get("specversion")
    if version != SPEC_VERSION:
        reported = f"'specversion' {version!r:.40}" if version is not None else "no 'specversion'"
        message = messages.not_structured(reported, SPEC_VERSION)
        raise RejectedError(Reason.INVALID_EVENT, message)
    return (
        _text_of(event, "id", LONGEST_ATTRIBUTE),
        _text_of(event, "source", LONGEST_ATTRIBUTE),
        _text_of(event, "type", LONGEST_TYPE),
    )


def _text_of(event: dict[str, Any], name: str, longest: int) -> str:
    value = event.get(name)
    if not isinstance(value, str) or not value:
        raise RejectedError(Reason.INVALID_EVENT, messages.attribute_missing(name))
    if len(value) > longest:
        raise RejectedError(Reason.INVALID_EVENT, messages.attribute_too_long(name, len(value), longest))
    value.encode()
    return value


def _expires(moment: Any) -> float:
    """Return until when an event may come into force, seconds since the epoch; 0: always."""
    if moment is None:
        return 0.0
    if isinstance(moment, Moment):
        return max(moment.seconds, _AT_ONCE)
    found = _MOMENT.fullmatch(moment) if isinstance(moment, str) else None
    if found is None:
        raise RejectedError(Reason.INVALID_EVENT, messages.NO_EXPIRY_TIME)
    year, month, day, hour, minute, second = (int(found[index]) for index in range(1, 7))
    at = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.timezone.utc)  # noqa: UP017 - older
    away = int(found[9]) * 3600 + int(found[10]) * 60 if found[8] else 0
    seconds = at.timestamp() + float(found[7] or 0) - (-away if found[8] == "-" else away)
    return max(seconds, _AT_ONCE)


def _rejected(received: Received, event: dict[str, Any], reason: str, message: str) -> Entry:
    """Return a message that is never in force; what can be said of it is kept, as far as it is text."""
    name, source, kind = (_shown(event.get(part)) for part in ("id", "source", "type"))
    return Entry(
        0,
        Kind.REJECTED,
        id=log_id(source, name) if name and source else _place_of(received),
        type=kind[:LONGEST_TYPE],
        source=source or received.origin,
        reason=reason,
        message=message.encode("ascii", "backslashreplace").decode()[:LONGEST_MESSAGE],
        origin=received.origin,
        offset=received.offset,
    )


def _shown(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_ATTRIBUTE:
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return ""
    return value


def _place_of(received: Received) -> str:
    """Return an id for what has none: its place, or its content. No event's id is of this form, which has no ``#``."""
    if received.offset >= 0:
        return f"{received.origin}@{received.offset}"
    digest = hashlib.sha256(received.body + str(received.size).encode()).hexdigest()[:32]
    return f"{received.origin.replace('#', '%23')}@{digest}"
