"""Deletion: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Deletion",
    "guide.md#delete-it",
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
            "The application is being deleted before it started; the snapshot that it was to start from is released.",
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.ORIGIN_STILL_HELD,
            Fault.ENVIRONMENT,
            (Place.EVENT,),
            (
                "A deleted application or import could not release the snapshot that it was to start from, or "
                "that it imported."
            ),
            remedy=(
                "Before you delete the StreamSnapshot that took the snapshot, annotate it as the message says: "
                '"kubectl annotate streamsnapshot NAME -n NAMESPACE --overwrite '
                'tidegate.dev/release-holders=HOLDER"; without that, its files stay.'
            ),
            page="guide.md#delete-a-snapshot",
        ),
        Entry(
            Reason.FINAL_SNAPSHOT,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and its final snapshot is taken.",
            page="guide.md#take-them-by-themselves",
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
                "continue from it, create the application again with the same name and spec.storage.uri, and delete "
                "app.json there once no driver writes."
            ),
            page="guide.md#take-them-by-themselves",
        ),
        Entry(
            Reason.STORAGE_PURGING,
            Fault.NONE,
            (Place.APP,),
            "The application is being deleted, and a pod purges its storage.",
        ),
        Entry(
            Reason.PURGE_FAILED,
            Fault.ENVIRONMENT,
            (Place.APP,),
            "The process that purges the storage ended without a termination message.",
            remedy=(
                'If it recurs, see "kubectl logs POD -n NAMESPACE --previous". To finish the deletion, set '
                "spec.storage.deletionPolicy to Retain: the files then stay, and can be deleted by hand."
            ),
            after="The container restarts and continues where it was.",
        ),
        Entry(
            Reason.STORAGE_PURGED,
            Fault.NONE,
            (Place.EVENT,),
            "The storage of the deleted application was purged.",
        ),
        Entry(
            Reason.STORAGE_RETAINED,
            Fault.NONE,
            (Place.EVENT,),
            "The storage of the deleted application was not purged; the message says why.",
            remedy=(
                "Delete the folder that the message names by hand if neither the state nor a snapshot in it is needed; "
                "StreamSnapshots and forks of the application may need them."
            ),
        ),
    ),
)
