"""The applications of the control stream's benchmark, and who sends messages to them. Starts processes, does I/O."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from devcluster import kafka
from tests.bench.control_results import KAFKA, STORAGE, WITH, InForce, Use, in_force, uses_in
from tidegate_spark.contract.control_protocol import (
    CONTROL_COMMAND,
    RELOAD_CONFIG,
    ChannelSettings,
    ControlReport,
    InboxSettings,
)
from tidegate_spark.control_writer import ControlWriter, Credentials
from tidegate_testing.channels import event
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.inbox_scene import replies_in
from tidegate_testing.kafka_scene import KafkaScene
from tidegate_testing.local_apps import LocalApps, until_committed
from tidegate_testing.waiting import wait_for

SCRIPT = Path(__file__).parent / "scripts" / "judging.py"
HEAP_MIB = 1024
LIMIT_SECONDS = 300.0
AT_ONCE = 500
"""Messages of one request, where all are given as fast as they are taken."""


class Sender(Protocol):
    """Sends messages that are numbered from 1, each of which sets :attr:`key` to its number."""

    key: str
    number: int
    """Of the last one that was sent."""
    known: int
    """Up to which number messages are known to be in the log."""

    def send(self, count: int = 1) -> float:
        """Send so many; return when that began, in seconds since the epoch."""

    def finish(self) -> None:
        """Wait until all that was sent is taken."""


class AgentSender:
    """Gives messages to the driver's agent, as the operator does, and has it forget those that are in force.

    It is the way of ControlMessages from the operator on: what an API server and a watch take is not in it.
    """

    key = STORAGE

    def __init__(self, driver: DriverProcess) -> None:
        """Start with the first message."""
        self.number = self.known = self._forgotten = 0
        self._driver = driver

    def send(self, count: int = 1) -> float:
        """Send so many in one request."""
        now = time.time()
        numbers = range(self.number + 1, self.number + count + 1)
        orders = [{"id": f"m{n}", "type": RELOAD_CONFIG, "payload": json.dumps({self.key: n})} for n in numbers]
        # What is not in the log yet must not be forgotten: it would never be.
        forget = [f"m{n}" for n in range(self._forgotten + 1, self.known + 1)]
        answer = self._driver.command("POST", CONTROL_COMMAND, {"messages": orders, "forget": forget})
        assert answer == (202, "{}"), answer
        self.number, self._forgotten = self.number + count, max(self._forgotten, self.known)
        return now

    def finish(self) -> None:
        """Have it forget what it need not know any more."""
        self.send(0)


class InboxSender:
    """Sends messages by the library's writer, as anybody does who may write to the application's storage."""

    key = STORAGE

    def __init__(self, apps: LocalApps, app: str) -> None:
        """Start with the first message."""
        self.number = self.known = 0
        self._repository = apps.repository(app)
        place, keys = apps.place(app), Credentials(apps.store.access_key, apps.store.secret_key)
        self._writer = ControlWriter(
            place.uri, endpoint=place.endpoint, path_style_access=place.path_style_access, credentials=keys
        )

    def send(self, count: int = 1) -> float:
        """Send so many, each by itself."""
        now = time.time()
        for _ in range(count):
            self.number += 1
            # A store that is behind makes the burst a slow one, which counts as not kept up.
            self._writer.send(RELOAD_CONFIG, {self.key: self.number}, wait_seconds=LIMIT_SECONDS)
        return now

    def finish(self) -> None:
        """Wait until the storage has all."""
        self._writer.flush()

    def replies(self) -> int:
        """Return how many messages were told of."""
        return len(replies_in(self._repository))


class KafkaSender:
    """Writes messages to a topic, as anybody does whom the broker lets."""

    key = KAFKA

    def __init__(self, bootstrap: str, topic: str) -> None:
        """Start with the first message."""
        self.number = self.known = 0
        self._topic = topic
        # Not told by it: that the broker is gone, which ends before the producer does.
        quiet = {"log_level": 2}
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0, **quiet})
        # Connections, and which broker has the topic, are looked up at the first use.
        self._producer.list_topics(topic, timeout=30)

    def send(self, count: int = 1) -> float:
        """Send so many, each by itself."""
        now = time.time()
        for _ in range(count):
            self.number += 1
            self._producer.produce(self._topic, event(str(self.number), data={self.key: self.number}), partition=0)
        self._producer.poll(0)
        return now

    def finish(self) -> None:
        """Wait until the broker has all."""
        assert self._producer.flush(60) == 0


INBOX = ChannelSettings(storage=InboxSettings())
"""The inbox as it is where nothing else is said of it."""


class Topic:
    """A topic for control messages, and one for what is told of them."""

    def __init__(self, apps: LocalApps) -> None:
        """Make both."""
        self._scene = KafkaScene(apps.site, None)
        self._bootstrap = apps.site.kafka_host
        self.channel = ChannelSettings(kafka=self._scene.settings())

    def sender(self) -> KafkaSender:
        """Return who writes to it."""
        return KafkaSender(self._bootstrap, self._scene.topic)

    def replies(self) -> int:
        """Return how many messages were told of; one that was told of twice counts twice."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "bench", "enable.auto.commit": False})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(self._scene.reply_topic, 0), timeout=30)
            return int(end)
        finally:
            consumer.close()


