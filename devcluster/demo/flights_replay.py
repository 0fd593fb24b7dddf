"""Replay the flights into Kafka, each record confirmed by the broker. Talks to Kafka.

The order that the sample asks of its producers is kept here: a carrier's records have the carrier as key, go out in
their order, and each landing once.

``python -m devcluster.demo.flights_replay --help``
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from rich.progress import MofNCompleteColumn, Progress

from devcluster.demo.flights_data import LANDED, LEFT, Record, encode, records
from devcluster.demo.replay import CONFIRM_SECONDS, create_topics

REPORT_EACH = 500
"""Records after which progress is shown."""
AT_ONCE_SECONDS = 0.05
"""How long the records take by a rate that are sent at once: shorter than any batch, so that each batch has some."""


class FlightReplay:
    """Replays through one producer.

    Raises:
        KafkaException: if the broker refuses a record or does not confirm it in time.
    """

    def __init__(self, brokers: str, topic: str) -> None:
        self._topic = topic
        # Idempotent: a retry after a lost acknowledgement makes no second record and changes no order.
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "enable.idempotence": True,
                "acks": "all",
                "log_level": 3,  # its warnings are of things that it retries; what fails is raised here
                "linger.ms": 20,
                "delivery.timeout.ms": int(CONFIRM_SECONDS * 1000),
            }
        )
        self._refused: KafkaError | None = None
        self._confirmed = 0

    def run(
        self, sent: Iterable[Record], progress: Callable[[int], None] = lambda confirmed: None, rate: float = 0.0
    ) -> int:
        """Send records and return, when all are confirmed, how many there were.

        ``progress`` is called with how many are confirmed; it may take its time. ``rate`` is in records per second; 0
        is as fast as the broker confirms.
        """
        self._confirmed, due = 0, time.monotonic()
        at_once = max(1, round(rate * AT_ONCE_SECONDS))
        for number, record in enumerate(sent):
            if not number % REPORT_EACH:
                progress(self._confirmed)
            if rate > 0 and not number % at_once:
                # From here on, if it is late: what was waited for is not made up for by a burst.
                due = max(due, time.monotonic() - 1.0)
                time.sleep(max(0.0, due - time.monotonic()))
                due += at_once / rate
            self._send(record)
        self.confirm()
        progress(self._confirmed)
        return self._confirmed

    def confirm(self) -> None:
        """Wait until the broker has confirmed everything sent so far."""
        waiting = self._producer.flush(CONFIRM_SECONDS)
        if self._refused is not None:
            raise KafkaException(self._refused)
        if waiting:
            late = f"{waiting} records not confirmed within {CONFIRM_SECONDS:.0f} s"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, late))

    def _send(self, record: Record) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic, encode(record), key=record.flight.carrier, on_delivery=self._delivered
                )
                break
            except BufferError:  # the client's queue is full; confirm() is bounded and raises if nothing moves
                self.confirm()
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._confirmed += 1
        else:
            self._refused = error


def main() -> int:
    """Replay flights from New York in 2013, as they left and landed, into Kafka."""
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.demo.flights_replay",
        description=main.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    brokers = "Kafka bootstrap servers: host:port[,host:port]"
    parser.add_argument("--brokers", required=True, default=argparse.SUPPRESS, help=brokers)
    parser.add_argument("--topic", default="flights", help="topic of flights")
    parser.add_argument("--partitions", type=int, default=4, help="partitions of a topic that does not exist yet")
    parser.add_argument("--departures", type=int, default=LEFT, help="how many flights leave, from New Year on")
    parser.add_argument("--rate", type=float, default=0.0, help="records per second; 0: as fast as confirmed")
    options = parser.parse_args()
    try:
        create_topics(options.brokers, {options.topic: options.partitions})
        replay = FlightReplay(options.brokers, options.topic)
        with Progress(*Progress.get_default_columns(), MofNCompleteColumn()) as bar:
            # Nearly all of them land before the last one leaves.
            task = bar.add_task("records", total=options.departures * (LEFT + LANDED) // LEFT)
            confirmed = replay.run(
                records(options.departures), lambda done: bar.update(task, completed=done), options.rate
            )
    except (ValueError, TimeoutError, KafkaException) as error:
        print(f"flights_replay: {error}", file=sys.stderr)
        return 1
    print(f"{confirmed:,} records confirmed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
