"""Control logs in a store in memory."""

import itertools
import json
from collections.abc import Callable
from typing import Any

from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.memory_store import Buckets, Call, MemoryStore

BUCKET, PREFIX = "bucket", "apps/orders"
_ids = itertools.count(1)


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def message(kind: str = "reload-config", payload: Any = None, *, expires: float = 0.0, id: str = "") -> Entry:  # noqa: A002
    """Return a message that is not logged yet."""
    return Entry(0, id=id or f"m{next(_ids)}", type=kind, payload=json.dumps(payload), expires=expires)


def repository_in(buckets: Buckets, watch: Callable[[Call], None] = lambda call: None) -> SnapshotRepository:
    """Return an application's library in ``buckets``."""
    return SnapshotRepository(MemoryStore(buckets, BUCKET, watch), PREFIX, pause=lambda seconds: None)


def opened(buckets: Buckets, clock: Callable[[], float] | None = None) -> ControlLog:
    """Return the application's log, read."""
    log = ControlLog(repository_in(buckets), clock or Clock())
    log.load()
    return log


def keys(buckets: Buckets, directory: str) -> list[str]:
    """Return the names of a directory's objects."""
    prefix = f"{PREFIX}/control/{directory}/"
    return [key[len(prefix) :] for key in buckets.keys(BUCKET, prefix)]
