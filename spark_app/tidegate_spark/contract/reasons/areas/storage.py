"""Storage, broker and other dependencies: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Storage, broker and what else an application relies on",
    "guide/describe.md#storage",
    (
        Entry(
            Reason.STORAGE_CONFLICT,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE, Place.REPARTITION),
            (
                "The storage overlaps that of another application of the namespace, which was launched there; or, if "
                "neither was, which is older."
            ),
            remedy=(
                "Delete this application, and create it with another spec.storage.uri. If spec.storage was edited, "
                "revert that. Delete the other one only if it is not needed: if its spec.storage.deletionPolicy is "
                "Delete, its state and snapshots are deleted too."
            ),
            after="Tidegate continues when the other one is deleted, or stable in another store.",
        ),
        Entry(
            Reason.STORAGE_OWNED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            (
                "app.json, which says whose the application's folder is, names another application, such as an earlier "
                "one of the same name. Or the folder is inside the folder of an application in another namespace; the "
                "message says so."
            ),
            remedy=(
                "If the folder is inside another one, delete this application, and create it with another "
                "spec.storage.uri. Otherwise make sure that no driver in any cluster writes to the folder "
                "(<spec.storage.uri>/<namespace>/<name>/). To continue from the state there, if an earlier application "
                "of this namespace and name left it, set spec.startFrom.adopt to true. If this application has had the "
                "folder and another one took it over, this one does not get it again: delete it with "
                "spec.storage.deletionPolicy Retain, and create it with spec.startFrom.adopt. To start without the "
                "state, delete the folder, which loses the state and all snapshots in it."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.NEWER_FORMAT,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            (
                "A newer Tidegate wrote an object of the application's folder (app.json, fence.json, the catalog of "
                "the snapshots, a manifest or the control log; the message names it); this older one "
                "neither reads nor replaces it."
            ),
            remedy=(
                "Upgrade Tidegate; if spec.application.runtime is Image, use an image with a newer runtime. If the "
                "application still runs, then change spec.restartNonce, so that its driver gets the newer runtime."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.CLAIM_DAMAGED,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            (
                "app.json or fence.json in the application's folder is damaged (lacks a field, or has one of another "
                "type), or app.json is missing although other objects are there: whose they are is not known, and "
                "Tidegate neither uses nor deletes them."
            ),
            remedy=(
                "Restore the object that the message names from an older object version in the bucket. If there is "
                "none, first make sure that no driver in any cluster writes below "
                "<spec.storage.uri>/<namespace>/<name>/. Then, if app.json is missing or damaged, set "
                "spec.startFrom.adopt to true: the application continues with the lineage and epoch in fence.json. If "
                "fence.json is missing or damaged as well, also set spec.startFrom.adoptLineage to the lineage in "
                "which the application ran last; the message lists those that there are. If only fence.json is "
                "damaged, delete it."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.NOTES_DAMAGED,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            (
                "The object in the application's folder that says which query has which checkpointLocation "
                "(names/unnamed-<lineage>.json; the message names it) is damaged. No query without a name starts, no "
                "new one with a name and a checkpointLocation, and no snapshot of the lineage is taken. Tidegate does "
                "not replace the object."
            ),
            remedy=(
                "Restore the object from an older object version in the bucket. If there is none, delete it, and give "
                "each query its name with .queryName(...) in the script: the folders in lineages/<lineage> are called "
                "after them."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.NOTHING_TO_ADOPT,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "spec.startFrom.adopt is true, but the application's folder has neither an app.json nor a lineage. "
                "Tidegate does not start an empty application in its place."
            ),
            remedy=(
                "Copy the files of the earlier application to <spec.storage.uri>/<namespace>/<name>/. If the "
                "application is to start without state, set spec.startFrom.adopt to false."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.STORAGE_EMPTY,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The application has run before, or started from a snapshot, and its folder in spec.storage has none "
                "of its state: spec.storage.endpoint or spec.storage.region may name another store, or the files were "
                "deleted. Tidegate does not start the application empty."
            ),
            remedy=(
                "Revert the edit of spec.storage. To use another store, set spec.suspend to true, copy all of "
                "<spec.storage.uri>/<namespace>/<name>/ to it, and then edit spec.storage.endpoint and set "
                "spec.suspend to false. If the files were deleted, restore them from older object versions in the "
                "bucket. If the application lost its status before it had copied its snapshot, it also continues once "
                'the StreamSnapshot of spec.startFrom.snapshotRef is Ready again. To give the state up, run "kubectl '
                'annotate streamingapp APP -n NAMESPACE --overwrite tidegate.dev/abandon-state=LINEAGE", where '
                "LINEAGE is the number in status.lineage (1 if there is none), set spec.upgrade.mode to Stateless, "
                "and change spec.restartNonce."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.STORAGE_OLDER,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The application's folder in spec.storage has an older state than the application has committed: the "
                "store that spec.storage.endpoint names has an older copy, or the files were restored from a backup. "
                "Tidegate does not continue from it, because the input since then would be processed again. "
                "Queries without state, and those that start empty each time, are not compared. Or the folder "
                "contradicts itself: app.json names a lineage, and a later one has batches, as in a bucket that was "
                "copied while the application ran."
            ),
            remedy=(
                "Revert the edit of spec.storage, or copy the newest files of "
                "<spec.storage.uri>/<namespace>/<name>/ to the store again while spec.suspend is true. If the older "
                "state is all there is, accept it: set spec.startFrom.adopt to true and spec.startFrom.adoptLineage "
                "to the lineage that the message names. Once the application runs, remove adoptLineage and "
                "set adopt to false."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.LINEAGE_NOT_EMPTY,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The application is to start without state (spec.upgrade.mode Stateless), or from a snapshot, but the "
                "folder of its new lineage already has files, which no recorded launch wrote."
            ),
            remedy=(
                "Move the folder that the message names to another place, or revert the spec to continue from the "
                "state that there is."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.PROTOCOL_MISMATCH,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The protocol versions of operator and runtime, by which they understand each other, differ by more "
                "than one."
            ),
            remedy=(
                "Upgrade what the message names: the operator or, if spec.application.runtime is Image, the image. "
                "Then change spec.restartNonce."
            ),
            after="Tidegate tries again only after a change of the spec.",
            start_fixes=False,
        ),
        Entry(
            Reason.BUCKET_NOT_FOUND,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            "The bucket does not exist.",
            remedy=(
                "Create the bucket. If spec.storage.uri is wrong, delete the application, and create it with the right "
                "one."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CREDENTIALS_MISSING,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            "The Secret of spec.storage.credentialsSecretRef, or a key of it, does not exist.",
            remedy=(
                "Create it, with the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Or remove "
                "spec.storage.credentialsSecretRef, which restarts the application, and give the ServiceAccount of its "
                "pods (spec.serviceAccountName) an identity of the cloud provider."
            ),
            after="A pod that waits sees the Secret within two minutes, when the kubelet refreshes its mount.",
        ),
        Entry(
            Reason.CREDENTIALS_REJECTED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            "The object store rejects the credentials.",
            remedy=(
                "Correct the Secret of spec.storage.credentialsSecretRef, or grant read, write, list and delete below "
                "spec.storage.uri."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CREDENTIALS_EXPIRED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "The object store no longer accepts the session token of the credentials: its time is over.",
            remedy=(
                "Write new credentials to the Secret of spec.storage.credentialsSecretRef before the former ones "
                "expire. Or remove spec.storage.credentialsSecretRef, which restarts the application, and give the "
                "ServiceAccount of its pods (spec.serviceAccountName) an identity of the cloud provider, which renews "
                "itself."
            ),
            after="The driver restarts with exponential back-off, and reads the Secret again each time.",
        ),
        Entry(
            Reason.STORAGE_UNAVAILABLE,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.UPGRADE),
            "The object store does not answer or has a fault of its own, or the endpoint or the region is wrong.",
            remedy="Check spec.storage.endpoint and spec.storage.region, the network and the store.",
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.STORAGE_THROTTLED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "The object store asks for fewer requests (503 SlowDown or 429), and did so longer than Spark retries.",
            remedy=(
                "Lower the number of requests: a longer trigger interval, or fewer spec.state.partitions. Or raise the "
                "limit of the store; Amazon's own raises it for each prefix after some minutes."
            ),
            after="The driver restarts with exponential back-off, and continues after the last committed batch.",
        ),
        Entry(
            Reason.CHECKPOINT_FILE_MISSING,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "An object of the checkpoint is not in the bucket any more, and Tidegate did not delete it: often a "
                "life-cycle rule of the bucket did, or a person."
            ),
            remedy=(
                "Exclude everything below spec.storage.uri from life-cycle rules that delete current versions, and "
                "restore the object that the message names from an older object version. If there is none, "
                "create the application again with another spec.storage.uri and, in spec.startFrom.snapshotRef, a "
                "snapshot of the former one."
            ),
            after="The driver restarts with exponential back-off; the restart budget is not spent.",
            start_fixes=False,
        ),
        Entry(
            Reason.STORAGE_UNSUITABLE,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "The object store ignores conditional writes, or lacks an operation; the message names it.",
            remedy=(
                "Upgrade the object store to a version with conditional writes (If-None-Match and If-Match of "
                "PutObject). To use another store, delete the application, and create it with that store in "
                "spec.storage; it then starts without its state."
            ),
            after="A new driver checks again within 5 minutes.",
            start_fixes=False,
            retried=True,
        ),
        Entry(
            Reason.CONNECTOR_MISSING,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "Spark in the image has no S3A connector.",
            remedy="Set spec.application.runtime to Injected, or use an image that holds the jars of the connector.",
            after="Tidegate tries again only after a change of the spec.",
            start_fixes=False,
        ),
        Entry(
            Reason.BROKER_UNAVAILABLE,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "A Kafka broker cannot be reached, or refuses the application.",
            remedy="Check the network and what the program uses: the address of the broker, topics and credentials.",
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.SOURCE_DATA_LOST,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.REHEARSAL, Place.UPGRADE),
            (
                "A source no longer has records that the application has to read next: a Kafka topic was deleted and "
                "created again, or its retention removed them. The message names topic, partition and offsets."
            ),
            remedy=(
                "Restore the records with their offsets if you can: the application then continues by itself. To keep "
                "the state and read from other offsets, set spec.upgrade.startingOffsets to the lineage in "
                "status.lineage and to offsets that the topic has, and change spec.restartNonce. To leave the lost "
                "records out, set the source option failOnDataLoss to false in the program. To give the state up, run "
                '"kubectl annotate streamingapp APP -n NAMESPACE --overwrite tidegate.dev/abandon-state=LINEAGE", '
                "where LINEAGE is the number in status.lineage, set spec.upgrade.mode to Stateless, and change "
                "spec.restartNonce."
            ),
            after=(
                "The driver restarts with exponential back-off; the restart budget is not spent. A new version that "
                "has committed nothing yet is rolled back."
            ),
            page="guide/lost-records.md",
            outlasts_rollback=True,
            start_fixes=False,
        ),
        Entry(
            Reason.DEPENDENCY_UNAVAILABLE,
            Fault.ENVIRONMENT,
            (Place.REHEARSAL, Place.REPARTITION),
            "The storage or a broker did not answer, or rejected the credentials.",
            remedy=(
                "Correct what the message names. After a repartition, change spec.restartNonce to try again; after a "
                "rehearsal, the upgrade continues without a result."
            ),
            page="guide/rehearse.md",
        ),
    ),
)
