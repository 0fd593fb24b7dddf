"""A RabbitMQ queue as a channel, by pika. Talks to the broker.

A message is acknowledged once it is logged; what is not acknowledged comes again in order. The driver is the queue's
only reader (``exclusive``), so the order is the queue's.
"""

from __future__ import annotations

import contextlib
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pika
from pika import exceptions

from tidegate_spark.contract.control_protocol import RabbitSettings
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages
from tidegate_spark.control.channels.envelope import JSON_TYPE
from tidegate_spark.control.channels.ports import (
    LARGEST_EVENT,
    ChannelError,
    Delivery,
    Received,
    Reply,
)
from tidegate_spark.control.channels.transports.credentials import (
    CA,
    CERTIFICATE,
    KEY,
    PASSWORD,
    USERNAME,
    ChannelSecret,
)
from tidegate_spark.control.channels.transports.reply_publisher import Outlet, ReplyPublisher, UnconfirmedError
from tidegate_spark.process.faults import foreign_text

MOST_UNACKNOWLEDGED = 100
HEARTBEAT_SECONDS, PATIENCE_SECONDS = 30, 10.0
CONFIRM_SECONDS = 5.0
"""For the confirmation of all replies that are given at a time, before messages are read again."""
PORTS = {"amqp": 5672, "amqps": 5671}
NOT_FOUND, REFUSALS = 404, (403, 530)
PERSISTENT = 2
LONGEST_SHORT = 255
"""Bytes of AMQP's short strings."""
_REJECTIONS = (
    exceptions.AuthenticationError,
    exceptions.ProbableAuthenticationError,
    exceptions.ProbableAccessDeniedError,
)


def parameters(settings: RabbitSettings, secret: ChannelSecret, name: str) -> pika.ConnectionParameters:
    """Return how the broker is reached; ``name`` is what it calls the connection.

    Raises:
        ChannelError: the address, or a certificate, is none.
    """
    try:
        address = urllib.parse.urlsplit(settings.uri)
        port = address.port or PORTS[address.scheme]
        if not address.hostname:
            raise ValueError("it names no host")
        options = _tls(secret, address.hostname) if address.scheme == "amqps" else None
    except (ValueError, KeyError, OSError) as error:
        message = messages.uri_unusable(settings.uri, error)
        raise ChannelError(Reason.CHANNEL_MISCONFIGURED, message) from error
    user, password = secret.get(USERNAME) or "guest", secret.get(PASSWORD) or "guest"
    return pika.ConnectionParameters(
        host=address.hostname,
        port=port,
        virtual_host=urllib.parse.unquote(address.path[1:]) or "/",
        credentials=pika.PlainCredentials(user, password),
        ssl_options=options,
        heartbeat=HEARTBEAT_SECONDS,
        blocked_connection_timeout=PATIENCE_SECONDS,
        socket_timeout=PATIENCE_SECONDS,
        stack_timeout=PATIENCE_SECONDS,
        client_properties={"connection_name": name},
    )


