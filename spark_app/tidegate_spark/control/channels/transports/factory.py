"""Makes the channel of an application's configuration. Asks the JVM for Kafka's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate_spark.contract.control_protocol import ChannelSettings
from tidegate_spark.control.channels.ports import Channel
from tidegate_spark.control.channels.transports.credentials import ChannelSecret, read_secret


def kind_of(settings: ChannelSettings) -> str:
    """Return what the broker is called."""
    if settings.storage is not None:
        return "Storage"
    return "Kafka" if settings.kafka is not None else "RabbitMQ"


def answers(settings: ChannelSettings) -> bool:
    """Return whether there are replies to messages."""
    if settings.storage is not None:
        return settings.storage.keep_replies_seconds > 0
    if settings.kafka is not None:
        return bool(settings.kafka.reply_topic)
    return settings.rabbitmq is not None and bool(settings.rabbitmq.reply_queue)


def make_channel(
    settings: ChannelSettings, directory: str, name: str, jvm: Any, keep_secret: Callable[..., None]
) -> Channel:
    """Return a broker's channel that is not open yet, with the credentials of the moment.

    Args:
        settings: which it is.
        directory: where its Secret is mounted.
        name: what the broker calls who reads.
        jvm: py4j's view of the driver's JVM.
        keep_secret: called with values that must not be shown.

    Raises:
        ChannelError: its Secret is not there.
    """
    secret: ChannelSecret = read_secret(directory, settings.credentials_secret)
    keep_secret(*secret.secrets)
    # Each of the two libraries is loaded by whom it is for.
    if settings.kafka is not None:
        from tidegate_spark.control.channels.transports.kafka import KafkaChannel  # noqa: PLC0415

        return KafkaChannel(settings.kafka, secret, jvm)
    from tidegate_spark.control.channels.transports.rabbitmq import RabbitChannel  # noqa: PLC0415

    assert settings.rabbitmq is not None
    return RabbitChannel(settings.rabbitmq, secret, name)
