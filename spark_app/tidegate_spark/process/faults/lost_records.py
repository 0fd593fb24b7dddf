"""Which records a source has lost, by the error conditions of Spark's Kafka connector. Pure.

The connector reports a loss if the checkpoint's offsets are not in the topic, unless failOnDataLoss is false. It cannot
see a topic that was created again with as many records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate_spark.process.faults import fault_messages as messages
from tidegate_spark.process.faults.foreign_text import kafka_range_in, topic_partitions_in

KAFKA_DATA_LOSS = "KAFKA_DATA_LOSS"
UNREADABLE_RANGE = "COULD_NOT_READ_OFFSET_RANGE"


def what_is_lost(condition: str, parameters: Mapping[str, str], text: str) -> str:
    """Return topic, partition and offsets of what is lost, as a part of a sentence; empty if nothing is.

    Args:
        condition: of one exception of a chain, with its sub-condition; empty if it has none.
        parameters: what the condition says in its place.
        text: the exception's message, which is looked at only without a condition.
    """
    main, _, kind = condition.partition(".")
    if not condition:
        parameters, main, kind = kafka_range_in(text) or {}, KAFKA_DATA_LOSS, UNREADABLE_RANGE
        if not parameters:
            return ""
    if main != KAFKA_DATA_LOSS:
        return ""
    say = SAYS.get(kind)
    try:
        return say(parameters) if say is not None else messages.unread(condition)
    except (KeyError, ValueError):
        return messages.unread(condition)  # a newer connector's condition says other things


def _partitions(parameter: str) -> str:
    found = topic_partitions_in(parameter)
    if not found:
        raise ValueError(parameter)
    return messages.of_partitions(found)


def _ends_before(reported: Mapping[str, str]) -> str:
    return messages.ends_before(_partitions(reported["topicPartition"]), reported["prevOffset"], reported["newOffset"])


def _unreadable(reported: Mapping[str, str]) -> str:
    return messages.unreadable(
        _partitions(reported["topicPartition"]), reported["startOffset"], int(reported["endOffset"]) - 1
    )


def _begins_after(reported: Mapping[str, str]) -> str:
    return messages.begins_after(_partitions(reported["topicPartition"]), reported["offset"], reported["fetchedOffset"])


def _new_begins_after(reported: Mapping[str, str]) -> str:
    return messages.begins_after(_partitions(reported["topicPartition"]), "0", reported["startOffset"])


def _gone(reported: Mapping[str, str]) -> str:
    return messages.gone(_partitions(reported["partitions"]))


SAYS: dict[str, Callable[[Mapping[str, str]], str]] = {
    "PARTITION_OFFSET_CHANGED": _ends_before,
    UNREADABLE_RANGE: _unreadable,
    "START_OFFSET_RESET": _begins_after,
    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO": _new_begins_after,
    "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS": _gone,
    "PARTITIONS_DELETED": _gone,
    "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT": _gone,
}
"""Sub-condition -> what it says."""
