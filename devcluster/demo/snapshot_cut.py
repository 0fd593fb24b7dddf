"""Which readings were in a snapshot's batches, by its offsets and the topic itself. Reads Kafka; the rest is pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from devcluster.demo.scenario import Reading

Position = tuple[int, int]
"""Partition and offset."""
Positions = Mapping[tuple[str, datetime], Position]
"""Where each reading stands first, by sensor and time."""


def ends_of(status: Mapping[str, Any], topic: str) -> dict[int, int]:
    """Return, by partition, the offset after the last record of a topic that is in a snapshot.

    Args:
        status: of the StreamSnapshot.
        topic: the topic's name.

    Raises:
        ValueError: the snapshot has no query that reads it.
    """
    for query in status["queries"]:
        found = ends_in(str(query["offsets"]), topic)
        if found:
            return found
    raise ValueError(f"no query of the snapshot reads {topic}")


def ends_in(offsets: str, topic: str) -> dict[int, int]:
    """Return the same of a batch's entry in Spark's log of offsets; nothing if it has no such topic."""
    return next((found for line in offsets.splitlines() if (found := _of_topic(line, topic))), {})


def _of_topic(line: str, topic: str) -> dict[int, int]:
    try:
        source = json.loads(line)
    except ValueError:
        return {}
    ends = source.get(topic) if isinstance(source, dict) else None
    return {int(partition): int(end) for partition, end in ends.items()} if isinstance(ends, dict) else {}


def is_before(reading: Reading, positions: Positions, ends: Mapping[int, int]) -> bool:
    """Return whether a reading is in the snapshot; one that stands nowhere is not."""
    found = positions.get((reading.sensor, reading.time))
    return found is not None and found[1] < ends.get(found[0], 0)


def first_positions(records: Iterable[tuple[Position, Mapping[str, Any]]]) -> Positions:
    """Return where each reading stands first, given a topic's records in the order of each partition."""
    found: dict[tuple[str, datetime], Position] = {}
    for position, record in records:
        found.setdefault((str(record["sensor"]), datetime.fromisoformat(str(record["time"]))), position)
    return found


def read_positions(brokers: str, topic: str, timeout: float = 30.0) -> Positions:
    """Return the same of a topic as it is now; raises as :func:`read_records`."""
    return first_positions(read_records(brokers, topic, timeout))


def read_records(brokers: str, topic: str, timeout: float = 30.0) -> Iterator[tuple[Position, Mapping[str, Any]]]:
    """Yield a topic's records as they are now, with their places, in the order of each partition.

    Raises:
        KafkaException: the broker cannot be reached, or the topic does not exist.
        TimeoutError: a partition gave nothing for so many seconds.
    """
    settings = {"bootstrap.servers": brokers, "group.id": "tidegate-positions", "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": False})
    try:
        metadata = consumer.list_topics(topic, timeout).topics[topic]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in metadata.partitions]
        left = {p.partition: consumer.get_watermark_offsets(p, timeout)[1] for p in partitions}
        consumer.assign(partitions)
        yield from _records(consumer, left, timeout)
    finally:
        consumer.close()


def _records(
    consumer: Consumer, ends: Mapping[int, int], timeout: float
) -> Iterable[tuple[Position, Mapping[str, Any]]]:
    """Yield records until each partition's end."""
    left = {partition for partition, end in ends.items() if end}
    while left:
        messages: list[Message] = consumer.consume(num_messages=10_000, timeout=timeout)
        if not messages:
            raise TimeoutError(f"partitions {sorted(left)} gave nothing for {timeout:.0f} s")
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            partition, offset = int(message.partition() or 0), int(message.offset() or 0)
            if offset >= ends[partition] - 1:
                left.discard(partition)
            yield (partition, offset), json.loads(message.value() or b"null")
