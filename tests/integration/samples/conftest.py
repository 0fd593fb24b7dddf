"""A Kafka broker of the tests' own on 127.0.0.1."""

from collections.abc import Iterator

import pytest

from devcluster import kafka
from devcluster.site import LocalSite


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host
