"""A real topic keeps the contract, by the clients that drivers have."""

from contextlib import closing
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from devcluster import kafka
from devcluster.site import LocalSite
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.ports import ChannelError
from tidegate_spark.control.channels.transports.credentials import ChannelSecret
from tidegate_spark.control.channels.transports.kafka import KafkaChannel
from tidegate_testing.channel_contract import Application, ChannelContract, Scene, messages, opened, received, until
from tidegate_testing.channels import event, reply_to
from tidegate_testing.kafka_scene import KafkaScene


class TestKafka(ChannelContract):
    @pytest.fixture
    def scene(self, kafka_site: LocalSite, jvm: Any) -> Scene:
        return KafkaScene(kafka_site, jvm)

    def test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(
        self, scene: Scene, application: Application
    ) -> None:
        super().test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(scene, application)

    @pytest.mark.long  # what waits is the same for each channel; that the broker's client notices is tested by itself
    def test_an_application_waits_for_its_broker_and_says_so(self, scene: Scene, application: Application) -> None:
        super().test_an_application_waits_for_its_broker_and_says_so(scene, application)


@pytest.fixture
def topic(kafka_site: LocalSite, jvm: Any) -> KafkaScene:
    return KafkaScene(kafka_site, jvm)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_messages_are_read_however_their_producer_compresses_them(topic: KafkaScene, codec: str) -> None:
    topic.send(event(data={"a": "x" * 5000}), compression=codec)
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
    topic.create_again()
    topic.send(event("new"))
    with opened(topic, old.positions) as channel:
        assert messages(received(channel, 1))[0].body == event("new")


def test_what_a_transaction_writes_comes_with_its_end_or_never_and_its_end_is_nothing_that_waits(
    topic: KafkaScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_spark.control.channels.transports.kafka.POLL_SECONDS", 0.0)
    with opened(topic) as channel:
        with topic.transaction(commits=False) as write:
            write(event("never"))
            assert messages([channel.receive(2)]) == []
        with topic.transaction(commits=True) as write:
            write(event("together"))
            write(event("with this"))
            assert messages([channel.receive(2)]) == []
        bodies = [message.body for message in messages(received(channel, 2))]
        # Behind the last message is the end of its transaction, which nobody can read.
        until(lambda: not channel.receive(0.5).messages and channel.waiting() == 0, "nothing that waits")
    assert bodies == [event("together"), event("with this")]


def test_a_reply_too_large_for_its_topic_is_shortened_and_the_others_are_whole(topic: KafkaScene) -> None:
    topic.reply_topic = f"{topic.topic}-small"
    kafka.create_topic(topic.site.kafka_host, topic.reply_topic, partitions=1, config={"max.message.bytes": "1000"})
    # With so much time, the client would write all of them in one batch.
    settings = topic.settings(options={"linger.ms": "300"})
    with closing(KafkaChannel(settings, ChannelSecret(), topic.jvm)) as channel:
        channel.open({})
        channel.answer([reply_to("first"), reply_to("wordy", errors=1000), reply_to("last")])
        channel.answer([reply_to("e" * 2000), reply_to("behind it")])
    found = [(each["subject"], "shortened" in each["data"]) for each in topic.replies()]
    # Those that came before it was refused may be there twice: they are told again, as the same events.
    assert dict(found) == {"first": False, "wordy": True, "last": False, "behind it": False}


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
    for reported in ({"bootstrap_servers": "nowhere.invalid:9092"}, {"options": {"security.protocol": "NONSENSE"}}):
        channel = KafkaChannel(topic.settings(**reported), ChannelSecret(), topic.jvm)
        with pytest.raises(ChannelError) as raised:
            channel.open({})
        channel.close()
        reasons.append(raised.value.reason)
    assert reasons == [Reason.CHANNEL_UNAVAILABLE, Reason.CHANNEL_MISCONFIGURED]
