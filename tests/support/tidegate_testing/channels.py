"""A broker in memory, as a topic or as a queue, and the messages that producers send to one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.control_protocol import MessageReport, MessageState, QueryAcknowledgement
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import (
    ChannelError,
    Delivery,
    Received,
    Reply,
)
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control_log.entries import Entry

TOPIC, QUEUE = "topic", "queue"
MOST_AT_ONCE = 4


def event(name: str = "1", kind: str = "reload-config", data: Any = None, **more: Any) -> bytes:
    """Return a CloudEvent as a producer sends it."""
    attributes = {"specversion": "1.0", "id": name, "source": "/test", "type": kind, "data": data, **more}
    return json.dumps({key: value for key, value in attributes.items() if value is not None}).encode()


def reply_to(name: str, errors: int = 0) -> Reply:
    """Return what is told of a message: of so many errors in one query."""
    said = QueryAcknowledgement(7, 1, 2, tuple(f"worker {number}: no table" for number in range(errors)))
    report = MessageReport(name, sequence=3, state=MessageState.DONE, queries={"main": said})
    return reply_of(Ended(Entry(3, id=f"/me#{name}", source="/me"), report), "shop", "orders")


@dataclass
class MemoryBroker:
    """What a broker has. ``topic``: read again from where one says; ``queue``: gone once it was acknowledged."""

    kind: str = TOPIC
    messages: list[Received] = field(default_factory=list)
    first: int = 0
    """Of a topic: the oldest offset that is there."""
    replies: list[dict[str, Any]] = field(default_factory=list)
    is_up: bool = True
    is_there: bool = True
    takes_replies: bool = True
    replies_at_once: int = 0
    """So many replies are taken of those that are given at a time, each once; 0: all."""
    password: str = "right"
    opened: int = 0

    @property
    def origin(self) -> str:
        return "kafka:control/0" if self.kind == TOPIC else "rabbitmq:control"

    def send(self, body: bytes, content_type: str = "") -> None:
        offset = self.first + len(self.messages) if self.kind == TOPIC else -1
        self.messages.append(Received(self.origin, body, content_type, offset))

    def remove_oldest(self, number: int) -> None:
        """Do what a topic's retention does."""
        del self.messages[:number]
        self.first += number

    def channel(self, password: str = "right") -> MemoryChannel:
        return MemoryChannel(self, password)

    def check(self, password: str) -> None:
        if not self.is_up:
            raise ChannelError(Reason.CHANNEL_UNAVAILABLE, "The broker does not answer.")
        if password != self.password:
            raise ChannelError(Reason.CHANNEL_CREDENTIALS_REJECTED, "The broker rejects the credentials.")
        if not self.is_there:
            raise ChannelError(Reason.CHANNEL_MISSING, "There is no such topic or queue.")


class MemoryChannel:
    """See :class:`tidegate_spark.control.channels.ports.Channel`."""

    def __init__(self, broker: MemoryBroker, password: str) -> None:
        self._broker, self._password = broker, password
        self._at = 0
        """Of a topic: the next offset. Of a queue: how many were delivered and not acknowledged."""

    def open(self, consumed: Mapping[str, int]) -> Delivery:
        self._broker.check(self._password)
        self._broker.opened += 1
        if self._broker.kind == QUEUE:
            return Delivery()
        wanted = consumed.get(self._broker.origin, 0)
        self._at = max(wanted, self._broker.first)
        lost = self._at - wanted
        return Delivery(positions={self._broker.origin: self._at}, lost=f"{lost} are gone" if lost else "")

    def receive(self, seconds: float) -> Delivery:
        self._broker.check(self._password)
        begin = self._at - self._broker.first if self._broker.kind == TOPIC else self._at
        came = tuple(self._broker.messages[begin : begin + MOST_AT_ONCE])
        self._at += len(came)
        if not came:
            time.sleep(min(seconds, 0.002))
        return Delivery(came, {self._broker.origin: self._at} if came and self._broker.kind == TOPIC else {})

    def taken(self, delivery: Delivery) -> None:
        self._broker.check(self._password)
        if self._broker.kind == QUEUE:
            del self._broker.messages[: self._at]
            self._at = 0

    def answer(self, replies: Sequence[Reply]) -> None:
        self._broker.check(self._password)
        if not self._broker.takes_replies:
            raise ChannelError(Reason.CHANNEL_MISSING, "There is no such topic or queue for replies.")
        sent, limit = self._broker.replies, self._broker.replies_at_once
        if not limit:
            sent.extend(json.loads(reply.body) for reply in replies)
            return
        missing = [body for body in (json.loads(reply.body) for reply in replies) if body not in sent]
        sent.extend(missing[:limit])
        if len(missing) > limit:
            raise ChannelError(Reason.CHANNEL_UNAVAILABLE, "The rest is not confirmed yet.", partial=True)

    def waiting(self) -> int:
        return len(self._broker.messages)

    def close(self) -> None:
        self._at = 0
