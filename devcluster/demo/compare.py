"""Compare consumed decisions with the expected ones. The comparison is pure; :func:`read_topic` reads from Kafka.

``python -m devcluster.demo.compare --help``: the same for a replay that was made before.
"""

from __future__ import annotations

import argparse
import json
import operator
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from devcluster.demo.oracle import expected_decisions
from devcluster.demo.scenario import Scenario

Decision = Mapping[str, Any]
EXAMPLES = 5


@dataclass(frozen=True)
class Comparison:
    """The outcome; ids in the order in which they were met."""

    expected: int
    consumed: int
    correct: int
    missing: tuple[str, ...]
    """Expected, never seen."""
    wrong: tuple[str, ...]
    """Seen with other content than expected, be it only in one of several copies."""
    unexpected: tuple[str, ...]
    """Seen, but no decision is due there."""
    duplicates: int
    """Copies after the first of an id: what at-least-once output costs its consumers."""
    noun: str = "decisions"
    """What is compared."""

    @property
    def ok(self) -> bool:
        """True if, deduplicated by id, what was consumed is exactly what was expected."""
        return not (self.missing or self.wrong or self.unexpected)

    def report(self) -> str:
        """Return the outcome for a person."""
        lines = [
            f"{self.expected:,} {self.noun} expected, {self.consumed:,} consumed, {self.duplicates:,} of them repeats: "
            f"{self.correct:,} correct, {len(self.missing):,} missing, {len(self.wrong):,} wrong, "
            f"{len(self.unexpected):,} unexpected"
        ]
        for kind in ("missing", "wrong", "unexpected"):
            ids = getattr(self, kind)
            if ids:
                lines.append(f"  {kind}: {', '.join(ids[:EXAMPLES])}{' …' if len(ids) > EXAMPLES else ''}")
        return "\n".join(lines)


def compare(
    expected: Mapping[str, Decision],
    consumed: Iterable[Decision],
    same: Callable[[Decision, Decision], bool] = operator.eq,
    noun: str = "decisions",
) -> Comparison:
    """Compare decisions, each a mapping with ``id``, with the expected ones by id.

    Args:
        expected: those that are due, by id.
        consumed: those that came.
        same: whether two of them say the same.
        noun: what they are called.
    """
    copies: dict[str, list[Decision]] = {}
    for decision in consumed:
        copies.setdefault(str(decision.get("id")), []).append(decision)
    wrong = tuple(i for i, found in copies.items() if i in expected and not all(same(c, expected[i]) for c in found))
    missing = tuple(i for i in expected if i not in copies)
    total = sum(len(found) for found in copies.values())
    return Comparison(
        expected=len(expected),
        consumed=total,
        correct=len(expected) - len(missing) - len(wrong),
        missing=missing,
        wrong=wrong,
        unexpected=tuple(i for i in copies if i not in expected),
        duplicates=total - len(copies),
        noun=noun,
    )


class TopicReader:
    """Reads a topic of JSON records from its beginning, outside any consumer group's bookkeeping.

    Raises:
        KafkaException: from every method, if the broker cannot be reached or the topic does not exist.
    """

    def __init__(self, brokers: str, topic: str, timeout: float = 30.0) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": brokers, "group.id": f"tidegate-{uuid.uuid4()}", "enable.auto.commit": False}
        )
        metadata = self._consumer.list_topics(topic, timeout).topics[topic]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        self._partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in metadata.partitions]
        self._consumer.assign(self._partitions)
        self._timeout = timeout

    def poll(self, seconds: float) -> list[dict[str, Any]]:
        """Return the records that have arrived, after waiting at most ``seconds`` for the first."""
        messages = self._consumer.consume(num_messages=10_000, timeout=seconds)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        return [json.loads(message.value() or b"null") for message in messages]

    def to_the_end(self) -> Iterator[dict[str, Any]]:
        """Yield all records up to the end that the topic has now."""
        deadline = time.monotonic() + self._timeout
        ends = {p.partition: self._consumer.get_watermark_offsets(p, self._timeout)[1] for p in self._partitions}
        while any(p.offset < ends[p.partition] for p in self._consumer.position(self._partitions)) and any(
            ends.values()
        ):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the end of the topic was not reached within {self._timeout:.0f} s")
            yield from self.poll(0.2)

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()


def read_topic(brokers: str, topic: str) -> list[dict[str, Any]]:
    """Return all records of a topic of JSON records."""
    reader = TopicReader(brokers, topic)
    try:
        return list(reader.to_the_end())
    finally:
        reader.close()


def main() -> int:
    """Compare the decisions of a topic with those due for a replay; 0 if they agree."""
    parser = argparse.ArgumentParser(prog="python -m devcluster.demo.compare", description=main.__doc__)
    parser.add_argument("--brokers", required=True, help="Kafka bootstrap servers: host:port[,host:port]")
    parser.add_argument("--decisions", default="decisions", help="topic (default: %(default)s)")
    parser.add_argument(
        "--readings", type=int, default=Scenario.readings, help="as in the replay (default: %(default)s)"
    )
    options = parser.parse_args()
    expected = expected_decisions(Scenario(readings=options.readings).records())
    comparison = compare(expected, read_topic(options.brokers, options.decisions))
    print(comparison.report())
    return 0 if comparison.ok else 1


if __name__ == "__main__":
    sys.exit(main())
