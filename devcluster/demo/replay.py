"""Replay a scenario into Kafka: settings and readings, each confirmed by the broker. Talks to Kafka.

The order that the sample asks of its producers is kept here: a sensor's records have the sensor as key and go out in
order of time, and before a reading goes out the broker has confirmed every setting that is not newer.

``python -m devcluster.demo.replay --help``
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.progress import MofNCompleteColumn, Progress

from devcluster.demo.scenario import Reading, Record, Scenario, Setting, encode
from devcluster.demo.setting_messages import SettingMessages

CONFIRM_SECONDS = 60.0


@dataclass(frozen=True)
class Sent:
    """What the broker has confirmed, or the log of control messages."""

    readings: int
    settings: int
    seconds: float


class Replay:
    """One replay through one producer.

    Raises:
        KafkaException: if the broker refuses a record or does not confirm it in time.
        RuntimeError, TimeoutError: likewise of a control message.
    """

    def __init__(self, brokers: str, readings_topic: str, settings: str | SettingMessages) -> None:
        """Send readings to a topic, and settings to another one or as control messages."""
        self._readings, self._settings = readings_topic, settings
        # Idempotent: a retry after a lost acknowledgement makes no second record and changes no order.
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "enable.idempotence": True,
                "acks": "all",
                "log_level": 3,  # its warnings are of things that it retries; what fails is raised here
                "linger.ms": 5,
                "delivery.timeout.ms": int(CONFIRM_SECONDS * 1000),
            }
        )
        self._refused: KafkaError | None = None
        self._confirmed = {Reading: 0, Setting: 0}

    def run(
        self,
        records: Iterable[Record],
        *,
        ready: Callable[[], None] = lambda: None,
        progress: Callable[[int], None] = lambda _readings: None,
        rate: float = 0.0,
    ) -> Sent:
        """Send all records and return when all are confirmed.

        ``ready`` is called once, before the first reading, when the settings before it are confirmed; it returns when
        the query has fixed its starting offsets (any batch committed), or raises. A reading sent earlier would be
        older than the query's "latest" and never be seen. ``progress`` is called with the number of confirmed
        readings. ``rate`` is in readings per second; 0 is as fast as the broker confirms.
        """
        started, waited, sent = time.monotonic(), False, 0
        previous: Record | None = None
        for record in records:
            if isinstance(record, Reading):
                if isinstance(previous, Setting):
                    self.confirm()
                if not waited:
                    ready()
                    started, waited = time.monotonic(), True
                sent += 1
            if previous is not None and record.time > previous.time:
                progress(self._confirmed[Reading])
                _pace(started, sent, rate)
            self._send(record)
            previous = record
        self.confirm()
        progress(self._confirmed[Reading])
        return Sent(self._confirmed[Reading], self._confirmed[Setting], time.monotonic() - started)

    def confirm(self) -> None:
        """Wait until everything sent so far is confirmed."""
        if isinstance(self._settings, SettingMessages):
            self._confirmed[Setting] += self._settings.publish()
        waiting = self._producer.flush(CONFIRM_SECONDS)
        if self._refused is not None:
            raise KafkaException(self._refused)
        if waiting:
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, f"{waiting} records not confirmed within {CONFIRM_SECONDS:.0f} s")
            )

    def _send(self, record: Record) -> None:
        if isinstance(record, Reading):
            self._produce(record, self._readings)
        elif isinstance(self._settings, SettingMessages):
            self._settings.hold(record)
        else:
            self._produce(record, self._settings)

    def _produce(self, record: Record, topic: str) -> None:
        kind = type(record)

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self._confirmed[kind] += 1
            else:
                self._refused = error

        while True:
            try:
                self._producer.produce(topic, encode(record), key=record.sensor, on_delivery=delivered)
                break
            except BufferError:  # the client's queue is full; confirm() is bounded and raises if nothing moves
                self.confirm()
        self._producer.poll(0)


def _pace(started: float, sent: int, rate: float) -> None:
    """Wait until ``sent`` readings are due."""
    if rate > 0:
        time.sleep(max(0.0, started + sent / rate - time.monotonic()))


def create_topics(brokers: str, partitions: dict[str, int], timeout: float = 30.0) -> None:
    """Create the topics that do not exist, with so many partitions each."""
    admin = AdminClient({"bootstrap.servers": brokers})
    wanted = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in partitions.items()]
    for future in admin.create_topics(wanted, operation_timeout=timeout).values():
        try:
            future.result(timeout)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def delete_topics(brokers: str, topics: Iterable[str], timeout: float = 30.0) -> None:
    """Delete topics with their records, those that exist; return when they are gone from the broker's metadata."""
    admin = AdminClient({"bootstrap.servers": brokers})
    topics = list(topics)
    for future in admin.delete_topics(topics, operation_timeout=timeout).values():
        try:
            future.result(timeout)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    deadline = time.monotonic() + timeout
    while set(topics) & set(admin.list_topics(timeout=timeout).topics):
        if time.monotonic() > deadline:
            raise TimeoutError(f"topics {', '.join(topics)} are still there {timeout:.0f} s after their deletion")
        time.sleep(0.1)


def wait_for(command: str, patience: float) -> Callable[[], None]:
    """Return a function that runs a shell command until it succeeds; after ``patience`` seconds it raises."""

    def ready() -> None:
        deadline = time.monotonic() + patience
        while subprocess.run(command, shell=True, check=False, stdout=subprocess.DEVNULL).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError(f"still failing after {patience:.0f} s: {command}")
            time.sleep(1.0)

    return ready


def main() -> int:
    """Replay hourly temperatures of Seattle and San Francisco, with settings along the way, into Kafka."""
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.demo.replay",
        description=main.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    brokers = "Kafka bootstrap servers: host:port[,host:port]"
    parser.add_argument("--brokers", required=True, default=argparse.SUPPRESS, help=brokers)
    parser.add_argument("--readings-topic", default="readings", help="topic of readings")
    parser.add_argument("--settings-topic", default="settings", help="topic of settings")
    parser.add_argument("--partitions", type=int, default=4, help="partitions of a topic that does not exist yet")
    parser.add_argument("--readings", type=int, default=Scenario.readings, help="how many readings to send")
    parser.add_argument("--rate", type=float, default=0.0, help="readings per second; 0: as fast as confirmed")
    parser.add_argument(
        "--after",
        metavar="COMMAND",
        default="true",
        help="shell command that succeeds once the query has committed a batch; readings are sent only then",
    )
    parser.add_argument("--patience", type=float, default=300.0, help="seconds to wait for that command to succeed")
    options = parser.parse_args()
    try:
        scenario = Scenario(readings=options.readings)
        create_topics(
            options.brokers, dict.fromkeys((options.readings_topic, options.settings_topic), options.partitions)
        )
        replay = Replay(options.brokers, options.readings_topic, options.settings_topic)
        with Progress(*Progress.get_default_columns(), MofNCompleteColumn()) as bar:
            task = bar.add_task("readings", total=options.readings)
            sent = replay.run(
                scenario.records(),
                ready=wait_for(options.after, options.patience),
                progress=lambda done: bar.update(task, completed=done),
                rate=options.rate,
            )
    except (ValueError, TimeoutError, KafkaException) as error:
        print(f"replay: {error}", file=sys.stderr)
        return 1
    print(f"{sent.readings:,} readings and {sent.settings:,} settings confirmed in {sent.seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