class RabbitChannel:
    """See :class:`tidegate_spark.control.channels.ports.Channel`."""

    def __init__(self, settings: RabbitSettings, secret: ChannelSecret, name: str = "tidegate") -> None:
        """Prepare; nothing is connected yet."""
        self._settings, self._secret, self._name = settings, secret, name
        self._origin = f"rabbitmq:{settings.queue}"
        self._connection: Any = None
        self._reading: Any = None
        self._replies = ReplyPublisher(self._outlet)
        self._came: list[Received] = []
        self._tag = self._returned_tag = 0
        self._waiting = -1
        self._cancelled = False

    def open(self, consumed: Mapping[str, int]) -> Delivery:
        """Connect, and have the queue's messages come here alone."""
        with self._faults(f"queue {self._settings.queue!r}"):
            self._connection = pika.BlockingConnection(parameters(self._settings, self._secret, self._name))
            self._reading = self._connection.channel()
            declared = self._reading.queue_declare(self._settings.queue, passive=True)
            self._waiting = int(declared.method.message_count)
            self._reading.basic_qos(prefetch_count=MOST_UNACKNOWLEDGED)
            self._reading.add_on_cancel_callback(self._on_cancel)
            self._reading.basic_consume(self._settings.queue, self._on_message, exclusive=True)
            return Delivery()

    def receive(self, seconds: float) -> Delivery:
        """Return what comes next."""
        with self._faults(f"queue {self._settings.queue!r}"):
            if not self._came:
                self._connection.process_data_events(time_limit=seconds)
            if self._cancelled:
                raise ChannelError(Reason.CHANNEL_MISSING, messages.queue_gone(self._settings.queue))
            came, self._came, self._returned_tag = tuple(self._came), [], self._tag
            return Delivery(came)

    def taken(self, delivery: Delivery) -> None:
        """Acknowledge everything that came so far: it is in the log."""
        with self._faults(f"queue {self._settings.queue!r}"):
            if delivery.messages:
                self._reading.basic_ack(self._returned_tag, multiple=True)

    def answer(self, replies: Sequence[Reply]) -> None:
        """Put replies into the reply queue."""
        before = self._replies.confirmed
        try:
            self._publish(replies, f"queue {self._settings.reply_queue!r}")
        except ChannelError as error:
            raise ChannelError(error.reason, str(error), partial=self._replies.confirmed > before) from error

    def _publish(self, replies: Sequence[Reply], place: str) -> None:
        with self._faults(place):
            try:
                self._replies.publish(replies, CONFIRM_SECONDS)
            except UnconfirmedError as error:
                message = messages.at_broker(messages.unconfirmed(CONFIRM_SECONDS), place, self._settings.uri)
                raise ChannelError(Reason.CHANNEL_UNAVAILABLE, message) from error

    def _outlet(self) -> Outlet:
        return _ReplyQueue(parameters(self._settings, self._secret, self._name), self._settings.reply_queue)

    def waiting(self) -> int:
        """Return how many messages were in the queue when it was opened, until they have come."""
        return self._waiting

    def close(self) -> None:
        """Give the connection up; what was not acknowledged comes again."""
        self._replies.close()
        connection, self._connection = self._connection, None
        if connection is not None and connection.is_open:
            with contextlib.suppress(exceptions.AMQPError, OSError):
                connection.close()

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        too_large = len(body) > LARGEST_EVENT
        self._tag = method.delivery_tag
        self._waiting = max(0, self._waiting - 1)
        self._came.append(
            Received(
                self._origin,
                b"" if too_large else body,
                properties.content_type or "",
                size=len(body) if too_large else 0,
            )
        )

    def _on_cancel(self, method: Any) -> None:
        self._cancelled = True

    @contextlib.contextmanager
    def _faults(self, place: str) -> Iterator[None]:
        """Turn what pika says into ChannelError."""
        try:
            yield
        except (exceptions.AMQPError, OSError) as error:
            reason, message = fault_in(error)
            raise ChannelError(reason, messages.at_broker(message, place, self._settings.uri)) from error


class _ReplyQueue:
    """See :class:`Outlet`; a connection of its own, because nothing else is done on one that waits."""

    def __init__(self, reached: pika.ConnectionParameters, queue: str) -> None:
        self._queue = queue
        self._connection = pika.BlockingConnection(reached)
        try:
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        except Exception:  # nobody else knows of the connection
            self.close()
            raise

    def publish(self, reply: Reply) -> None:
        """Put a reply into the queue, and wait until the broker has it."""
        properties = pika.BasicProperties(
            content_type=JSON_TYPE, delivery_mode=PERSISTENT, correlation_id=_short(reply.key)
        )
        self._channel.basic_publish("", self._queue, reply.body, properties, mandatory=True)

    def keep_alive(self) -> None:
        """Answer the broker's heartbeats."""
        self._connection.process_data_events()

    def close(self) -> None:
        """Give the connection up."""
        with contextlib.suppress(exceptions.AMQPError, OSError):
            self._connection.close()


def fault_in(error: Exception) -> tuple[Reason, str]:
    """Return the reason of a fault, and what it is as text; pure."""
    said = f"{type(error).__name__}: {error}"[:300]
    if isinstance(error, exceptions.UnroutableError):
        return Reason.CHANNEL_MISSING, messages.NO_QUEUE
    if isinstance(error, _REJECTIONS):
        return Reason.CHANNEL_CREDENTIALS_REJECTED, messages.rabbitmq_rejects(said)
    if isinstance(error, (exceptions.ChannelClosedByBroker, exceptions.ConnectionClosedByBroker)):
        if error.reply_code == NOT_FOUND:
            return Reason.CHANNEL_MISSING, messages.NO_QUEUE
        if error.reply_code in REFUSALS and foreign_text.names_exclusive_use(error.reply_text):
            return Reason.CHANNEL_IN_USE, messages.QUEUE_IN_USE
        if error.reply_code in REFUSALS:
            return Reason.CHANNEL_CREDENTIALS_REJECTED, messages.rabbitmq_forbids(error.reply_text[:300])
    return Reason.CHANNEL_UNAVAILABLE, messages.rabbitmq_silent(said)


def _tls(secret: ChannelSecret, host: str) -> pika.SSLOptions:
    context = ssl.create_default_context(cafile=secret.file(CA) or None)
    if secret.get(CERTIFICATE) and secret.get(KEY):
        context.load_cert_chain(secret.file(CERTIFICATE), secret.file(KEY))
    return pika.SSLOptions(context, host)


def _short(key: str) -> str | None:
    """Return a key as AMQP takes it, at most 255 bytes; None if it is longer, or empty."""
    return key if 0 < len(key.encode()) <= LONGEST_SHORT else None