def start_kafka(apps: LocalApps) -> None:
    """Have a broker beside the S3 server."""
    kafka.up(apps.site)


class Judging:
    """An application whose pipeline takes part in the control stream."""

    def __init__(self, apps: LocalApps, name: str, rows: int, seconds: float = 0.0, **fields: Any) -> None:
        """Start it: with so many rows in a batch, batches back to back or by a trigger of so many seconds."""
        self._uses = apps.folder / f"{name}-uses"
        self._uses.mkdir()
        trigger = (str(seconds),) if seconds else ()
        arguments = (str(rows), "run", str(self._uses), *trigger)
        self.driver = apps.start(name, SCRIPT, arguments, driver_heap_mib=HEAP_MIB, **fields)
        self.log = apps.commit_log(name, WITH)

    def uses(self) -> list[Use]:
        """Return what tasks found in force until now."""
        return uses_in(line for file in self._uses.iterdir() for line in file.read_text().splitlines())

    def in_force(self, sender: Sender) -> dict[int, InForce]:
        """Return which of a sender's messages are in force, and note that they are."""
        found = in_force(self.uses(), sender.key, sender.number)
        sender.known = max(found, default=0)
        return found

    def control(self) -> ControlReport:
        """Return what the driver says of messages.

        Raises:
            RuntimeError: it ended.
        """
        found = self.driver.report()
        if self.driver.ended():
            raise RuntimeError(f"the driver ended: {self.driver.output[-3000:]}")
        assert found is not None, "no report"
        return found.control

    def until(self, what: str, holds: Callable[[ControlReport], bool], every: float = 0.1) -> None:
        """Wait until it holds of what the driver says."""
        wait_for(what, lambda: holds(self.control()), LIMIT_SECONDS, every)

    def until_connected(self) -> None:
        """Wait until the channel is read."""
        self.until("the channel", lambda reported: reported.channel is not None and reported.channel.connected)

    def until_batch(self, batch: int) -> float:
        """Wait until a batch is committed; return when it was."""
        return until_committed(self.log, batch, LIMIT_SECONDS, self.driver)

    def fill(self, messages: int) -> None:
        """Have so many messages in the log and in force, and nothing more to be said of them."""
        sender = AgentSender(self.driver)
        self.until("an agent", lambda reported: True)
        while sender.number < messages:
            sender.send(min(AT_ONCE, messages - sender.number))
            self.until("the log", lambda reported: reported.last >= sender.number)
            sender.known = sender.number
        self.until("all in force", lambda reported: reported.positions.get(WITH, -1) >= messages, 0.5)
        sender.finish()
