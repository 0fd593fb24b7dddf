"""Names and contents of the objects of the inbox in the storage. Pure.

``control/inbox/<time>-<writer>-<first>-<count>.json`` is a batch of CloudEvents in JSON: ``count`` messages, the first
of which has the writer's number ``first`` (writers count from 0). A writer puts one object at a time, and its names
sort in the order of its messages whatever its clock does; nothing is promised between two writers.

An object with any other name is one event or a batch of them, so a message can be sent by copying a file.

``control/replies/<writer>/<number>.json`` has the results of :data:`REPLIED_TOGETHER` messages of a writer as a batch
of events; an object with another name has its reply under that name.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.object_paths import REPLIES_PREFIX
from tidegate_spark.control.channels import messages
from tidegate_spark.control.channels.envelope import compact
from tidegate_spark.control.channels.ports import LARGEST_EVENT, Received
from tidegate_spark.control_log.entries import WRITERS

MOST_IN_BATCH = 1000
"""Events of one object."""
LARGEST_BATCH = 1 << 20
"""Bytes that a writer puts into one object, which holds one event at least."""
LARGEST_OBJECT = 2 << 20
"""Bytes of an object; what is larger is not looked into."""
REPLIED_TOGETHER = 128
"""Messages of a writer whose replies are in one object: a burst costs few requests, and a waiting writer reads one."""
_NAME = re.compile(r"(\d{8}T\d{6}\.\d{3}Z)-([0-9a-z]{16})-(\d{12})-(\d{4})\.json", re.ASCII)


@dataclass(frozen=True)
class BatchName:
    """What the name of a writer's object says."""

    moment: str
    """When it was made, by the writer's clock; never before the one that he made last."""
    writer: str
    """Sixteen letters and digits, of this writer alone."""
    first: int
    """The number of the first message in it."""
    count: int

    @property
    def following(self) -> int:
        """The number of the first message behind it."""
        return self.first + self.count

    def __str__(self) -> str:
        """Return the name of the object."""
        return f"{self.moment}-{self.writer}-{self.first:012d}-{self.count:04d}.json"


def batch_of(name: str) -> BatchName | None:
    """Return what an object's name says, None if it is not a writer's."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[4]) == 0:
        return None
    return BatchName(found[1], found[2], int(found[3]), int(found[4]))


def moment_of(seconds: float) -> str:
    """Return a time as names have it."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)  # noqa: UP017 - older Pythons
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03d}Z"


def origin_of(name: str) -> str:
    """Return where the messages of an object come from: its writer, or the object itself."""
    batch = batch_of(name)
    return WRITERS + (batch.writer if batch is not None else name)


def reply_name(origin: str, offset: int) -> str:
    """Return the object, below the application's prefix, in which it is said what came of a message."""
    place = origin.removeprefix(WRITERS)
    if offset < 0:
        return f"{REPLIES_PREFIX}/{place.removesuffix('.json')}.json"
    return f"{REPLIES_PREFIX}/{place}/{offset // REPLIED_TOGETHER:010d}.json"


def body_of(events: Sequence[bytes]) -> bytes:
    """Return the content of an object with these events, each of them JSON."""
    return b"[" + b",\n".join(events) + b"]"


def messages_in(name: str, body: bytes) -> tuple[Received, ...]:
    """Return the messages of an object, one at least; what cannot be read is one that says so. Never raises."""
    batch, origin = batch_of(name), origin_of(name)
    first = batch.first if batch is not None else -1
    if body.lstrip()[:1] != b"[":
        if batch is not None:
            return (Received(origin, body, offset=first, unreadable=messages.NO_BATCH),)
        return (_message(origin, body),)
    try:
        events = _events(body)
        if batch is not None and len(events) != batch.count:
            raise ValueError(f"it has {len(events)} events, and {batch.count} by its name")
        bodies = [compact(event) for event in events]
    except (ValueError, RecursionError) as error:
        return (Received(origin, body, offset=first, unreadable=messages.object_unreadable(error)),)
    return tuple(
        _message(origin, each, first + number if batch is not None else -1) for number, each in enumerate(bodies)
    )


def too_large(name: str, size: int) -> Received:
    """Return what comes of an object that is not looked into."""
    batch = batch_of(name)
    message = messages.object_too_long(size, LARGEST_OBJECT)
    return Received(origin_of(name), offset=batch.first if batch is not None else -1, size=size, unreadable=message)


def withheld(name: str, code: str) -> Received:
    """Return what comes of an object that the store does not give out."""
    batch = batch_of(name)
    offset = batch.first if batch is not None else -1
    return Received(origin_of(name), offset=offset, unreadable=messages.object_withheld(code))


def with_replies(body: bytes | None, replies: Sequence[bytes]) -> bytes:
    """Return the content of an object of replies with these in it: a repeated one replaces itself."""
    try:
        events = _events(body) if body is not None else []
    except (ValueError, RecursionError):
        events = []  # whoever wrote that, it is no reply
    found = {_identity(event): event for event in [*events, *map(json.loads, replies)]}
    return body_of([json.dumps(event, sort_keys=True).encode() for event in found.values()])


def reply_in(body: bytes, source: str, name: str) -> dict[str, Any] | None:
    """Return what an object of replies says of an event, None if it says nothing of it (yet).

    Raises:
        ValueError: it is none.
    """
    for event in _events(body):
        data = event.get("data") if isinstance(event, dict) else None
        if isinstance(data, dict) and (data.get("source"), data.get("id")) == (source, name):
            return data
    return None


def _events(body: bytes) -> list[Any]:
    found = json.loads(body.decode("utf-8"))
    if not isinstance(found, list) or not found:
        raise ValueError("it holds no event")
    if len(found) > MOST_IN_BATCH:
        raise ValueError(f"it holds {len(found)} events, and at most {MOST_IN_BATCH} are taken")
    return found


def _message(origin: str, body: bytes, offset: int = -1) -> Received:
    if len(body) > LARGEST_EVENT:
        return Received(origin, offset=offset, size=len(body))
    return Received(origin, body, offset=offset)


def _identity(event: Any) -> str:
    return str(event["id"]) if isinstance(event, dict) and "id" in event else json.dumps(event, sort_keys=True)
