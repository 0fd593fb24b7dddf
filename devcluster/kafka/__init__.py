"""The Kafka broker of a cluster: one node, KRaft."""

from devcluster.kafka.broker import create_topic, down, start, stop, topics, up

__all__ = ["create_topic", "down", "start", "stop", "topics", "up"]
