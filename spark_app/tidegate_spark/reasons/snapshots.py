"""Snapshots: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Snapshots",
    "guide.md#snapshots-and-forks",
    (
        Entry(
            Reason.APP_NOT_FOUND,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            "The application does not exist.",
            remedy="Create it; if the name is wrong, delete this resource and create it with the right one.",
            after="Tidegate continues when the application exists.",
        ),
        Entry(
            Reason.APP_NOT_STARTED,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            "The application has never run.",
            after="Tidegate continues when the application runs.",
        ),
        Entry(
            Reason.APP_NOT_RUNNING,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            "The application starts, stops or has ended, or its agent does not answer.",
            remedy='Its conditions say why: "kubectl describe streamingapp APP -n NAMESPACE".',
            after="Tidegate continues when the application runs.",
        ),
        Entry(
            Reason.APP_UNREADABLE,
            Fault.VERSION,
            (Place.SNAPSHOT, Place.MESSAGE),
            "The application was stored under another version of the CRD, and this operator cannot read its spec.",
            remedy='Correct the field that its conditions name: "kubectl describe streamingapp APP -n NAMESPACE".',
            after="Tidegate continues when the application can be read.",
        ),
        Entry(
            Reason.APP_DELETING,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            "The application is being deleted.",
        ),
        Entry(
            Reason.APP_REPLACED,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            (
                "The application was deleted before this was done. An application that was created later under the "
                "same name is another one."
            ),
            remedy="Create another StreamSnapshot or ControlMessage, under another name, for the new application.",
        ),
        Entry(
            Reason.ORDERED,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The driver was ordered to take the snapshot.",
        ),
        Entry(
            Reason.COPYING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The files of the snapshot are copied.",
        ),
        Entry(
            Reason.WAITING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "An earlier snapshot is finished first.",
        ),
        Entry(
            Reason.ORDER_REFUSED,
            Fault.CLUSTER,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT, Place.MESSAGE, Place.UPGRADE),
            (
                "The agent of the driver, or a pod, refuses the order: its runtime is older than the operator, and "
                "does not know the order or a field of it, which the message names."
            ),
            remedy=(
                "Change spec.restartNonce of the application, which restarts it with the operator's runtime; with "
                "spec.application.runtime Image, use an image with a newer runtime. If an export refused it, set "
                "spec.export.image to such an image."
            ),
            after="A driver gets the order again.",
        ),
        Entry(
            Reason.POD_STARTING,
            Fault.NONE,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "A pod starts that copies, imports, verifies, exports or deletes the snapshot.",
        ),
        Entry(
            Reason.POD_RUNNING,
            Fault.NONE,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "A pod copies, imports, verifies, exports or deletes the snapshot.",
        ),
        Entry(
            Reason.POD_REPLACED,
            Fault.NONE,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The pod that works on the snapshot is replaced.",
        ),
        Entry(
            Reason.POD_STOPPING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The pod that works on the snapshot is deleted.",
        ),
        Entry(
            Reason.SNAPSHOT_POD_FAILED,
            Fault.CLUSTER,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The process of the pod that works on the snapshot ended without a termination message.",
            remedy='If it recurs, see "kubectl logs POD -n NAMESPACE --previous".',
            after="The container restarts and continues where it was.",
        ),
        Entry(
            Reason.NO_REPORT,
            Fault.CLUSTER,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The pod that works on the snapshot ended without a report.",
            remedy='If it recurs, follow the log of the next pod: "kubectl logs -f POD -n NAMESPACE".',
            after="Another pod follows.",
        ),
        Entry(
            Reason.NOTHING_COMMITTED,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "No batch is committed yet.",
            after="The snapshot is taken after the first batch.",
        ),
        Entry(
            Reason.BATCH_LOST,
            Fault.DATA,
            (Place.SNAPSHOT,),
            "Spark has deleted the files of the batch that the snapshot had to be of.",
            remedy=(
                "Create another StreamSnapshot; if it recurs, raise spec.state.minBatchesToRetain of the application, "
                "which restarts it."
            ),
        ),
        Entry(
            Reason.CLEANED_TOO_FAST,
            Fault.VERSION,
            (Place.SNAPSHOT,),
            "Spark deleted files faster than they were copied, several times.",
            remedy=(
                "Raise spec.state.minBatchesToRetain of the application, which restarts it, and create another "
                "StreamSnapshot."
            ),
        ),
        Entry(
            Reason.UNREADABLE_CHECKPOINT,
            Fault.CLUSTER,
            (Place.SNAPSHOT,),
            (
                "The checkpoint is not complete, or has something that this version of Tidegate does not know; the "
                "message names it."
            ),
            remedy="Upgrade Tidegate, or restore the files that are missing; then create another StreamSnapshot.",
        ),
        Entry(
            Reason.CATALOG_LOST,
            Fault.DATA,
            (Place.APP, Place.SNAPSHOT),
            "There are snapshots, and snapshots/catalog.json is missing. Nothing is taken or deleted without it.",
            remedy=(
                "Restore snapshots/catalog.json in <spec.storage.uri>/<namespace>/<name>/ from the versions of the "
                "bucket. Only if all snapshots there may be lost, those for rollbacks and forks included, move the "
                "folders snapshots/ and objects/ elsewhere."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.DISPOSED_MEANWHILE,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "Somebody deleted the snapshot while it was taken.",
            remedy="Create another StreamSnapshot.",
        ),
        Entry(
            Reason.SNAPSHOT_MISSING,
            Fault.DATA,
            (Place.SNAPSHOT,),
            "The imported snapshot does not exist, or is not complete.",
            remedy=(
                "Wait until it is complete where it is taken. If spec.uri or spec.storage is wrong, delete this "
                "StreamSnapshot and create it with the right one; no file is deleted with it."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.SNAPSHOT_DAMAGED,
            Fault.DATA,
            (Place.SNAPSHOT, Place.VERIFIED),
            "Files of the snapshot are missing, or differ from what was published. The message names the first.",
            remedy=(
                "Restore the files from a replica or the versions of the bucket, then change spec.verifyNonce, or "
                "create an import again. Or take another snapshot, and do not rely on this one."
            ),
        ),
        Entry(
            Reason.INTERNAL_ERROR,
            Fault.CLUSTER,
            (Place.SNAPSHOT, Place.VERIFIED, Place.UPGRADE),
            "Tidegate itself has a fault.",
            remedy=(
                "Report it to the developers of Tidegate, with the message and the log of the driver or pod that did "
                "the work."
            ),
        ),
        Entry(
            Reason.DISPOSING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The resource is being deleted, and its files are deleted.",
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.NEEDED_BY_FORK,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The resource is being deleted, and an application has yet to start from it.",
            remedy=(
                "Set spec.suspend of that application to false, correct what its condition Ready says, or delete it."
            ),
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.HELD,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The resource is being deleted, and an application or import that the message names needs the files.",
            remedy=(
                "Wait. Only if that holder no longer exists, release it by the annotation in the message: one that "
                "exists loses its files."
            ),
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.NOT_DISPOSED,
            Fault.ENVIRONMENT,
            (Place.SNAPSHOT,),
            "The files could not be deleted.",
            remedy=(
                "Correct what the message names. Or set spec.deletionPolicy to Retain: the resource then goes, and its "
                "files stay in the bucket."
            ),
            after="Tidegate retries by itself.",
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.WHOLE,
            Fault.NONE,
            (Place.VERIFIED,),
            "The snapshot was read back, and is intact.",
            page="guide.md#verify-a-snapshot",
        ),
        Entry(
            Reason.SCHEDULE_INVALID,
            Fault.VERSION,
            (Place.APP, Place.EVENT, Place.PERIODS_IGNORED),
            "A schedule never fires; the message names the field, why, and what to write.",
            remedy="Correct the schedule.",
            page="guide.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_REFUSED,
            Fault.CLUSTER,
            (Place.EVENT, Place.MESSAGE),
            "The API server refuses to create the StreamSnapshot.",
            remedy=(
                "Correct what the message names; for a ControlMessage, then send the message again under another name."
            ),
            after="A scheduled one is tried again every five minutes.",
            page="guide.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_NAME_TAKEN,
            Fault.CLUSTER,
            (Place.EVENT, Place.MESSAGE),
            "Another StreamSnapshot already has the name that Tidegate gives to the new one.",
            remedy=(
                "If nobody needs that StreamSnapshot, delete it (with its spec.deletionPolicy Delete, its files go "
                "too); as long as it exists, this scheduled snapshot is not taken. For a ControlMessage, send the "
                "message again under another name."
            ),
            after="A scheduled one is tried again every five minutes.",
            page="guide.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_VERIFIED,
            Fault.NONE,
            (Place.EVENT,),
            "The snapshot was read back, and is intact.",
            page="guide.md#verify-a-snapshot",
        ),
        Entry(
            Reason.SNAPSHOT_NOT_VERIFIED,
            Fault.DATA,
            (Place.EVENT,),
            "The snapshot was read back and is damaged, or could not be read; the message says which.",
            remedy=(
                "If it is damaged, do not rely on it: restore its files, or take another snapshot. If it could not be "
                "read, correct what the message names, and change spec.verifyNonce to verify it again."
            ),
            page="guide.md#verify-a-snapshot",
        ),
        Entry(
            Reason.SNAPSHOT_EXPIRED,
            Fault.NONE,
            (Place.EVENT,),
            "A scheduled snapshot was deleted by spec.snapshots.retention; the message says why.",
            page="guide.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_DISPOSED,
            Fault.NONE,
            (Place.EVENT,),
            "The files of a deleted StreamSnapshot are deleted.",
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.SNAPSHOT_RETAINED,
            Fault.NONE,
            (Place.EVENT,),
            "The files of a deleted StreamSnapshot are retained; the message says why.",
            page="guide.md#delete-a-snapshot",
        ),
    ),
)
