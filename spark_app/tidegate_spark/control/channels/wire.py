"""Decodes CloudEvents in protobuf (``proto/cloudevent.proto``) without a library. Pure.

A protobuf library in the runtime would come before the application's own on the path, and could be another version than
its generated code needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
ID, SOURCE, SPEC_VERSION, TYPE, ATTRIBUTES, BINARY_DATA, TEXT_DATA, PROTO_DATA = range(1, 9)
BOOLEAN, INTEGER, STRING, BYTE_STRING, URI, URI_REF, TIMESTAMP = range(1, 8)
_NAMES = {ID: "id", SOURCE: "source", SPEC_VERSION: "specversion", TYPE: "type"}
_LONGEST_VARINT = 10
_FIXED = {FIXED64: 8, FIXED32: 4}


@dataclass(frozen=True)
class Moment:
    """A time, in seconds since the epoch."""

    seconds: float


def read_event(body: bytes) -> tuple[dict[str, Any], bytes | None]:
    """Return the attributes of an event, and its data as it is.

    Raises:
        ValueError: it is none, or its data is a protobuf message of its own.
    """
    event: dict[str, Any] = {}
    data: bytes | None = None
    for number, value in _fields(body):
        if number in _NAMES:
            event[_NAMES[number]] = _text(_bytes(value))
        elif number == ATTRIBUTES:
            name, attribute = _attribute(_bytes(value))
            if name not in _NAMES.values():
                event[name] = attribute
        elif number in (BINARY_DATA, TEXT_DATA):
            data = _bytes(value)
        elif number == PROTO_DATA:
            raise ValueError("its data is a protobuf message (proto_data); JSON is understood, as text or as bytes")
    return event, data


def _attribute(entry: bytes) -> tuple[str, Any]:
    parts = dict(_fields(entry))
    value: Any = None
    for kind, content in _fields(_bytes(parts.get(2, b""))):
        if kind in (STRING, URI, URI_REF):
            value = _text(_bytes(content))
        elif kind == TIMESTAMP:
            value = _moment(_bytes(content))
        elif kind == BOOLEAN:
            value = bool(content)
        elif kind in (INTEGER, BYTE_STRING):
            value = content
    return _text(_bytes(parts.get(1, b""))), value


def _moment(content: bytes) -> Moment:
    parts = dict(_fields(content))
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise ValueError("a time is no time")
    return Moment(_signed(seconds) + _signed(nanos) / 1e9)


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and content of each field, in their order."""
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == VARINT:
            value, at = _varint(body, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = _varint(body, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"field {number} is of kind {kind}")
        if at + size > len(body):
            raise ValueError(f"field {number} goes on behind the end")
        yield number, body[at : at + size]
        at += size


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(body):
            raise ValueError("a number goes on behind the end")
        value |= (body[at + index] & 0x7F) << (7 * index)
        if body[at + index] < 0x80:
            return value & (2**64 - 1), at + index + 1
    raise ValueError("a number is too long")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field is a number that should not be one")
    return value


def _text(value: bytes) -> str:
    return value.decode("utf-8")
