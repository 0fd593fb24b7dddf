"""A real queue keeps the contract."""

import json

import pytest

from devcluster.site import LocalSite
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.ports import ChannelError, Reply
from tidegate_testing.channel_contract import Application, ChannelContract, Scene, messages, opened, received, until
from tidegate_testing.channels import event
from tidegate_testing.rabbitmq_scene import RabbitScene


class TestRabbitMQ(ChannelContract):
    @pytest.fixture(params=[pytest.param("classic", marks=pytest.mark.long), "quorum"])
    def scene(self, request: pytest.FixtureRequest, rabbitmq_site: LocalSite) -> Scene:
        return RabbitScene(rabbitmq_site, request.param)

    def test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(
        self, scene: Scene, application: Application
    ) -> None:
        super().test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(scene, application)

    # What waits is the same for each channel, and that the broker's client notices is tested by itself. A quorum queue
    # that was made just before the broker was killed confirms no reply for a minute after it: RabbitMQ's own time.
    @pytest.mark.long
    def test_an_application_waits_for_its_broker_and_says_so(self, scene: Scene, application: Application) -> None:
        super().test_an_application_waits_for_its_broker_and_says_so(scene, application)


@pytest.fixture
def queue(rabbitmq_site: LocalSite) -> RabbitScene:
    return RabbitScene(rabbitmq_site)


def test_a_second_reader_is_told_to_wait_and_reads_when_the_first_one_is_gone(queue: RabbitScene) -> None:
    with opened(queue):
        second = queue.channel()
        with pytest.raises(ChannelError) as raised:
            second.open({})
        second.close()
        assert raised.value.reason == Reason.CHANNEL_IN_USE
    queue.send(event())
    with opened(queue) as channel:
        assert len(messages(received(channel, 1))) == 1


def test_a_queue_that_is_removed_is_noticed(queue: RabbitScene) -> None:
    with opened(queue) as channel:
        with queue.connection() as connection:
            connection.channel().queue_delete(queue.queue)
        with pytest.raises(ChannelError) as raised:
            received(channel, 1)
        assert raised.value.reason == Reason.CHANNEL_MISSING


def test_a_reply_that_finds_no_queue_is_no_reply_and_messages_come_all_the_same(queue: RabbitScene) -> None:
    with queue.connection() as connection:
        connection.channel().queue_delete(queue.reply_queue)
    with opened(queue) as channel:
        with pytest.raises(ChannelError) as raised:
            channel.answer([Reply("1", b"{}")])
        assert raised.value.reason == Reason.CHANNEL_MISSING
        queue.send(event())
        assert len(messages(received(channel, 1))) == 1


def test_more_messages_than_are_delivered_at_once_come_as_they_are_taken(queue: RabbitScene) -> None:
    with queue.connection() as connection:
        sending = connection.channel()
        for number in range(250):
            sending.basic_publish("", queue.queue, event(str(number)))
    found: list[str] = []
    with opened(queue) as channel:
        while len(found) < 250:
            delivery = channel.receive(5)
            found += [json.loads(message.body)["id"] for message in delivery.messages]
            channel.taken(delivery)
    assert found == [str(number) for number in range(250)]
    with queue.connection() as connection:
        counting = connection.channel()
        until(lambda: counting.queue_declare(queue.queue, passive=True).method.message_count == 0)
