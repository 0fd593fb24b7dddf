"""Offsets from which the first batch after a snapshot starts, in place of the snapshot's. Pure.

The text has the form of ``startingOffsets`` of Spark's Kafka source, with numbers only. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LARGEST = 2**63 - 1
"""An offset is a signed number of 64 bits."""
TopicOffsets = Mapping[str, Mapping[str, int]]
"""By topic, then partition (a number as text, as in JSON)."""


def topic_offsets(text: str) -> dict[str, dict[str, int]]:
    """Return what a text says; nothing of an empty one.

    Raises:
        ValueError: it is not of that form; the message says what it should be.
    """
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # the second of brackets within brackets
        value = None
    if not isinstance(value, dict) or not value or not all(map(_is_topic, value.values())):
        raise ValueError('must be JSON such as {"orders":{"0":120,"1":17}}: an offset of at least 0 for each partition')
    return value


def _is_topic(of: Any) -> bool:
    if not isinstance(of, dict) or not of:
        return False
    return all(
        number.isascii() and number.isdecimal() and type(at) is int and 0 <= at <= LARGEST for number, at in of.items()
    )


def with_offsets(logged: str, topics: TopicOffsets) -> str:
    """Return the offsets of a source as Spark logs them, with those of the topics that are named and that it reads.

    Args:
        logged: the source's own JSON; anything but a Kafka source's is returned as it is.
        topics: what a topic has here takes the place of all of its partitions.
    """
    read = topics_of(logged)
    if not read.keys() & topics.keys():
        return logged
    return json.dumps({topic: topics.get(topic, of) for topic, of in read.items()}, separators=(",", ":"))


def topics_of(logged: str) -> dict[str, dict[str, int]]:
    """Return the offsets of a Kafka source as Spark logs them, nothing of any other source's."""
    try:
        return topic_offsets(logged)
    except ValueError:
        return {}
