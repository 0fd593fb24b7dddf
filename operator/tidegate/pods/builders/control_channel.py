"""The part of the driver's pod for control messages: settings, and a channel with its Secret. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.control_spec import ChannelSpec, StartingOffsets
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods.builders.pod_parts import mount_optional_secret
from tidegate_spark.contract.control_protocol import (
    CHANNEL_CREDENTIALS_DIRECTORY,
    ChannelSettings,
    ControlSettings,
    InboxSettings,
    KafkaSettings,
    ModelSettings,
    RabbitSettings,
)
from tidegate_spark.contract.protocol import Storage

_VOLUME = "tidegate-control-credentials"


def channel_settings(app: StreamingApp) -> ChannelSettings | None:
    """Return what the driver is to know of the application's channel, None if it has none but ControlMessages."""
    channel = app.spec.control.channel
    if channel.kafka is None and channel.rabbitmq is None and channel.storage is None:
        return None
    return ChannelSettings(
        _kafka(channel), _rabbitmq(channel), _secret(channel), _storage(channel), channel.allowed_types
    )


def control_settings(app: StreamingApp, place: Storage) -> ControlSettings:
    """Return how the driver is to carry out control messages, whatever way they come.

    Args:
        app: the application.
        place: its storage, from which models may come if the spec does not say from where.

    Raises:
        SpecError: the limit is no quantity.
    """
    control = app.spec.control
    prefixes = control.models.allowed_prefixes
    return ControlSettings(
        models=ModelSettings(
            # Said here, because a rehearsal's storage is but a part of the application's.
            allowed_prefixes=(f"{place.uri}/",) if prefixes is None else prefixes,
            size_limit=int(parse_quantity("spec.control.models.sizeLimit", control.models.size_limit)),
        ),
        message_timeout_seconds=float(control.message_timeout_seconds),
    )


def mount_credentials(spec: dict[str, Any], app: StreamingApp) -> None:
    """Give a pod the Secret of the channel, if it has one; optional, since whoever waits for it reports that."""
    secret = _secret(app.spec.control.channel)
    if not secret:
        return
    mount_optional_secret(spec, secret, _VOLUME, CHANNEL_CREDENTIALS_DIRECTORY)


def _secret(channel: ChannelSpec) -> str:
    return channel.credentials_secret_ref.name if channel.credentials_secret_ref is not None else ""


def _kafka(channel: ChannelSpec) -> KafkaSettings | None:
    kafka = channel.kafka
    if kafka is None:
        return None
    return KafkaSettings(
        bootstrap_servers=kafka.bootstrap_servers,
        topic=kafka.topic,
        reply_topic=kafka.reply_topic,
        from_latest=kafka.starting_offsets is StartingOffsets.LATEST,
        options=dict(kafka.options),
    )


def _rabbitmq(channel: ChannelSpec) -> RabbitSettings | None:
    rabbit = channel.rabbitmq
    return RabbitSettings(rabbit.uri, rabbit.queue, rabbit.reply_queue) if rabbit is not None else None


def _storage(channel: ChannelSpec) -> InboxSettings | None:
    storage = channel.storage
    if storage is None:
        return None
    return InboxSettings(float(storage.poll_interval_seconds), float(storage.reply_retention_seconds))
