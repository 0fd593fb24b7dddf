"""A Kafka broker of the tests' own on 127.0.0.1, and what tests of drivers have."""

from collections.abc import Iterator

import pytest

from devcluster import kafka
from devcluster.site import LocalSite
from tests.integration.spark_runtime.conftest import bucket, jars, object_store, place, start_driver, warm_jvms

__all__ = ("bucket", "jars", "object_store", "place", "start_driver", "warm_jvms")


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host
