"""Whether a storage has the batch that the operator knows to be committed. Does I/O: a few listings at a claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate_spark.places import EMPTY_START
from tidegate_spark.protocol import LINEAGE_PREFIX, DriverConfig, Storage

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_COMMITS, _STATE = "commits", "state"


def newest_if_older(client: S3Client, config: DriverConfig) -> int | None:
    """Return the newest batch that was committed in a lineage, if that is older than the one that is expected there.

    None if it is not, or cannot be told: of a query without state Spark may report batches before they are in the log
    (asynchronous progress tracking), and loses the last ones if it is killed. Where there is such a query, the number
    that is expected may be of it. Nor where there is a query that starts empty each time.

    Args:
        client: of the storage.
        config: the launch's.
    """
    root = f"{LINEAGE_PREFIX}/{config.lineage}/"
    queries = list(_folders(client, config, root))
    if not queries or any(EMPTY_START in query for query in queries):
        return None
    # A key with this prefix is of that batch, or of one with more digits: a later one.
    if any(is_there(client, config.storage, f"{query}{_COMMITS}/{config.expects_batch}") for query in queries):
        return None
    newest = max((batch for query in queries for batch in _batches(client, config, f"{query}{_COMMITS}/")), default=-1)
    stateful = all(is_there(client, config.storage, f"{query}{_STATE}/") for query in queries)
    return newest if stateful and newest < config.expects_batch else None


def _folders(client: S3Client, config: DriverConfig, below: str) -> Iterator[str]:
    place = config.storage
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=place.bucket, Prefix=place.key(below), Delimiter="/"
    )
    start = len(place.key(""))
    for page in pages:
        yield from (each["Prefix"][start:].lstrip("/") for each in page.get("CommonPrefixes", []))


def _batches(client: S3Client, config: DriverConfig, below: str) -> Iterator[int]:
    place = config.storage
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.key(below)):
        names = (item["Key"].rpartition("/")[2] for item in page.get("Contents", []))
        yield from (int(name) for name in names if name.isdecimal())


def is_there(client: S3Client, place: Storage, prefix: str) -> bool:
    """Return whether a storage has any object whose key begins so."""
    listed = client.list_objects_v2(Bucket=place.bucket, Prefix=place.key(prefix), MaxKeys=1)
    return bool(listed.get("Contents"))
