"""Deletion: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Deletion",
    "guide/delete.md",
    (
        Entry(
            Reason.RELEASED,
            Fault.NONE,
            (Place.APP, Place.SNAPSHOT),
            "Nothing of the resource is left to delete, and Tidegate has removed its finalizer.",
        ),
        Entry(
            Reason.REHEARSAL_STOPPING,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and the rehearsal of a new version ends.",
        ),
        Entry(
            Reason.REPARTITION_STOPPING,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and the repartition of its state ends.",
        ),
        Entry(
            Reason.ORIGIN_RELEASING,
            Fault.NONE,
            (Place.APP,),
            (
                "The application is being deleted before it started; Tidegate records in the storage that it no longer "
                "needs the snapshot that it was to start from."
            ),
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.ORIGIN_STILL_HELD,
            Fault.ENVIRONMENT,
            (Place.EVENT,),
            (
                "A deleted application or import is still recorded in the storage as one that needs a snapshot (as its "
                "holder), because the record could not be changed."
            ),
            remedy=(
                'Before you delete the StreamSnapshot that took that snapshot, annotate it: "kubectl annotate '
                'streamsnapshot NAME -n NAMESPACE --overwrite tidegate.dev/release-holders=HOLDER", where HOLDER is '
                "the holder that the message names; without the annotation, the files of the snapshot are not deleted."
            ),
            page="guide/snapshots.md#delete-a-snapshot",
        ),
        Entry(
            Reason.FINAL_SNAPSHOT,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and its final snapshot is being taken.",
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.FINAL_SNAPSHOT_MISSING,
            Fault.DATA,
            (Place.EVENT,),
            (
                "The application was deleted without the final snapshot that spec.snapshots.finalSnapshot asks for; "
                "the message says why."
            ),
            remedy=(
                "Nothing is lost: the state itself is still there (<spec.storage.uri>/<namespace>/<name>/). To "
                "continue from it, make sure that no driver writes there, and create the application again with the "
                "same name and spec.storage.uri, and with spec.startFrom.adopt true."
            ),
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.SNAPSHOTS_RETAINED,
            Fault.NONE,
            (Place.APP,),
            (
                "The application is being deleted and its storage retained; Tidegate records on its scheduled "
                "snapshots that they are retained, too."
            ),
            page="guide/snapshots.md#take-them-by-themselves",
        ),
        Entry(
            Reason.STORAGE_PURGING,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and a pod deletes all files of its folder.",
        ),
        Entry(
            Reason.PURGE_FAILED,
            Fault.ENVIRONMENT,
            (Place.APP,),
            "The process that deletes the files of the application's folder ended without a termination message.",
            remedy=(
                'If it recurs, see "kubectl logs POD -n NAMESPACE --previous". If it was killed for its memory, raise '
                "spec.helpers.resources.limits.memory, and delete the pod. To finish the deletion of the resource, set "
                "spec.storage.deletionPolicy to Retain: the files then stay, and can be deleted by hand."
            ),
            after="The container restarts and continues where it was.",
        ),
        Entry(
            Reason.STORAGE_PURGED,
            Fault.NONE,
            (Place.EVENT,),
            "All files of the folder of the deleted application were deleted.",
        ),
        Entry(
            Reason.STORAGE_RETAINED,
            Fault.NONE,
            (Place.EVENT,),
            "The files of the deleted application were not deleted; the message says why.",
            remedy=(
                "If neither the state nor a snapshot in the folder that the message names is needed, delete that "
                "folder by hand; StreamSnapshots and forks of the application may need it."
            ),
        ),
        Entry(
            Reason.SNAPSHOT_GONE,
            Fault.DATA,
            (Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "The snapshot was complete, and is not in its storage any more: it was deleted with the storage of its "
                "application (spec.storage.deletionPolicy), or neither the catalog nor a manifest knows it. The "
                "StreamSnapshot is not Ready, and nothing starts from it."
            ),
            remedy=(
                "Use another snapshot, and delete this StreamSnapshot. If the files should still be there, restore "
                "them, with the snapshot's manifest, from a replica or from older object versions in the bucket. Then "
                "change spec.verifyNonce: once the files were read back, the StreamSnapshot is Ready again."
            ),
            page="guide/snapshots.md#verify-a-snapshot",
        ),
        Entry(
            Reason.WRITE_REFUSED,
            Fault.CLUSTER,
            (Place.APP, Place.EVENT),
            (
                "The API server does not let Tidegate change the resource, its status or its finalizers: an admission "
                "policy or webhook refuses it, or fails, or the operator lacks the right. Nothing that has to be "
                "recorded first is done meanwhile, and a deletion waits."
            ),
            remedy=(
                "Correct what the message names: exempt the operator's ServiceAccount from that policy or webhook, "
                "or restore its ClusterRole."
            ),
            after="Tidegate retries after 0.5 seconds to 2 minutes.",
        ),
    ),
)
