"""Snapshots: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Snapshots",
    "guide/snapshots.md",
    (
        Entry(
            Reason.APP_NOT_FOUND,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            "The application does not exist.",
            remedy=(
                "Create the application. If its name is wrong, delete this resource, and create it with the right name."
            ),
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
            "The application is starting, is stopping or has ended, or its driver does not answer the operator.",
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
            after=(
                "When the application is gone, the snapshot or the control message fails (AppReplaced), or waits "
                "(AppNotFound) if it is not recorded for this application yet."
            ),
        ),
        Entry(
            Reason.APP_REPLACED,
            Fault.NONE,
            (Place.SNAPSHOT, Place.MESSAGE),
            (
                "The application was deleted before the snapshot was complete, or before the control message took "
                "effect. An application that was created later under the same name does not count."
            ),
            remedy="Create another StreamSnapshot or ControlMessage, under another name, for the new application.",
        ),
        Entry(
            Reason.TOO_MANY_SNAPSHOTS,
            Fault.REQUEST,
            (Place.SNAPSHOT,),
            (
                "Too many snapshots are under way: the limit is 100 (200 for those that Tidegate makes itself) for one "
                "application, for all applications of the namespace that do not exist, and for imports into the "
                "namespace. This one was not begun."
            ),
            remedy=(
                '"kubectl get streamsnapshots -n NAMESPACE" lists them. When some of them have ended, create another '
                "StreamSnapshot."
            ),
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
            "The files of the snapshot are being copied.",
        ),
        Entry(
            Reason.WAITING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "An earlier snapshot has to be finished first.",
        ),
        Entry(
            Reason.ORDER_REFUSED,
            Fault.CLUSTER,
            (Place.APP, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT, Place.MESSAGE, Place.UPGRADE),
            (
                "The driver, or a pod, does not know what the operator asks for (an order, or a field of one, which "
                "the message names), because its runtime is older than the operator."
            ),
            remedy=(
                "Change spec.restartNonce of the application, which restarts it with the operator's runtime; if "
                "spec.application.runtime is Image, use an image with a newer runtime. For an export, set "
                "spec.export.image to an image with a newer runtime, and change spec.export.nonce."
            ),
            after="A driver is asked again.",
        ),
        Entry(
            Reason.POD_STARTING,
            Fault.NONE,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The pod that copies, imports, verifies, exports or deletes the snapshot is starting.",
        ),
        Entry(
            Reason.POD_RUNNING,
            Fault.NONE,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The pod that copies, imports, verifies, exports or deletes the snapshot is running.",
        ),
        Entry(
            Reason.POD_REPLACED,
            Fault.NONE,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The pod that works on the snapshot is being replaced by another one.",
        ),
        Entry(
            Reason.POD_STOPPING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The pod that works on the snapshot is being deleted.",
        ),
        Entry(
            Reason.SNAPSHOT_POD_FAILED,
            Fault.CLUSTER,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "A process of the pod that works on the snapshot ended without a termination message; the pod is still "
                "there."
            ),
            remedy=(
                'If it recurs, see "kubectl logs POD -n NAMESPACE --previous". If it was killed for its memory, raise '
                "spec.helpers.resources.limits.memory of the application, and delete the pod."
            ),
            after="The container restarts and continues where it was.",
        ),
        Entry(
            Reason.NO_REPORT,
            Fault.CLUSTER,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            "The pod that works on the snapshot has ended, and left no result.",
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
            "Spark deleted files of the batch that the snapshot was to have, before they were copied.",
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
            remedy=(
                "If Tidegate does not know something, upgrade Tidegate. If files are missing, restore them. Then "
                "create another StreamSnapshot."
            ),
        ),
        Entry(
            Reason.CATALOG_LOST,
            Fault.DATA,
            (Place.APP, Place.SNAPSHOT),
            (
                "There are snapshots, but their list, snapshots/catalog.json in the application's folder, is missing. "
                "Without it, no snapshot is taken or deleted."
            ),
            remedy=(
                "Restore snapshots/catalog.json in <spec.storage.uri>/<namespace>/<name>/ from an older object version "
                "in the bucket: snapshots that are newer than that version are entered again by themselves, and those "
                "that were deleted since are found to be damaged. Only if you can give up all snapshots there, those "
                "for rollbacks and forks included, move the folders snapshots/ and objects/ elsewhere."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.DISPOSED_MEANWHILE,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The snapshot was deleted from the storage while it was being taken or read.",
            remedy="Create another StreamSnapshot.",
        ),
        Entry(
            Reason.SNAPSHOT_MISSING,
            Fault.DATA,
            (Place.SNAPSHOT,),
            "The imported snapshot does not exist, or is not complete.",
            remedy=(
                "Wait until it is complete in the cluster that takes it. If spec.uri or spec.storage is wrong, delete "
                "this StreamSnapshot, and create it with the right one; no file is deleted with it."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.SNAPSHOT_DAMAGED,
            Fault.DATA,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "Files of the snapshot are missing, or differ from its manifest. The message names the first. The "
                "driver finds missing files when it starts and when the catalog changes; a verification finds both. "
                "The StreamSnapshot is not Ready, and nothing starts from it."
            ),
            remedy=(
                "Restore the files from a replica or from older object versions in the bucket. Then change "
                "spec.verifyNonce: once the files were read back, the StreamSnapshot is Ready again. Delete an "
                "imported StreamSnapshot (with spec.uri) that never was Ready, and create it again. Or take another "
                "snapshot, and do not use this one."
            ),
        ),
        Entry(
            Reason.INTERNAL_ERROR,
            Fault.CLUSTER,
            (Place.SNAPSHOT, Place.VERIFIED, Place.UPGRADE),
            "Tidegate itself has a fault.",
            remedy=(
                'Report it to the developers of Tidegate, with the message and "kubectl logs POD -n NAMESPACE" of '
                "the driver or pod that did the work."
            ),
        ),
        Entry(
            Reason.DISPOSING,
            Fault.NONE,
            (Place.SNAPSHOT,),
            "The resource is being deleted, and so are its files.",
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.NEEDED_BY_FORK,
            Fault.NONE,
            (Place.SNAPSHOT,),
            (
                "The resource is being deleted, but an application still has to start from its snapshot; the message "
                "names that application."
            ),
            remedy=(
                "For the application in the message, set spec.suspend to false, correct what its condition Ready says, "
                "or delete that application."
            ),
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.HELD,
            Fault.NONE,
            (Place.APP, Place.SNAPSHOT),
            (
                "The resource is being deleted, but an application or an import still needs the files of a snapshot; "
                "the message names it (as holder). Until the files are not needed any more, nothing is deleted."
            ),
            remedy=(
                "Wait, or delete that application or import. Only if it no longer exists, annotate the StreamSnapshot "
                'that took the snapshot, "kubectl annotate streamsnapshot NAME -n NAMESPACE --overwrite '
                'tidegate.dev/release-holders=HOLDER", and delete it; if the holder still exists, it loses its files. '
                "A StreamingApp without that StreamSnapshot is deleted, and its files stay in the bucket, once its "
                "spec.storage.deletionPolicy is Retain."
            ),
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.NOT_DISPOSED,
            Fault.ENVIRONMENT,
            (Place.SNAPSHOT,),
            "The files could not be deleted.",
            remedy=(
                "Correct what the message names. Or set spec.deletionPolicy to Retain: the resource is then deleted, "
                "and its files stay in the bucket."
            ),
            after="Tidegate retries by itself.",
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.WHOLE,
            Fault.NONE,
            (Place.VERIFIED,),
            "All files of the snapshot were read, and are as they were written.",
            page="guide/snapshots.md#verify-a-snapshot",
        ),
        Entry(
            Reason.SCHEDULE_INVALID,
            Fault.VERSION,
            (Place.APP, Place.EVENT, Place.PERIODS_IGNORED, Place.SCHEDULE_INVALID),
            (
                "A schedule never fires, because none of its times exists; the message names the field, the cause, and "
                "what to write."
            ),
            remedy="Correct the schedule.",
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_REFUSED,
            Fault.CLUSTER,
            (Place.EVENT, Place.MESSAGE),
            (
                "The API server refuses to create the StreamSnapshot, or could not create it (a webhook that does not "
                "answer, for instance)."
            ),
            remedy=(
                "Correct what the text of the event or condition names; then, if a ControlMessage asked for the "
                "snapshot and is Failed, send the ControlMessage again under another name."
            ),
            after=(
                "Tidegate tries to create a snapshot that is due again every five minutes, and every 30 seconds if it "
                "was not refused. That of a ControlMessage that is still Published (a quota, a policy or a webhook is "
                "in the way) is tried again every 30 seconds; the copy of the state is already made."
            ),
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_NAME_TAKEN,
            Fault.CLUSTER,
            (Place.EVENT, Place.MESSAGE),
            "Another StreamSnapshot already has the name that Tidegate gives to the new one.",
            remedy=(
                "If nobody needs that other StreamSnapshot, delete it (if its spec.deletionPolicy is Delete, its files "
                "are deleted too); as long as it exists, this scheduled snapshot is not taken. If a ControlMessage "
                "asked for the snapshot, send the ControlMessage again under another name."
            ),
            after="Tidegate tries to create a scheduled snapshot again every five minutes.",
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_VERIFIED,
            Fault.NONE,
            (Place.EVENT,),
            "All files of the snapshot were read, and are as they were written.",
            page="guide/snapshots.md#verify-a-snapshot",
        ),
        Entry(
            Reason.SNAPSHOT_NOT_VERIFIED,
            Fault.DATA,
            (Place.EVENT,),
            "The files of the snapshot were read and are damaged, or could not be read; the message says which.",
            remedy=(
                "If it is damaged, do not use it: restore its files from a replica or from older object versions in "
                "the bucket, or take another snapshot. If it could not be read, correct what the message names, and "
                "change spec.verifyNonce to verify it again."
            ),
            page="guide/snapshots.md#verify-a-snapshot",
        ),
        Entry(
            Reason.SNAPSHOT_EXPIRED,
            Fault.NONE,
            (Place.EVENT,),
            "A scheduled snapshot was deleted by spec.snapshots.retention; the message says why.",
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOT_DISPOSED,
            Fault.NONE,
            (Place.EVENT,),
            "The files of a deleted StreamSnapshot were deleted.",
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.SNAPSHOT_RETAINED,
            Fault.NONE,
            (Place.EVENT,),
            "The files of a deleted StreamSnapshot are retained; the message says why.",
            page="guide/snapshots.md#delete-a-snapshot",
        ),
    ),
)
