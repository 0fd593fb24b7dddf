"""A Kafka broker of the tests' own on 127.0.0.1, and the jars with which Spark talks to it."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

CONNECTOR = {
    "spark-sql-kafka-0-10_2.13": ("org.apache.spark", "4.2.0"),
    "spark-token-provider-kafka-0-10_2.13": ("org.apache.spark", "4.0.0"),
    "kafka-clients": ("org.apache.kafka", "3.9.2"),
    "commons-pool2": ("org.apache.commons", "2.12.1"),
}


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.fixture(scope="session")
def connector_jars() -> Sequence[Path]:
    return sorted(Path("/tmp/rt/jars").glob("*kafka*")) + sorted(Path("/tmp/rt/jars").glob("commons-pool2*"))


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    yield "127.0.0.1:19092"
