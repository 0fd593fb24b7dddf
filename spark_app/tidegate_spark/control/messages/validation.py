"""Validates control messages: which are logged as rejected, and why. Pure."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate_spark.contract.control_protocol import (
    BUILT_IN_TYPES,
    DEEPEST_PAYLOAD,
    DUMP_STATE,
    LARGEST_PAYLOAD,
    RELOAD_CONFIG,
    RELOAD_MODEL,
    SET_LOG_LEVEL,
    is_deeper,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS
from tidegate_spark.control.messages import messages
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.reducer import merged

LOG_LEVELS = ("ALL", "DEBUG", "ERROR", "FATAL", "INFO", "OFF", "TRACE", "WARN")
_SHA256_DIGITS = 64
MOST_TYPES = 256
"""Of messages to an application that reads them of whatever type."""
MOST_MODELS = 256
"""Names of models: the addresses of the newest of each are kept, and every base of the log has them all."""
LARGEST_CONFIG = 1 << 20
"""Bytes of all settings together, as JSON: each base of the log has them, and each task that asks gets them."""

Schema = Mapping[str, type]
"""Names that a payload, an object, must have, and of which type their values are."""


class RejectedError(ValueError):
    """A message is never in force."""

    def __init__(self, reason: str, message: str) -> None:
        """Say why, for a condition and for a person."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Vocabulary:
    """What the application has said it understands, beside what every application does."""

    types: Mapping[str, Schema | None]
    """With a schema, if it said one."""
    any_type: bool = False
    """It reads messages of whatever type."""
    config: Mapping[str, type] | None = None
    """Settings whose types it said."""


@dataclass(frozen=True)
class InForce:
    """What earlier messages left in force, all of which is kept: so messages may not add to it without end."""

    types: frozenset[str] = frozenset()
    """Those that there were. The newest message of each is kept."""
    config: Mapping[str, Any] = field(default_factory=dict)
    models: frozenset[str] = frozenset()
    """Names of models."""

    def after(self, draft: Entry) -> InForce:
        """Return what is in force after one more message, which was found valid.

        One that can expire is counted as if it did not: too much is refused a little early then.
        """
        if draft.kind is not Kind.MESSAGE:
            return self
        then = replace(self, types=self.types | {draft.type})
        if draft.type == RELOAD_CONFIG:
            return replace(then, config=merged(self.config, json.loads(draft.payload)))
        if draft.type == RELOAD_MODEL:
            return replace(then, models=self.models | {json.loads(draft.payload)["name"]})
        return then


def checked(draft: Entry, vocabulary: Vocabulary, before: InForce | None = None) -> Entry:
    """Return a message as it is to be logged: as it is, or as a rejected one, without a payload.

    Args:
        draft: the message.
        vocabulary: what the application understands.
        before: what is in force before it; None: nothing.
    """
    if draft.kind is not Kind.MESSAGE:
        return draft
    try:
        check(draft, vocabulary)
        _check_room(draft, vocabulary, before or InForce())
    except RejectedError as error:
        return rejected(draft, error.reason, str(error))
    return draft


def rejected(draft: Entry, reason: str, message: str) -> Entry:
    """Return a message as one that is never in force, without its payload."""
    return replace(draft, kind=Kind.REJECTED, payload="null", reason=reason, message=message)


def check(draft: Entry, vocabulary: Vocabulary) -> None:
    """Check one message.

    Raises:
        RejectedError: it says nothing that the application understands.
    """
    size = len(draft.payload.encode())
    if size > LARGEST_PAYLOAD:
        raise RejectedError(Reason.PAYLOAD_TOO_LARGE, messages.payload_too_long(size, LARGEST_PAYLOAD))
    try:
        payload = json.loads(draft.payload)
    except (ValueError, RecursionError) as error:
        raise RejectedError(Reason.INVALID_PAYLOAD, messages.payload_not_json(error)) from error
    if is_deeper(payload, DEEPEST_PAYLOAD):
        # Whoever reads it later may have less room for calls within calls than there is here.
        raise RejectedError(Reason.INVALID_PAYLOAD, messages.payload_too_deep(DEEPEST_PAYLOAD))
    if draft.type in BUILT_IN_TYPES:
        _check_built_in(draft.type, payload, vocabulary)
    elif draft.type not in vocabulary.types and not vocabulary.any_type:
        known = ", ".join(sorted({*BUILT_IN_TYPES, *vocabulary.types}))
        raise RejectedError(Reason.UNKNOWN_TYPE, messages.no_handler(draft.type, known))
    schema = vocabulary.types.get(draft.type)
    if schema is not None:
        check_object(payload, schema)


