"""Rehearsals and repartitions: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Rehearsals and repartitions",
    "guide/rehearse.md",
    (
        Entry(
            Reason.REHEARSAL_PASSED,
            Fault.NONE,
            (Place.EVENT, Place.UPGRADE),
            "The rehearsal passed: the new version works on a copy of the state.",
        ),
        Entry(
            Reason.REHEARSAL_FAILED,
            Fault.VERSION,
            (Place.EVENT, Place.UPGRADE),
            "The rehearsal failed, and the new version is not started; status.upgrade.rehearsal says why.",
            remedy=(
                "Fix the new version and change the spec; another spec.restartNonce rehearses the same version again. "
                "If you remove spec.upgrade.rehearsal, the same version starts at once, and is rolled back only if it "
                "fails before it is stable."
            ),
        ),
        Entry(
            Reason.REHEARSAL_INCONCLUSIVE,
            Fault.NONE,
            (Place.EVENT, Place.UPGRADE),
            (
                "The rehearsal showed nothing for or against the new version; the upgrade continues, and the new "
                "version starts."
            ),
        ),
        Entry(
            Reason.PLAN_INCOMPATIBLE,
            Fault.VERSION,
            (Place.REHEARSAL,),
            (
                "A query does not have the operators or sources of its checkpoint, or Spark or Tidegate does not "
                "accept the query."
            ),
            remedy=(
                "Give the query the operators and sources that its checkpoint has. To give up the state instead, run "
                '"kubectl annotate streamingapp APP -n NAMESPACE --overwrite tidegate.dev/abandon-state=LINEAGE", '
                "where LINEAGE is the number in status.lineage, then in one edit remove spec.upgrade.rehearsal and set "
                "spec.upgrade.mode to Stateless."
            ),
        ),
        Entry(
            Reason.STATE_SCHEMA,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.EVENT, Place.REHEARSAL, Place.UPGRADE),
            (
                "The version has other columns or types than the state, or the same in another order, and Spark would "
                "read one column as another without an error: the query does not start. As an event: a column of the "
                "state has another name in the version, and the query runs."
            ),
            remedy=(
                "Change the script back to the columns, order and types that the state has. Or create a StreamSnapshot "
                "with spec.export, and another StreamingApp that starts from what it exported "
                "(spec.startFrom.exportedState)."
            ),
            after="Tidegate tries again only after a change of the spec.",
            page="guide/upgrade.md#state-that-would-be-misread",
            start_fixes=False,
        ),
        Entry(
            Reason.STATE_NOT_COMPARED,
            Fault.NONE,
            (Place.EVENT,),
            (
                "What columns a query's state has in this version cannot be found out before it starts. Spark compares "
                "types alone: columns of one type that changed places would be read for one another. The message of a "
                "rehearsal says it as well."
            ),
            remedy=(
                "If the version changes grouping columns, aggregations or state of its own, compare their order "
                "yourself with the previous version."
            ),
            page="guide/upgrade.md#state-that-would-be-misread",
        ),
        Entry(
            Reason.START_FAILED,
            Fault.VERSION,
            (Place.REHEARSAL, Place.REPARTITION),
            "The process does not start, because of its image, program or libraries.",
            remedy=(
                "Correct what the message names; if that is outside of the spec, change spec.restartNonce to try again."
            ),
        ),
        Entry(
            Reason.STATE_INCOMPATIBLE,
            Fault.DATA,
            (Place.REHEARSAL,),
            (
                "The rehearsal could not start from the copy of the state: files of it are missing, damaged or not "
                "readable."
            ),
            remedy="Correct what the message names, then change spec.restartNonce to rehearse the version again.",
        ),
        Entry(
            Reason.NO_COPY,
            Fault.NONE,
            (Place.REHEARSAL,),
            (
                "There was no copy of the state to rehearse on: the previous version did not run, or stopped while its "
                "state was copied."
            ),
        ),
        Entry(
            Reason.NO_INPUT,
            Fault.NONE,
            (Place.REHEARSAL,),
            "Too few batches were committed in time, because there was no input.",
            remedy=(
                "For the next rehearsal, raise spec.upgrade.rehearsal.timeoutSeconds, or lower "
                "spec.upgrade.rehearsal.batches."
            ),
            after="The upgrade continues without a result.",
        ),
        Entry(
            Reason.NO_ROOM,
            Fault.CLUSTER,
            (Place.REHEARSAL, Place.REPARTITION),
            (
                "The pod found no node or was not admitted in time: spec.upgrade.rehearsal.timeoutSeconds for a "
                "rehearsal, five minutes for a repartition. Or three pods of a repartition were lost."
            ),
            remedy=(
                "Free resources or add nodes, raise the ResourceQuota of the namespace, or lower "
                "spec.upgrade.rehearsal.resources or spec.state.repartition.resources. After a repartition, change "
                "spec.restartNonce to try again; after a rehearsal, the upgrade continues without a result."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.DEADLINE_EXCEEDED,
            Fault.VERSION,
            (Place.REHEARSAL, Place.REPARTITION, Place.EXPORT),
            "The rehearsal, repartition or export was not complete in time; the message says how far it was.",
            remedy=(
                "Raise the timeoutSeconds, or the resources, that the message names. After a repartition also change "
                "spec.restartNonce, and after an export spec.export.nonce; after a rehearsal, the upgrade continues "
                "without a result."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.STATE_PARTITIONS_KEPT,
            Fault.NONE,
            (Place.APP, Place.EVENT, Place.UPGRADE),
            (
                "spec.state.partitions differs from the number of partitions that the state has, and does not take "
                "effect yet: the running version is not stable, or the application started from a snapshot with "
                "another number of partitions."
            ),
            remedy=(
                "While the running version is not stable, wait. After a start from a snapshot, set "
                "spec.state.partitions to the number that the state has (in the message and in status.statePartitions) "
                "and, when the application is stable, to the wanted one."
            ),
            after="In the first case, the state is repartitioned when the running version is stable.",
            page="guide/repartition.md",
        ),
        Entry(
            Reason.REPARTITIONED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The state is in its new number of partitions.",
            page="guide/repartition.md",
        ),
        Entry(
            Reason.SPARK_TOO_OLD,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "Spark before 4.2 cannot repartition state.",
            remedy=(
                "Set spec.state.partitions back to the number in status.statePartitions. Then set "
                "spec.application.image to one with Spark 4.2 or newer, and change spec.state.partitions when that "
                "version is stable."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.UNSUPPORTED_PROVIDER,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "The state store is not RocksDB.",
            remedy=(
                "Set spec.state.partitions back to the number in status.statePartitions. RocksDB "
                "(spark.sql.streaming.stateStore.providerClass in spec.sparkConf) takes effect only when the "
                "application starts without the state that it has (spec.upgrade.mode Stateless)."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.UNSUPPORTED_OPERATOR,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "Spark cannot determine the keys of an operator of the query; a limit is such an operator.",
            remedy=(
                "Set spec.state.partitions back to the number in status.statePartitions. Without that operator, the "
                "query no longer fits its checkpoint, and has to start without the state that it has "
                "(spec.upgrade.mode Stateless)."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.STATE_IN_ONE_PLACE,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "An aggregation without a key has all of its state in the first partition.",
            remedy=(
                "Set spec.state.partitions back to the number in status.statePartitions. More partitions would not "
                "help."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.STATE_UNREADABLE,
            Fault.DATA,
            (Place.UPGRADE, Place.REPARTITION, Place.EXPORT),
            "The state cannot be read: files are missing or damaged, or another Spark wrote it.",
            remedy=(
                "Restore the files that the message names. Or, if another Spark wrote the state, set "
                "spec.application.image (for an export spec.export.image) to an image with that Spark. Then change "
                "spec.restartNonce, for an export spec.export.nonce."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.BATCH_UNCOMMITTED,
            Fault.NONE,
            (Place.UPGRADE, Place.REPARTITION),
            (
                "The previous version was ended inside a batch, and has to run that batch again, under the same "
                "number, before its state can be repartitioned."
            ),
            remedy=(
                "If batches take longer than spec.driver.stopGracePeriodSeconds, raise it. If the message names a "
                "query that the previous version has no more, delete the object that it names, and change "
                "spec.restartNonce."
            ),
            after=(
                "The repartition is tried again, at most twice, when that version is stable again or waits for input. "
                "After that, the upgrade is refused."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.SPARK_FAILED,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "Spark could not repartition the state; the message has its exception.",
            remedy=(
                "Correct what the message names, then change spec.restartNonce; to cancel, set spec.state.partitions "
                "back to the number in status.statePartitions."
            ),
            page="guide/repartition.md",
        ),
        Entry(
            Reason.STATE_DIFFERS,
            Fault.CLUSTER,
            (Place.UPGRADE, Place.REPARTITION),
            "The state was not the same after the repartition. What the repartition wrote is not used.",
            remedy=(
                "Report it to the developers of Tidegate, with the message and, if the pod still exists, its log: "
                '"kubectl logs POD -n NAMESPACE".'
            ),
            after="The previous version continues with the state as it was.",
            page="guide/repartition.md",
        ),
        Entry(
            Reason.FILE_SINK_CONTINUED,
            Fault.NONE,
            (Place.EVENT,),
            (
                "A repartition counts as a batch, which writes no file; it was added to the log of a file sink (its "
                "folder _spark_metadata), so that the batches in it stay without a gap. No output is lost or repeated."
            ),
            page="guide/repartition.md",
        ),
    ),
)
