"""A real topic keeps the contract, by the clients that drivers have."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from devcluster import kafka
from devcluster.site import LocalSite
from tidegate_spark.control.channels.credentials import PASSWORD, USERNAME, ChannelSecret
from tidegate_spark.control.channels.kafka import KafkaChannel
from tidegate_spark.control.channels.ports import MISCONFIGURED, UNAVAILABLE, Channel, ChannelError
from tidegate_spark.control_protocol import KafkaSettings
from tidegate_testing.channel_contract import ChannelContract, Scene, messages, opened, received, until
from tidegate_testing.channels import event

_numbers = itertools.count(1)


class KafkaScene:
    """See :class:`Scene`; a topic of its own, with one partition."""

    replays = True

    def __init__(self, site: LocalSite, jvm: Any) -> None:
        self.site, self.jvm = site, jvm
        self.topic = f"control-{next(_numbers)}"
        self.reply_topic = f"{self.topic}-replies"
        for name in (self.topic, self.reply_topic):
            kafka.create_topic(site.kafka_host, name, partitions=1)

    def send(self, body: bytes, content_type: str = "", partition: int = 0, **settings: Any) -> None:
        producer = Producer({"bootstrap.servers": self.site.kafka_host, "enable.idempotence": True, **settings})
        headers = [("content-type", content_type.encode())] if content_type else None
        producer.produce(self.topic, body, partition=partition, headers=headers)
        assert producer.flush(60) == 0

    def replies(self) -> list[dict[str, Any]]:
        consumer = Consumer({"bootstrap.servers": self.site.kafka_host, "group.id": "test", "enable.auto.commit": False})
        try:
            part = TopicPartition(self.reply_topic, 0, 0)
            _, end = consumer.get_watermark_offsets(part, timeout=30)
            consumer.assign([part])
            found: list[dict[str, Any]] = []
            while len(found) < end:
                record = consumer.poll(30)
                assert record is not None
                assert record.error() is None
                found.append(json.loads(record.value()))
            return found
        finally:
            consumer.close()

    def settings(self, **more: Any) -> KafkaSettings:
        told = {"bootstrap_servers": self.site.kafka_host, "topic": self.topic, "reply_topic": self.reply_topic}
        return KafkaSettings(**{**told, **more})

    def channel(self, *, password: str = "", name: str = "") -> Channel:
        at, keys = self.site.listeners, self.site.s3_keys
        settings = self.settings(
            bootstrap_servers=f"{at.host}:{at.kafka_sasl}",
            options={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            **({"topic": name} if name else {}),
        )
        values = ((USERNAME, keys.access_key), (PASSWORD, password or keys.secret_key))
        return KafkaChannel(settings, ChannelSecret("", values), self.jvm)

    def stop(self) -> None:
        kafka.stop(self.site, grace=0)

    def start(self) -> None:
        kafka.start(self.site)


class TestKafka(ChannelContract):
    @pytest.fixture
    def scene(self, kafka_site: LocalSite, jvm: Any) -> Iterator[Scene]:
        yield KafkaScene(kafka_site, jvm)


@pytest.fixture
def topic(kafka_site: LocalSite, jvm: Any) -> KafkaScene:
    return KafkaScene(kafka_site, jvm)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_messages_are_read_however_their_producer_compresses_them(topic: KafkaScene, codec: str) -> None:
    topic.send(event(data={"a": "x" * 5000}), **{"compression.type": codec})
    with opened(topic) as channel:
        assert messages(received(channel, 1))[0].body == event(data={"a": "x" * 5000})


def test_latest_is_a_place_once_it_was_looked_at(topic: KafkaScene) -> None:
    topic.send(event("before"))
    first = KafkaChannel(topic.settings(from_latest=True), ChannelSecret(), topic.jvm)
    begun = first.open({})
    first.close()
    topic.send(event("while nobody reads"))
    again = KafkaChannel(topic.settings(from_latest=True), ChannelSecret(), topic.jvm)
    again.open(begun.positions)
    assert [message.body for message in messages(received(again, 1))] == [event("while nobody reads")]
    again.close()


def test_a_topic_that_is_made_anew_is_another_one(topic: KafkaScene) -> None:
    topic.send(event("old"))
    with opened(topic) as channel:
        (old,) = received(channel, 1)
    admin = AdminClient({"bootstrap.servers": topic.site.kafka_host})
    admin.delete_topics([topic.topic], operation_timeout=30)[topic.topic].result()
    until(lambda: topic.topic not in kafka.topics(topic.site.kafka_host), "the topic's end")
    kafka.create_topic(topic.site.kafka_host, topic.topic, partitions=1)
    topic.send(event("new"))
    with opened(topic, old.positions) as channel:
        assert messages(received(channel, 1))[0].body == event("new")


def test_messages_of_all_partitions_are_read(kafka_site: LocalSite, topic: KafkaScene) -> None:
    topic.topic = f"{topic.topic}-wide"
    kafka.create_topic(kafka_site.kafka_host, topic.topic, partitions=3)
    for number in range(6):
        topic.send(event(str(number)), partition=number % 3)
    with opened(topic) as channel:
        deliveries = received(channel, 6)
    positions = {part: at for delivery in deliveries for part, at in delivery.positions.items()}
    assert sorted(positions.values()) == [2, 2, 2]


def test_an_address_that_nobody_knows_may_be_known_later_and_a_setting_that_is_none_will_not(topic: KafkaScene) -> None:
    reasons = []
    for told in ({"bootstrap_servers": "nowhere.invalid:9092"}, {"options": {"security.protocol": "NONSENSE"}}):
        channel = KafkaChannel(topic.settings(**told), ChannelSecret(), topic.jvm)
        with pytest.raises(ChannelError) as raised:
            channel.open({})
        channel.close()
        reasons.append(raised.value.reason)
    assert reasons == [UNAVAILABLE, MISCONFIGURED]
