"""What whoever notes queries needs of the application's storage: whether one has state, and whose a failure is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from py4j.protocol import Py4JError

from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.contract.protocol import Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.snapshots.checkpoint.query_logs import OFFSETS
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.location_notes import DamagedNotesError
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError

T = TypeVar("T")

ONE_AT_A_TIME = threading.RLock()
"""Whoever notes a query of this process: all notes of a lineage are one object, and would be in each other's way."""
TRIES = 5
"""So often another process may have noted something meanwhile."""


def until_noted(attempt: Callable[[], T | None]) -> T:
    """Return what an attempt to note something returns; None: another process noted something meanwhile.

    Raises:
        FaultError: one did so each time.
    """
    for _ in range(TRIES):
        done = attempt()
        if done is not None:
            return done
    raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, messages.NOTES_CONTENDED))


def has_state(objects: AppObjects, lineage: int, name: str) -> bool:
    """Return whether a lineage has a checkpoint of a query's with batches in it; raises what the client raises."""
    batches = objects.lineage_key(lineage, checkpoint_directory(name), OFFSETS) + "/"
    return next(iter(objects.store.list(batches)), None) is not None


@contextmanager
def of_storage(as_fault: Callable[[Exception], Exception]) -> Iterator[None]:
    """Have what the store's client raises as the storage's fault: the script has no part in it.

    Args:
        as_fault: returns what an exception of the store's client means, itself if that is not known.
    """
    try:
        yield
    except (FaultError, NewerStorageError, DamagedNotesError, Py4JError):
        raise  # the last is of the JVM, which is asked whether a query runs, and may have gone
    except Exception as error:
        fault = as_fault(error)
        if not isinstance(fault, FaultError):
            fault = FaultError(Fault(Reason.STORAGE_UNAVAILABLE, messages.notes_not_reached(error)))
        raise fault from error
