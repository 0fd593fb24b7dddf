"""A Kafka topic as a channel, by the JVM's clients of Spark's Kafka connector. Talks to the JVM.

Offsets are in the log and not committed to the broker. Order is that of a partition; between partitions there is none.
"""

from __future__ import annotations

import contextlib
import logging
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from tidegate_spark.contract.control_protocol import KafkaSettings
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages as texts
from tidegate_spark.control.channels.ports import (
    LARGEST_EVENT,
    ChannelError,
    Delivery,
    Received,
    Reply,
)
from tidegate_spark.control.channels.replies import shortened
from tidegate_spark.control.channels.transports.credentials import (
    CA,
    CERTIFICATE,
    KEY,
    PASSWORD,
    USERNAME,
    ChannelSecret,
)
from tidegate_spark.process.faults import foreign_text
from tidegate_spark.process.faults.faults import KAFKA_ERRORS, Link, java_chain

POLL_SECONDS = 10.0
"""Between two looks at what there is to read, which also finds a broker that is away."""
MOST_RECEIVED, MOST_BYTES = 2000, 4 * 2**20
"""Messages of one delivery, and bytes of them: with so many it is logged."""
_COUNT, _RECORD, _LENGTH = struct.Struct(">i"), struct.Struct(">iqi"), struct.Struct(">i")
_OUT_OF_RANGE = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"
_TOO_LARGE = (f"{KAFKA_ERRORS}RecordTooLargeException", f"{KAFKA_ERRORS}RecordBatchTooLargeException")
_CONFIG = "org.apache.kafka.common.config.ConfigException"
_REASONS: tuple[tuple[Reason, tuple[str, ...]], ...] = (
    (Reason.CHANNEL_CONNECTOR_MISSING, ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")),
    (
        Reason.CHANNEL_CREDENTIALS_REJECTED,
        (f"{KAFKA_ERRORS}AuthenticationException", f"{KAFKA_ERRORS}AuthorizationException"),
    ),
    (
        Reason.CHANNEL_MISSING,
        (f"{KAFKA_ERRORS}UnknownTopicOrPartitionException", f"{KAFKA_ERRORS}InvalidTopicException"),
    ),
)
_WORDS = {
    Reason.CHANNEL_CONNECTOR_MISSING: texts.NO_KAFKA_CLIENTS,
    Reason.CHANNEL_CREDENTIALS_REJECTED: texts.KAFKA_REJECTS,
    Reason.CHANNEL_MISSING: texts.NO_TOPIC,
    Reason.CHANNEL_MISCONFIGURED: texts.KAFKA_SETTINGS,
    Reason.CHANNEL_UNAVAILABLE: texts.KAFKA_SILENT,
}

log = logging.getLogger("tidegate")


def client_settings(settings: KafkaSettings, secret: ChannelSecret) -> dict[str, str]:
    """Return the settings of Kafka's clients: the user's, and what the Secret holds."""
    reported = {**settings.options, "bootstrap.servers": settings.bootstrap_servers}
    # Settings that are secrets are in the Secret under their own names, such as sasl.jaas.config.
    plain = {USERNAME, PASSWORD, CA, CERTIFICATE, KEY}
    reported.update((key, value) for key, value in secret.values if key not in plain and "." in key)
    if secret.get(USERNAME) and "sasl.jaas.config" not in reported:
        module = "scram.ScramLoginModule" if "SCRAM" in reported.get("sasl.mechanism", "") else "plain.PlainLoginModule"
        user, password = (_quoted(secret.get(key)) for key in (USERNAME, PASSWORD))
        reported["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required username={user} password={password};"
        )
    if secret.get(CA):
        reported |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": secret.file(CA)}
    if secret.get(CERTIFICATE) and secret.get(KEY):
        reported |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": secret.get(KEY)}
        reported["ssl.keystore.certificate.chain"] = secret.get(CERTIFICATE)
    return reported


class KafkaChannel:
    """See :class:`tidegate_spark.control.channels.ports.Channel`."""

    def __init__(
        self,
        settings: KafkaSettings,
        secret: ChannelSecret,
        jvm: Any,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is connected yet. ``jvm``: py4j's view of a JVM with Kafka's clients."""
        self._settings, self._secret, self._jvm, self._clock = settings, secret, jvm, clock
        self._topic: Any = None
        self._identity = self._prefix = ""
        self._positions: dict[int, int] = {}
        self._waiting, self._inspected = -1, 0.0

    def open(self, consumed: Mapping[str, int]) -> Delivery:
        """Connect, and go on from where the log ends."""
        with self._faults():
            settings = self._jvm.java.util.HashMap()
            for key, value in client_settings(self._settings, self._secret).items():
                settings.put(key, value)
            # Asked first: py4j says of a class that lacks another one only that it is not there.
            if not callable(self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer):
                raise ChannelError(Reason.CHANNEL_CONNECTOR_MISSING, f"{_WORDS[Reason.CHANNEL_CONNECTOR_MISSING]}.")
            make = self._jvm.dev.tidegate.spark.ControlTopic
            if not callable(make):
                raise ChannelError(Reason.CHANNEL_CONNECTOR_MISSING, texts.NO_JAR)
            self._topic = make(settings, self._settings.topic, LARGEST_EVENT)
            self._identity = self._topic.identity()
            self._prefix = f"kafka:{self._settings.topic}" + (f":{self._identity}" if self._identity else "")
            return self._check(consumed)

    def receive(self, seconds: float) -> Delivery:
        """Return what comes next."""
        with self._faults():
            if self._clock() - self._inspected >= POLL_SECONDS:
                reported = self._check_again()
                if reported.lost:
                    return reported
            try:
                messages = self._polled(seconds)
            except Py4JJavaError as error:
                if not any(link.is_a(_OUT_OF_RANGE) for link in java_chain(error.java_exception)):
                    raise
                return self._check_again()
        positions = {message.origin: message.offset + 1 for message in messages}
        self._positions.update((int(part.rpartition("/")[2]), offset) for part, offset in positions.items())
        return Delivery(tuple(messages), positions)

    def _polled(self, seconds: float) -> list[Received]:
        """Return what comes next, and what is there behind it: whoever logs it waits for others with each delivery."""
        found = more = list(records_in(self._topic.poll(int(seconds * 1000)), self._part))
        while more and len(found) < MOST_RECEIVED and sum(len(each.body) for each in found) < MOST_BYTES:
            try:
                more = list(records_in(self._topic.poll(0), self._part))
            except Py4JJavaError:
                break  # the next one says it again
            found = [*found, *more]
        return found

    def taken(self, delivery: Delivery) -> None:
        """Do nothing: the log itself says where to go on."""

    def answer(self, replies: Sequence[Reply]) -> None:
        """Write replies to the reply topic."""
        with self._faults(f"topic {self._settings.reply_topic!r}"):
            try:
                self._send(replies)
            except Py4JJavaError as error:
                if not _is_too_large(error):
                    raise
                # The producer does not say which one it was, nor which of the others are there.
                for reply in replies:
                    self._send_or_shorten(reply)

    def _send(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            self._topic.send(self._settings.reply_topic, reply.key, reply.body)
        self._topic.flush()

    def _send_or_shorten(self, reply: Reply) -> None:
        """Write one reply, without its details if it is too large for the topic; drop it if it still is."""
        for each in (reply, shortened(reply)):
            try:
                self._send([each])
            except Py4JJavaError as error:
                if not _is_too_large(error):
                    raise
            else:
                return
        log.warning(
            "control channel: %s",
            texts.reply_too_large(reply.key, self._settings.reply_topic),
            extra={"action": "channel", "reason": Reason.CONTROL_REPLIES_REFUSED},
        )

    def waiting(self) -> int:
        """Return how many messages there were that are not read yet, when it was looked last."""
        return self._waiting

    def close(self) -> None:
        """Give the connections up."""
        topic, self._topic = self._topic, None
        if topic is not None:
            with contextlib.suppress(Py4JError, OSError):
                topic.close()

    def _check_again(self) -> Delivery:
        """Find out what there is to read behind what was read."""
        identity = self._topic.identity()
        # A broker may not say it while brokers are upgraded.
        if identity and self._identity and identity != self._identity:
            # It may have more messages than the one before by now, so that no offset shows it.
            raise ChannelError(Reason.CHANNEL_UNAVAILABLE, texts.topic_made_anew(self._settings.topic))
        return self._check({self._part(at): offset for at, offset in self._positions.items()})

    def _check(self, consumed: Mapping[str, int]) -> Delivery:
        """Find out what there is to read, and go on from where the log ends, as far as that is there."""
        bounds = [tuple(map(int, each.split(":"))) for each in self._topic.bounds().split()]
        # Also by another topic of its name: what this one has came after that was looked at.
        name = f"kafka:{self._settings.topic}"
        is_known = any(part.startswith((f"{name}/", f"{name}:")) for part in consumed)
        self._inspected = self._clock()
        positions: dict[int, int] = {}
        said: dict[str, int] = {}
        lost = 0
        for number, first, end in bounds:
            part = self._part(number)
            begin = end if self._settings.from_latest and not is_known else first
            at = consumed.get(part, begin)
            if at > end:
                # It comes back with the broker that has it, or with so many more messages.
                message = texts.messages_lost(part, at)
                raise ChannelError(Reason.CHANNEL_UNAVAILABLE, message)
            lost += max(0, first - at) if part in consumed else 0
            positions[number] = max(at, first)
            # "Latest" is a place once it was looked at: what comes while no driver runs is behind it.
            if positions[number] != consumed.get(part, 0) or (self._settings.from_latest and not is_known):
                said[part] = positions[number]
        if positions != self._positions:
            self._topic.assign(" ".join(f"{number}:{at}" for number, at in positions.items()))
        self._positions = positions
        # The ends of transactions have offsets, too, and are nothing that waits.
        places = (each.partition(":") for each in self._topic.positions().split())
        passed = {int(number): int(at) for number, _, at in places}
        self._waiting = sum(max(0, end - max(positions[at], passed.get(at, 0))) for at, _, end in bounds)
        message = texts.offsets_removed(self._settings.topic, lost) if lost else ""
        return Delivery((), said, message)

    def _part(self, number: int) -> str:
        return f"{self._prefix}/{number}"

    @contextlib.contextmanager
    def _faults(self, place: str = "") -> Iterator[None]:
        """Turn what the JVM says into ChannelError."""
        try:
            yield
        except Py4JJavaError as error:
            reason, message = fault_in(java_chain(error.java_exception))
            where = place or f"topic {self._settings.topic!r}"
            raise ChannelError(reason, texts.at_broker(message, where, self._settings.bootstrap_servers)) from error
        except (Py4JError, OSError) as error:
            raise ChannelError(Reason.CHANNEL_UNAVAILABLE, texts.jvm_silent(error)) from error


def fault_in(chain: Sequence[Link]) -> tuple[Reason, str]:
    """Return the reason of a fault, and what it is as text; pure."""
    for reason, classes in _REASONS:
        found = next((link for link in chain if link.is_a(*classes)), None)
        if found is not None:
            return reason, _said(reason, found)
    config = next((link for link in chain if link.is_a(_CONFIG)), None)
    if config is not None:
        # What cannot be looked up now may be later: a Service that is not there yet.
        reason = (
            Reason.CHANNEL_UNAVAILABLE
            if foreign_text.names_unresolved_bootstrap(config.message)
            else Reason.CHANNEL_MISCONFIGURED
        )
        return reason, _said(reason, config)
    return Reason.CHANNEL_UNAVAILABLE, _said(Reason.CHANNEL_UNAVAILABLE, chain[-1]) if chain else _WORDS[
        Reason.CHANNEL_UNAVAILABLE
    ]


def _is_too_large(error: Py4JJavaError) -> bool:
    """Return whether the topic, or the client, takes no record of this size: it will not do so later either."""
    return any(link.is_a(*_TOO_LARGE) for link in java_chain(error.java_exception))


def records_in(content: bytes, part: Callable[[int], str]) -> Iterator[Received]:
    """Yield the records that a poll brought; pure."""
    (count,), at = _COUNT.unpack_from(content, 0), _COUNT.size
    for _ in range(count):
        number, offset, size = _RECORD.unpack_from(content, at)
        kind, at = _block(content, at + _RECORD.size)
        value, at = _block(content, at)
        yield Received(part(number), value, kind.decode("ascii", "replace"), offset, size)


def _block(content: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(content, at)
    begin = at + _LENGTH.size
    return content[begin : begin + length], begin + length


def _said(reason: Reason, link: Link) -> str:
    name = link.classes[0].rpartition(".")[2] if link.classes else "?"
    return f"{_WORDS[reason]}: {name}: {link.message[:300]}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
