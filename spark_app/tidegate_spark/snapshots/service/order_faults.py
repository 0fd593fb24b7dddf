"""Why an order about snapshots fails: whether it may pass by itself, and the message. No I/O of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.snapshots.catalog import (
    DisposedError,
    HeldError,
    NotReadyError,
    UnknownSnapshotError,
)
from tidegate_spark.snapshots.catalog_json import UnreadableCatalogError
from tidegate_spark.snapshots.checkpoint.checkpoint import UnreadableCheckpointError
from tidegate_spark.snapshots.manifest import DamagedError, UnreadableManifestError
from tidegate_spark.snapshots.repository import CatalogContendedError, CatalogLostError
from tidegate_spark.snapshots.service import snapshot_messages as messages
from tidegate_spark.snapshots.service.order_errors import OrderFailedError
from tidegate_spark.snapshots.take import BatchLostError, NothingCommittedError, TooFastError
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.location_notes import DamagedNotesError
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import MismatchError, NewerStorageError, NotDeletedError, SnapshotError, VanishedError

ALWAYS = sys.maxsize
"""So often an attempt is repeated that fails for a cause which passes, or which a person removes."""


@dataclass(frozen=True)
class Trouble:
    """Why an attempt failed."""

    reason: Reason
    message: str
    tries: int
    """Attempts in all that are worth while, if each of them fails for this reason."""


@dataclass(frozen=True)
class _Kind:
    error: type[Exception]
    reason: Reason
    tries: int
    remedy: str = ""


_KINDS = (
    _Kind(NothingCommittedError, Reason.NOTHING_COMMITTED, ALWAYS),
    _Kind(BatchLostError, Reason.BATCH_LOST, 1),
    _Kind(TooFastError, Reason.CLEANED_TOO_FAST, 2),
    _Kind(DisposedError, Reason.DISPOSED_MEANWHILE, 1),
    _Kind(UnknownSnapshotError, Reason.SNAPSHOT_MISSING, ALWAYS),
    _Kind(NotReadyError, Reason.SNAPSHOT_MISSING, ALWAYS),
    _Kind(DamagedError, Reason.SNAPSHOT_DAMAGED, 1, messages.RESTORE_FILES),
    _Kind(UnreadableManifestError, Reason.SNAPSHOT_DAMAGED, 1),
    _Kind(NewerStorageError, Reason.NEWER_FORMAT, ALWAYS),
    _Kind(HeldError, Reason.HELD, ALWAYS, messages.GOES_LATER),
    _Kind(CatalogLostError, Reason.CATALOG_LOST, ALWAYS),
    _Kind(UnreadableCatalogError, Reason.CATALOG_LOST, ALWAYS, messages.RESTORE_OBJECT),
    _Kind(CatalogContendedError, Reason.STORAGE_UNAVAILABLE, ALWAYS),
    _Kind(NotDeletedError, Reason.STORAGE_UNAVAILABLE, ALWAYS, messages.ALLOW_DELETION),
    # A listing is not made in one moment: what it lacked may be there the next time.
    _Kind(VanishedError, Reason.UNREADABLE_CHECKPOINT, 3, messages.INCOMPLETE_CHECKPOINT),
    _Kind(DamagedNotesError, Reason.NOTES_DAMAGED, 1),
    _Kind(UnreadableCheckpointError, Reason.UNREADABLE_CHECKPOINT, 1),
    _Kind(MismatchError, Reason.INTERNAL_ERROR, 3, messages.UNSOUND_COPIES),
    _Kind(SnapshotError, Reason.INTERNAL_ERROR, 1),
)
"""The first that fits."""
_OF_THE_CLAIM = (Reason.NEWER_FORMAT, Reason.CLAIM_DAMAGED)


def trouble_of(error: Exception, place: Storage, secret: str, *, runs: bool) -> Trouble:
    """Return what ``error`` means.

    Args:
        error: what the library, or the store's client, raised.
        place: the storage that was used.
        secret: the name of the credentials' Secret, for words.
        runs: whether the application runs, so that it may commit something.
    """
    if isinstance(error, FaultError):
        reason = error.fault.reason if error.fault.reason in _OF_THE_CLAIM else Reason.STORAGE_UNAVAILABLE
        return Trouble(reason, error.fault.message, ALWAYS)
    if isinstance(error, OrderFailedError):
        return Trouble(error.reason, _sentence(str(error)), error.tries)
    for kind in _KINDS:
        if isinstance(error, kind.error):
            tries = 1 if kind.reason is Reason.NOTHING_COMMITTED and not runs else kind.tries
            return Trouble(kind.reason, f"{_sentence(str(error))} {kind.remedy}".strip(), tries)
    fault = store.fault_of(error, place, secret)
    if fault is not None:
        return Trouble(Reason.STORAGE_UNAVAILABLE, fault.message, ALWAYS)
    return Trouble(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {_sentence(str(error))}", 1)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
