"""A queue of a real RabbitMQ, as a producer and a driver see it."""

import itertools
import json
from typing import Any

import pika

from devcluster import rabbitmq
from devcluster.site import Site
from tidegate_spark.contract.control_protocol import ChannelSettings, RabbitSettings
from tidegate_spark.control.channels.transports.credentials import PASSWORD, USERNAME, ChannelSecret
from tidegate_spark.control.channels.transports.rabbitmq import RabbitChannel

_numbers = itertools.count(1)


class RabbitScene:
    """See :class:`Scene`; a queue of its own."""

    replays = False
    has_content_types = True

    def __init__(self, site: Site, kind: str = "classic") -> None:
        self.site = site
        self.queue = f"control-{next(_numbers)}"
        self.reply_queue = f"{self.queue}-replies"
        with self.connection() as connection:
            for name in (self.queue, self.reply_queue):
                connection.channel().queue_declare(name, durable=True, arguments={"x-queue-type": kind})

    def connection(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(rabbitmq.parameters(self.site.rabbitmq_host, self.site.s3_keys))

    def send(self, body: bytes, content_type: str = "") -> None:
        with self.connection() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            properties = pika.BasicProperties(content_type=content_type or None, delivery_mode=2)
            channel.basic_publish("", self.queue, body, properties, mandatory=True)

    def replies(self) -> list[dict[str, Any]]:
        with self.connection() as connection:
            channel = connection.channel()
            found: list[dict[str, Any]] = []
            while True:
                # What is not acknowledged is back in the queue when the connection is closed.
                method, _, body = channel.basic_get(self.reply_queue)
                if method is None:
                    return found
                found.append(json.loads(body))

    def channel(self, *, password: str = "", name: str = "") -> RabbitChannel:
        keys = self.site.s3_keys
        values = ((USERNAME, keys.access_key), (PASSWORD, password or keys.secret_key))
        settings = RabbitSettings(f"amqp://{self.site.rabbitmq_host}", name or self.queue, self.reply_queue)
        return RabbitChannel(settings, ChannelSecret("", values))

    def channel_settings(self) -> ChannelSettings:
        """Return what a driver is told of it; its Secret holds the S3 server's keys."""
        settings = RabbitSettings(f"amqp://{self.site.rabbitmq_host}", self.queue, self.reply_queue)
        return ChannelSettings(rabbitmq=settings, credentials_secret="broker")

    def stop(self) -> None:
        rabbitmq.stop(self.site, grace=0)

    def start(self) -> None:
        rabbitmq.start(self.site)
