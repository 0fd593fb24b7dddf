"""Where a new query's sources start so that inputs are neither lost nor repeated. Pure.

Spark logs the offset of the first record that is in no batch yet, and Kafka's ``startingOffsets`` takes the first
record to be read: the same number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidegate_spark.exports import messages
from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.manifest import ExportedQuery

NOWHERE_YET = "-"
"""What Spark logs of a source that had not given anything."""
EARLIEST = -2
"""What ``startingOffsets`` understands as the first record that is there."""


def source_of(query: str, at: ExportedQuery, source: str | int | None) -> str:
    """Return what was logged of one source of a query.

    Args:
        query: its name, for words.
        at: where it was.
        source: number or name; None: the only one, or the only one of Kafka's.

    Raises:
        ExportError: there is no such source, or there are several and none was named.
    """
    known = ", ".join(repr(name) for name in sorted(at.offsets))
    if source is None:
        # A query that takes part in the control stream has that as a source, too.
        fitting = [logged for logged in at.offsets.values() if is_kafkas(logged)] or list(at.offsets.values())
        if len(fitting) == 1:
            return fitting[0]
        raise ExportError(f"query {query!r} had {len(at.offsets)} sources ({known}): say which one with source=…")
    found = at.offsets.get(str(source))
    if found is None:
        raise ExportError(f"query {query!r} had no source {source!r} (source=…): it had {known or 'none'}")
    return found


def starting_offsets_of(query: str, logged: str, partitions: Mapping[str, int]) -> str:
    """Return the value for Kafka's ``startingOffsets``.

    Args:
        query: the query's name, for words.
        logged: see :func:`source_of`.
        partitions: by topic, how many there are now: those that the query had not seen are read from their beginning.

    Raises:
        ExportError: it is not where a Kafka source was.
    """
    if logged.strip() == NOWHERE_YET:
        raise ExportError(
            f"the source of query {query!r} had read nothing yet: start from the startingOffsets that it had"
        )
    by_topic = _by_topic(logged)
    if by_topic is None:
        raise ExportError(messages.no_kafka_source(query, logged[:200]))
    whole = {topic: {int(number): at for number, at in of.items()} for topic, of in by_topic.items()}
    for topic, number in partitions.items():
        for partition in range(number):
            whole.setdefault(topic, {}).setdefault(partition, EARLIEST)
    ordered = {topic: {str(n): whole[topic][n] for n in sorted(whole[topic])} for topic in sorted(whole)}
    return json.dumps(ordered, separators=(",", ":"))


def is_kafkas(logged: str) -> bool:
    """Return whether what was logged of a source is where one of Kafka's was."""
    return _by_topic(logged) is not None


def _by_topic(logged: str) -> dict[str, dict[str, int]] | None:
    try:
        value = json.loads(logged)
    except ValueError:
        return None
    if not isinstance(value, dict) or not value or not all(map(_is_topic, value.values())):
        return None
    return value


def _is_topic(of: Any) -> bool:
    return isinstance(of, dict) and all(n.isdecimal() and isinstance(at, int) for n, at in of.items())
