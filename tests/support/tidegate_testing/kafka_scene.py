"""A topic of a real Kafka, as a producer and a driver see it."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from devcluster import kafka
from devcluster.site import Site
from tidegate_spark.contract.control_protocol import ChannelSettings, KafkaSettings
from tidegate_spark.control.channels.ports import Channel
from tidegate_spark.control.channels.transports.credentials import PASSWORD, USERNAME, ChannelSecret
from tidegate_spark.control.channels.transports.kafka import KafkaChannel

_numbers = itertools.count(1)


class KafkaScene:
    """See :class:`Scene`; a topic of its own, with one partition."""

    replays = True
    has_content_types = True

    def __init__(self, site: Site, jvm: Any) -> None:
        self.site, self.jvm = site, jvm
        self.topic = f"control-{next(_numbers)}"
        self.reply_topic = f"{self.topic}-replies"
        for name in (self.topic, self.reply_topic):
            kafka.create_topic(site.kafka_host, name, partitions=1)
        self._producers: dict[str, Producer] = {}

    def send(self, body: bytes, content_type: str = "", partition: int = 0, compression: str = "none") -> None:
        producer = self._producer(compression)
        headers: dict[str, str | bytes | None] = {"content-type": content_type.encode()} if content_type else {}
        producer.produce(self.topic, body, partition=partition, headers=headers)
        assert producer.flush(60) == 0

    def create_again(self) -> None:
        """Make the topic again, after its end."""
        kafka.create_topic(self.site.kafka_host, self.topic, partitions=1)
        self._producers.clear()  # they count messages of the topic that was there before

    @contextmanager
    def transaction(self, *, commits: bool) -> Iterator[Callable[[bytes], None]]:
        """Return how to write messages that are there together once this is left, or never."""
        producer = Producer({"bootstrap.servers": self.site.kafka_host, "transactional.id": self.topic})
        producer.init_transactions(60)
        producer.begin_transaction()

        def write(body: bytes) -> None:
            producer.produce(self.topic, body, partition=0)
            assert producer.flush(60) == 0

        yield write
        end = producer.commit_transaction if commits else producer.abort_transaction
        end(60)

    def _producer(self, compression: str) -> Producer:
        """Return the one that writes so: each new one takes most of a second before its first message."""
        if compression not in self._producers:
            reported = {"bootstrap.servers": self.site.kafka_host, "enable.idempotence": True}
            self._producers[compression] = Producer({**reported, "compression.type": compression})
        return self._producers[compression]

    def replies(self) -> list[dict[str, Any]]:
        consumer = Consumer(
            {"bootstrap.servers": self.site.kafka_host, "group.id": "test", "enable.auto.commit": False}
        )
        try:
            part = TopicPartition(self.reply_topic, 0, 0)
            _, end = consumer.get_watermark_offsets(part, timeout=30)
            consumer.assign([part])
            found: list[dict[str, Any]] = []
            while len(found) < end:
                record = consumer.poll(30)
                assert record is not None
                assert record.error() is None
                found.append(json.loads(record.value() or b""))
            return found
        finally:
            consumer.close()

    def settings(self, **more: Any) -> KafkaSettings:
        reported = {"bootstrap_servers": self.site.kafka_host, "topic": self.topic, "reply_topic": self.reply_topic}
        return KafkaSettings(**{**reported, **more})

    def channel(self, *, password: str = "", name: str = "") -> Channel:
        at, keys = self.site.listeners, self.site.s3_keys
        settings = self.settings(
            bootstrap_servers=f"{at.host}:{at.kafka_sasl}",
            options={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            **({"topic": name} if name else {}),
        )
        values = ((USERNAME, keys.access_key), (PASSWORD, password or keys.secret_key))
        return KafkaChannel(settings, ChannelSecret("", values), self.jvm)

    def channel_settings(self) -> ChannelSettings:
        """Return what a driver is told of it; its Secret holds the S3 server's keys."""
        at = self.site.listeners
        options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        settings = self.settings(bootstrap_servers=f"{at.host}:{at.kafka_sasl}", options=options)
        return ChannelSettings(kafka=settings, credentials_secret="broker")

    def stop(self) -> None:
        kafka.stop(self.site, grace=0)

    def start(self) -> None:
        kafka.start(self.site)
