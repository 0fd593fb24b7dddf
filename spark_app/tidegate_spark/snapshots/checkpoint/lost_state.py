"""Finds out whether a query whose state Spark misses ever had one. Does I/O: a few requests a query.

Spark says the same (STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY) of a checkpoint whose files somebody deleted
and of a version that puts an operator with state into a query that had none. In checkpoint format 2, which Tidegate
sets, the last commit names the state of each operator: then it was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate_spark.contract.protocol import LINEAGE_PREFIX, Storage
from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError
from tidegate_spark.snapshots.checkpoint.query_logs import COMMITS, read_commit
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.claim.known_batches import is_there, newest_committed
from tidegate_spark.storage.store import Entry, SnapshotError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def lost_of(client: S3Client, place: Storage, lineage: int, directory: str) -> str:
    """Return what is missing of the state that a query has committed; empty if nothing, or if unknown.

    Args:
        client: of the storage; what it raises passes through.
        place: the application's.
        lineage: the number.
        directory: of the query's checkpoint. Others say nothing of it: a removed query may have left half of its own.
    """
    checkpoint = f"{LINEAGE_PREFIX}/{lineage}/{directory}"
    newest = newest_committed(client, place, checkpoint)
    commit = f"{COMMITS}/{newest}"
    listing = {commit: Entry(place.key(f"{checkpoint}/{commit}"), size=0, etag="")}

    def read(path: str) -> bytes:
        found = store.read_object(client, place, place.key(f"{checkpoint}/{path}"))
        if found is None:
            raise MissingFileError(path, "it was listed")
        return found[0]

    try:
        ids = read_commit(Checkpoint(listing, read), newest).ids if newest >= 0 else None
    except SnapshotError:
        return ""  # of a format that is not known: it says nothing
    named = (f"{checkpoint}/state/{operator}/" for operator in sorted(ids or ()))
    return next((path for path in named if not is_there(client, place, path)), "")
