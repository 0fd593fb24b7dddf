"""A Kafka broker of the tests' own on 127.0.0.1, and the Spark image's jars with which Spark talks to it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from devcluster import kafka
from devcluster.site import LocalSite
from tidegate_testing import spark_jars


@pytest.fixture(scope="session")
def connector_jars() -> Sequence[Path]:
    return sorted(spark_jars.fetched("kafka").glob("*.jar"))


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host
