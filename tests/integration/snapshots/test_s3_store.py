"""A real S3 server keeps the contract that snapshots rely on. Runs one on 127.0.0.1."""

import itertools
from collections.abc import Iterator

import pytest

from devcluster import s3
from devcluster.site import LocalSite
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.storage.s3 import MIB, S3Store
from tidegate_spark.storage.s3_client import Credentials, connect
from tidegate_spark.storage.store import ObjectStore
from tidegate_testing.store_contract import StoreContract

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    """A place with an S3 server."""
    with LocalSite() as running:
        s3.up(running)
        yield running


class TestS3Store(StoreContract):
    @pytest.fixture
    def stores(self, site: LocalSite) -> tuple[ObjectStore, ObjectStore]:
        place = Storage("s3://any", site.s3_endpoint_host, s3.REGION, path_style_access=True)
        client = connect(place, Credentials(site.s3_keys.access_key, site.s3_keys.secret_key))
        names = [f"snapshots-{next(_numbers)}" for _ in range(2)]
        for name in names:
            s3.ensure_bucket(site, name)
        return S3Store(client, names[0], parts_from=5 * MIB), S3Store(client, names[1], parts_from=5 * MIB)
