"""The part of the spec about control messages: the channel and models. No I/O."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from tidegate.api.references import LocalReference
from tidegate.api.values.quantity import Quantity


class ChannelType(StrEnum):
    """Where control messages come from beside ControlMessages."""

    STORAGE = "Storage"
    """From the inbox in the application's storage, if the channel has one; otherwise from nowhere else."""
    KAFKA = "Kafka"
    RABBITMQ = "RabbitMQ"


class StartingOffsets(StrEnum):
    """Where a topic is read from that was not read before."""

    EARLIEST = "Earliest"
    LATEST = "Latest"


class KafkaChannel(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topic; without ``reply_topic``, senders get no replies."""

    bootstrap_servers: str = ""
    topic: str = ""
    reply_topic: str = ""
    starting_offsets: StartingOffsets = StartingOffsets.EARLIEST
    options: dict[str, str] = field(default_factory=dict)


class RabbitMQChannel(Struct, frozen=True, kw_only=True, rename="camel"):
    """A queue; without ``reply_queue``, senders get no replies."""

    uri: str = ""
    queue: str = ""
    reply_queue: str = ""


class StorageChannel(Struct, frozen=True, kw_only=True, rename="camel"):
    """The inbox in the application's storage; with ``reply_retention_seconds`` 0 senders get no results."""

    poll_interval_seconds: int = 1
    reply_retention_seconds: int = 86400


class ChannelSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The one of its type is there, and no other; an inbox only if asked for. No ``allowed_types``: any may be sent."""

    type: ChannelType = ChannelType.STORAGE
    kafka: KafkaChannel | None = None
    rabbitmq: RabbitMQChannel | None = None
    storage: StorageChannel | None = None
    credentials_secret_ref: LocalReference | None = None
    allowed_types: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether messages come from anywhere but ControlMessages."""
        return self.type is not ChannelType.STORAGE or self.storage is not None


class ModelsSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What ``reload-model`` may name; ``allowed_prefixes`` left out: the application's own files."""

    allowed_prefixes: tuple[str, ...] | None = None
    size_limit: Quantity = "2Gi"


class ControlSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """ControlMessages of the application; ``retention_seconds`` is for how long those stay that have ended."""

    retention_seconds: int = 86400
    message_timeout_seconds: int = 60
    models: ModelsSpec = ModelsSpec()
    channel: ChannelSpec = ChannelSpec()
