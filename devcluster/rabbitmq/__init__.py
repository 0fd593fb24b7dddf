"""The RabbitMQ broker of a cluster."""

from devcluster.rabbitmq.broker import create_queue, down, parameters, start, stop, up

__all__ = ["create_queue", "down", "parameters", "start", "stop", "up"]
