"""Checks that a storage has the batches that the operator knows to be committed. Does I/O: a few requests a query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate_spark.contract.object_paths import EMPTY_START, checkpoint_directory, is_number
from tidegate_spark.contract.protocol import LINEAGE_PREFIX, Storage

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_COMMITS, _STATE = "commits", "state"
_COMMIT = re.compile(rf"/{_COMMITS}/\d+$", re.ASCII)
AT_A_TIME = 8
"""Queries that are looked at."""


@dataclass(frozen=True)
class Older:
    """A query of which a storage has an older state: the newest batch there, negative if there is none."""

    query: str
    newest: int
    known: int


def first_older(client: S3Client, place: Storage, lineage: int, batches: Mapping[str, int]) -> Older | None:
    """Return the first query of which a lineage has neither the batch that is expected nor a later one, if any.

    A query that starts empty each time is left out, and so is one without state that has committed something, or of
    which no batch but the first is known: with asynchronous progress tracking, which only those have, Spark reports
    batches before they are in the log, and loses the last ones if it is killed.

    Args:
        client: of the storage.
        place: the application's.
        lineage: the number.
        batches: which are expected.
    """

    def check(query: str) -> Older | None:
        checkpoint = f"{LINEAGE_PREFIX}/{lineage}/{checkpoint_directory(query)}"
        newest = _newest_if_older(client, place, checkpoint, batches[query])
        return Older(query, newest, batches[query]) if newest is not None else None

    # A start waits for it: one after the other, a hundred queries are seconds.
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return next(filter(None, pool.map(check, batches)), None)


def _newest_if_older(client: S3Client, place: Storage, checkpoint: str, batch: int) -> int | None:
    # A key with this prefix is of that batch, or of one with more digits: a later one.
    if is_there(client, place, f"{checkpoint}/{_COMMITS}/{batch}"):
        return None
    newest = newest_committed(client, place, checkpoint)
    if newest >= batch or is_there(client, place, f"{checkpoint}{EMPTY_START}"):
        return None
    if is_there(client, place, f"{checkpoint}/{_STATE}/"):
        return newest
    # The first batch, too, may be reported before it is in the log.
    return newest if newest < 0 < batch else None


def newest_committed(client: S3Client, place: Storage, checkpoint: str) -> int:
    """Return the newest batch that a query has committed, -1 if none; ``checkpoint`` is below the place."""
    below = place.key(f"{checkpoint}/{_COMMITS}/")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=below)
    names = (item["Key"].rpartition("/")[2] for page in pages for item in page.get("Contents", []))
    return max((int(name) for name in names if is_number(name)), default=-1)


def has_batches(client: S3Client, place: Storage, lineage: int) -> bool:
    """Return whether a query has committed a batch in a lineage."""
    root = place.key(f"{LINEAGE_PREFIX}/{lineage}/")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=root)
    return any(_COMMIT.search(item["Key"]) for page in pages for item in page.get("Contents", []))


def is_there(client: S3Client, place: Storage, prefix: str) -> bool:
    """Return whether a storage has any object whose key begins so."""
    listed = client.list_objects_v2(Bucket=place.bucket, Prefix=place.key(prefix), MaxKeys=1)
    return bool(listed.get("Contents"))