def check_object(payload: Any, schema: Schema) -> None:
    """Check that a payload is an object with all that ``schema`` names; it may have more.

    Raises:
        RejectedError: it is not.
    """
    if not isinstance(payload, dict):
        names = f" with {', '.join(sorted(schema))}" if schema else ""
        raise RejectedError(Reason.INVALID_PAYLOAD, messages.payload_no_object(names))
    missing = sorted(schema.keys() - payload.keys())
    if missing:
        raise RejectedError(Reason.INVALID_PAYLOAD, messages.payload_lacks(missing[0]))
    for name, kind in schema.items():
        if not is_a(payload[name], kind):
            raise RejectedError(
                Reason.INVALID_PAYLOAD, messages.payload_of_other_kind(name, kind.__name__, payload[name])
            )


def is_a(value: Any, kind: type) -> bool:
    """Return whether a JSON value is of a type: a whole number that a float holds is a float, true is no number."""
    if isinstance(value, bool):
        return kind is bool
    if kind is float and isinstance(value, int):
        return abs(value) <= sys.float_info.max
    return isinstance(value, kind)


def _check_room(draft: Entry, vocabulary: Vocabulary, before: InForce) -> None:
    if draft.type == RELOAD_CONFIG:
        size = _size(merged(before.config, json.loads(draft.payload)))
        # Settings that have grown too large before there was a limit must still get smaller.
        if size > LARGEST_CONFIG and size > _size(before.config):
            raise RejectedError(Reason.PAYLOAD_TOO_LARGE, messages.config_too_large(size, LARGEST_CONFIG))
    elif draft.type == RELOAD_MODEL:
        if json.loads(draft.payload)["name"] not in before.models and len(before.models) >= MOST_MODELS:
            raise RejectedError(Reason.INVALID_PAYLOAD, messages.too_many_models(MOST_MODELS))
    elif draft.type not in {*BUILT_IN_TYPES, *vocabulary.types, *before.types} and len(before.types) >= MOST_TYPES:
        raise RejectedError(Reason.UNKNOWN_TYPE, messages.too_many_types(MOST_TYPES))


def _size(config: Mapping[str, Any]) -> int:
    return len(json.dumps(config, separators=(",", ":")))


def _check_built_in(kind: str, payload: Any, vocabulary: Vocabulary) -> None:
    if kind == RELOAD_CONFIG:
        check_object(payload, {})
        said = vocabulary.config or {}
        check_object(payload, {name: said[name] for name in payload if name in said and payload[name] is not None})
    elif kind == RELOAD_MODEL:
        check_object(payload, {"name": str, "uri": str, "sha256": str})
        digits = payload["sha256"].lower()
        if len(digits) != _SHA256_DIGITS or set(digits) - set("0123456789abcdef"):
            raise RejectedError(Reason.INVALID_PAYLOAD, messages.SHA256_MALFORMED)
    elif kind == SET_LOG_LEVEL:
        check_object(payload, {"level": str})
        if payload["level"].upper() not in LOG_LEVELS:
            raise RejectedError(Reason.INVALID_PAYLOAD, messages.level_unknown(", ".join(LOG_LEVELS)))
    elif kind == DUMP_STATE and payload is not None:
        check_object(payload, {})
        if payload.get("format", EXPORT_FORMATS[0]) not in EXPORT_FORMATS:
            raise RejectedError(Reason.INVALID_PAYLOAD, messages.format_unknown(", ".join(EXPORT_FORMATS)))
