"""Exports of state: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Exports of state",
    "guide/exports.md",
    (
        Entry(
            Reason.STATE_NOT_FOUND,
            Fault.REQUEST,
            (Place.EXPORT,),
            "spec.export.states selects state that does not exist; the message lists what exists.",
            remedy="Correct spec.export.states, and change spec.export.nonce.",
        ),
        Entry(
            Reason.FORMAT_UNSUITABLE,
            Fault.REQUEST,
            (Place.EXPORT,),
            "The format cannot represent a type; the message names the column.",
            remedy=(
                "Set spec.export.format to Parquet, or list in spec.export.states only the other state; change "
                "spec.export.nonce."
            ),
        ),
        Entry(
            Reason.EXPORT_EXISTS,
            Fault.REQUEST,
            (Place.EXPORT,),
            "Another export of this snapshot was made with this spec.export.nonce.",
            remedy="Change spec.export.nonce.",
        ),
        Entry(
            Reason.EXPORT_FAILED,
            Fault.VERSION,
            (Place.EXPORT, Place.MESSAGE),
            "The export failed; the message says why.",
            remedy=(
                "Correct what the message names, and change spec.export.nonce; if a ControlMessage asked for the "
                "export, send the ControlMessage again under another name."
            ),
        ),
        Entry(
            Reason.EVICTED,
            Fault.CLUSTER,
            (Place.EXPORT,),
            "The node ran short of memory or disk, and ended the pod of the export.",
            remedy=(
                "Raise memory, or set ephemeral-storage, in spec.export.resources.requests, and change "
                "spec.export.nonce to try again."
            ),
        ),
        Entry(
            Reason.CANCELLED,
            Fault.NONE,
            (Place.EXPORT,),
            "spec.export was removed before the export was complete.",
        ),
        Entry(
            Reason.SNAPSHOT_EXPORTED,
            Fault.NONE,
            (Place.EVENT,),
            "The state of a snapshot was written as plain files.",
        ),
        Entry(
            Reason.SNAPSHOT_NOT_EXPORTED,
            Fault.VERSION,
            (Place.EVENT,),
            "The state of a snapshot was not written as plain files; the message says why.",
            remedy="Correct what the message names, and change spec.export.nonce.",
        ),
    ),
)
