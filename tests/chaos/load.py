"""A producer under steady load, and topics read back. Talks to Kafka; the producer has a thread of its own."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.records import encode

TICK_SECONDS = 0.05
FLUSH_SECONDS = 60.0


class Load:
    """Sends records of many keys in turn at a steady rate while the context lasts, whatever the broker does.

    No idempotence: a record that is sent twice is two records, each with a place of its own to be accounted for, and a
    producer that cannot fail is worth more here.
    """

    def __init__(self, brokers: str, topic: str, *, keys: int, rate: float) -> None:
        """Send ``rate`` records per second of ``keys`` keys."""
        self._topic, self._keys, self._rate = topic, [f"key-{n:03}" for n in range(keys)], rate
        settings = {"bootstrap.servers": brokers, "acks": "all", "message.timeout.ms": 0, "linger.ms": 5}
        self._producer = Producer({**settings, "log_level": 0, "reconnect.backoff.max.ms": 1000})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.sent = 0
        self.confirmed: set[tuple[str, int]] = set()
        self.refused: list[str] = []
        """What the broker said no to; nothing, unless something is wrong with the test itself."""

    def __enter__(self) -> Self:
        """Begin to send."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End sending, if it was not ended before."""
        self.stop()

    def stop(self) -> None:
        """Send no more, and wait until the broker has confirmed everything, or for a minute."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)
        self._producer.flush(FLUSH_SECONDS)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._over.wait(TICK_SECONDS):
            due = int((time.monotonic() - began) * self._rate)
            while self.sent < due and self._send(self.sent):
                self.sent += 1
            self._producer.poll(0)

    def _send(self, index: int) -> bool:
        key, number = self._keys[index % len(self._keys)], index // len(self._keys) + 1
        reported = partial(self._reported, key, number)
        try:
            self._producer.produce(self._topic, encode(key, number), key=key, on_delivery=reported)
        except BufferError:  # full, while the broker is away: later
            return False
        return True

    def _reported(self, key: str, number: int, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.confirmed.add((key, number))
        else:
            self.refused.append(f"{key} {number}: {error}")


class Read(NamedTuple):
    """One record of a topic; time in seconds since the epoch."""

    partition: int
    offset: int
    time: float
    content: bytes


def read_topic(brokers: str, topic: str, timeout: float = 180.0) -> Iterator[Read]:
    """Yield all records of a topic up to the end that it has now, each partition's in order.

    Raises:
        TimeoutError: the end was not reached in time.
        KafkaException: the broker refused.
    """
    settings: dict[str, Any] = {"bootstrap.servers": brokers, "group.id": "chaos", "enable.auto.commit": False}
    consumer = Consumer({**settings, "log_level": 0})
    try:
        ends = {p: end for p, end in _ends(consumer, topic).items() if end > 0}
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
        positions = dict.fromkeys(ends, 0)
        deadline = time.monotonic() + timeout
        while any(positions[partition] < end for partition, end in ends.items()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the end of topic {topic} was not reached within {timeout:.0f} s: {positions}")
            for message in consumer.consume(num_messages=5000, timeout=1.0):
                if message.error() is not None:
                    raise KafkaException(message.error())
                read = _read(message)
                positions[read.partition] = read.offset + 1
                yield read
    finally:
        consumer.close()


def _read(message: Message) -> Read:
    partition, offset, content = message.partition(), message.offset(), message.value()
    assert partition is not None, "a consumed record has a partition"
    assert offset is not None, "a consumed record has an offset"
    return Read(partition, offset, message.timestamp()[1] / 1000, bytes(content or b""))


def ends_of(brokers: str, topic: str) -> dict[int, int]:
    """Return where each partition of a topic ends now; raise KafkaException if the broker does not answer."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "chaos", "log_level": 0})
    try:
        return _ends(consumer, topic)
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    found = consumer.list_topics(topic, timeout=30).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in found.partitions}
