"""Forks and what they start from: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Forks",
    "guide/forks.md#fork-an-application",
    (
        Entry(
            Reason.SNAPSHOT_NOT_READY,
            Fault.NONE,
            (Place.APP,),
            "The application waits for the snapshot that it starts from, which is not complete yet.",
            after="Tidegate continues when the snapshot is Ready.",
        ),
        Entry(
            Reason.SNAPSHOT_NOT_FOUND,
            Fault.VERSION,
            (Place.APP,),
            "The snapshot of spec.startFrom.snapshotRef does not exist.",
            remedy=(
                "Create a StreamSnapshot of that name, or delete the application, and create it with another "
                "spec.startFrom."
            ),
            after="Tidegate continues when the StreamSnapshot is Ready.",
        ),
        Entry(
            Reason.SNAPSHOT_FAILED,
            Fault.DATA,
            (Place.APP, Place.MESSAGE),
            "The snapshot failed and will never be complete.",
            remedy=(
                "Delete that StreamSnapshot, and create one of the same name. If a ControlMessage asked for the "
                "snapshot, send the ControlMessage again under another name."
            ),
        ),
        Entry(
            Reason.SNAPSHOT_DELETING,
            Fault.REQUEST,
            (Place.APP,),
            "The snapshot of spec.startFrom.snapshotRef is being deleted.",
            remedy=(
                "When it is gone, create one of the same name; or delete the application, and create it with another "
                "spec.startFrom."
            ),
            after="Tidegate continues when the new StreamSnapshot is Ready.",
        ),
        Entry(
            Reason.SNAPSHOT_UNREADABLE,
            Fault.VERSION,
            (Place.APP,),
            (
                "The StreamSnapshot of spec.startFrom.snapshotRef was stored under another version of the CRD, and "
                "this operator cannot read it."
            ),
            remedy='Correct the field that its conditions name: "kubectl describe streamsnapshot NAME -n NAMESPACE".',
        ),
        Entry(
            Reason.SNAPSHOT_UNUSABLE,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The snapshot in spec.startFrom, or the rollback snapshot, is missing, damaged or not readable with "
                "the credentials; or the folder of the new state (its lineage) already has other files. The "
                "application starts only with the complete snapshot."
            ),
            remedy=(
                'Restore what the message names, or move the other files that it names elsewhere; then run "kubectl '
                'delete pod POD -n NAMESPACE" for the driver pod. An application that has never run can be deleted '
                "with spec.storage.deletionPolicy Delete, and created with another spec.startFrom."
            ),
            after="A new driver pod tries again.",
        ),
        Entry(
            Reason.STARTED_FROM_SNAPSHOT,
            Fault.NONE,
            (Place.EVENT,),
            "The application has started from its own copy of a snapshot, and no longer needs the snapshot.",
        ),
    ),
)
