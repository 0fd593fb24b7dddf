"""Upgrades, rehearsals, repartitions and rollbacks: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Upgrades, rehearsals, repartitions and rollbacks",
    "guide.md#upgrade-it",
    (
        Entry(
            Reason.UPGRADE_COPYING,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "An upgrade is under way: the state is copied, and the previous version runs.",
        ),
        Entry(
            Reason.UPGRADE_REHEARSING,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "An upgrade is under way: the new version is rehearsed, and the previous version runs.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.UPGRADE_STOPPING,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "An upgrade is under way: the previous version stops at a batch boundary.",
        ),
        Entry(
            Reason.UPGRADE_REPARTITIONING,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "Nothing runs: a pod repartitions the state, or is about to.",
            remedy="See the log of the pod if it takes long.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.UPGRADE_REPARTITIONED,
            Fault.NONE,
            (Place.EVENT,),
            "The state is in its new number of partitions, and the new version starts on it.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.UPGRADE_GATE,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "The new version runs, and has not shown yet that it is stable.",
        ),
        Entry(
            Reason.UPGRADE_COMPLETED,
            Fault.NONE,
            (Place.EVENT,),
            "The new version is stable.",
        ),
        Entry(
            Reason.UPGRADE_FAILED,
            Fault.VERSION,
            (Place.APP, Place.EVENT),
            "The new version failed at its gate and runs nevertheless; the message says why it was not rolled back.",
            remedy="Fix it, or roll it back.",
            after="Completed if it becomes stable.",
        ),
        Entry(
            Reason.UPGRADE_ROLLING_BACK,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "The last stable version is being started, with the state that it had.",
            page="guide.md#take-it-back",
        ),
        Entry(
            Reason.UPGRADE_ROLLED_BACK,
            Fault.VERSION,
            (Place.APP, Place.EVENT),
            "The last stable version runs, and the spec's does not; status.upgrade says why.",
            remedy="Correct what is named and change the spec.",
            after="The new version is tried again only after a change of the spec, such as spec.restartNonce.",
            page="guide.md#take-it-back",
        ),
        Entry(
            Reason.UPGRADE_REFUSED,
            Fault.VERSION,
            (Place.APP, Place.EVENT),
            "The new version was not started, and the previous version continues; status.upgrade says why.",
            remedy="Correct what is named and change the spec.",
            after="Tidegate tries again only after a change of the spec.",
        ),
        Entry(
            Reason.UPGRADE_WITHDRAWN,
            Fault.NONE,
            (Place.EVENT,),
            "The spec was set back before the new version was started.",
        ),
        Entry(
            Reason.UPGRADING,
            Fault.NONE,
            (Place.APP,),
            "The application works, and an upgrade is under way (condition Available).",
        ),
        Entry(
            Reason.UPGRADE_TIMEOUT,
            Fault.VERSION,
            (Place.UPGRADE,),
            "The new version was not stable within spec.upgrade.timeoutSeconds.",
            remedy="Fix it and change the spec, or raise spec.upgrade.timeoutSeconds.",
        ),
        Entry(
            Reason.LAUNCHED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The new version was started, and its gate is open.",
        ),
        Entry(
            Reason.INPUT_ARRIVED,
            Fault.NONE,
            (Place.UPGRADE,),
            "Input arrived at the gate after a pause, and its time counts from there.",
        ),
        Entry(
            Reason.GATE_OVERRUN,
            Fault.NONE,
            (Place.UPGRADE,),
            "The time of the gate passed beside a later edit from which no pod can be built.",
        ),
        Entry(
            Reason.STABLE,
            Fault.NONE,
            (Place.UPGRADE,),
            "The new version committed spec.upgrade.stableBatches batches of each query without a restart.",
        ),
        Entry(
            Reason.COPIED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The copy of the state is complete.",
        ),
        Entry(
            Reason.COPY_REMOVED,
            Fault.DATA,
            (Place.UPGRADE,),
            "The copy of the state was removed before it was used.",
            after="The upgrade continues; one that was to repartition the state is refused, and nothing was stopped.",
        ),
        Entry(
            Reason.DRIVER_GONE,
            Fault.CLUSTER,
            (Place.UPGRADE,),
            "The driver ended before the state was copied.",
            after="The upgrade continues without the copy.",
        ),
        Entry(
            Reason.STATE_ABANDONED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The new version starts with an empty lineage, as spec.upgrade.mode Stateless says.",
        ),
        Entry(
            Reason.ABANDON_STATE_UNCONFIRMED,
            Fault.VERSION,
            (Place.UPGRADE,),
            "spec.upgrade.mode Stateless would give up state, and nobody has confirmed that.",
            remedy=(
                "To confirm it, annotate the application as the message says; to keep the state, change "
                "spec.upgrade.mode."
            ),
        ),
        Entry(
            Reason.STATE_MISSING,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "An upgrade found no committed batch to continue from. Nothing was started.",
            remedy=(
                "Restore the files below spec.storage.uri and change spec.restartNonce, or give up the state with "
                "spec.upgrade.mode Stateless."
            ),
            after="Tidegate tries again only after a change of the spec.",
        ),
        Entry(
            Reason.ROLLBACK_REQUESTED,
            Fault.NONE,
            (Place.UPGRADE,),
            "spec.upgrade.rollbackTo asks for the rollback.",
            page="guide.md#take-it-back",
        ),
        Entry(
            Reason.ROLLBACK_IGNORED,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "spec.upgrade.rollbackTo names no rollback snapshot that can be rolled back to; the message has "
                "the id of the one there is."
            ),
            remedy="Write that id, or remove spec.upgrade.rollbackTo.",
            page="guide.md#take-it-back",
        ),
        Entry(
            Reason.ROLLBACK_SNAPSHOT_LOST,
            Fault.DATA,
            (Place.APP,),
            "spec.upgrade.rollbackTo names the rollback snapshot, and it is lost. The running version continues.",
            remedy=(
                "Remove spec.upgrade.rollbackTo; an older version, set as an edit, continues with the newest state."
            ),
            page="guide.md#take-it-back",
        ),
        Entry(
            Reason.SECRET_NOT_RECORDED,
            Fault.VERSION,
            (Place.APP,),
            (
                "The version to roll back to had a secret in plain text, which is not recorded, and the spec has none "
                "in that place any more. The running version continues."
            ),
            remedy=(
                "Put the secret into that field of the spec again (for a variable, valueFrom.secretKeyRef does as "
                "well), or remove spec.upgrade.rollbackTo."
            ),
            page="design/secrets.md#a-version-is-recorded-without-its-secrets",
        ),
        Entry(
            Reason.SPEC_REVERTED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The spec was set back before the new version was stable.",
        ),
        Entry(
            Reason.REHEARSAL_PASSED,
            Fault.NONE,
            (Place.EVENT, Place.UPGRADE),
            "The rehearsal passed.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.REHEARSAL_FAILED,
            Fault.VERSION,
            (Place.EVENT, Place.UPGRADE),
            "The rehearsal failed, and the new version is not started; status.upgrade.rehearsal says why.",
            remedy=(
                "Fix the new version and change the spec (another spec.restartNonce rehearses the same version again), "
                "or remove spec.upgrade.rehearsal."
            ),
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.REHEARSAL_INCONCLUSIVE,
            Fault.NONE,
            (Place.EVENT, Place.UPGRADE),
            "The rehearsal showed nothing for or against the new version; the upgrade continues to the gate.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.PLAN_INCOMPATIBLE,
            Fault.VERSION,
            (Place.REHEARSAL,),
            "A query has other operators or sources than its checkpoint, or Spark does not accept it.",
            remedy="Fix the query, or start a new lineage.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.STATE_SCHEMA,
            Fault.VERSION,
            (Place.REHEARSAL,),
            "The state has other columns or types than the new version expects.",
            remedy="Fix the query, or start from exported state.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.START_FAILED,
            Fault.VERSION,
            (Place.REHEARSAL, Place.REPARTITION),
            "The process does not start: its image, program or libraries.",
            remedy="Correct what the message names.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.STATE_INCOMPATIBLE,
            Fault.DATA,
            (Place.REHEARSAL,),
            "The new version cannot start from the state.",
            remedy="Correct what the message names.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.NO_COPY,
            Fault.NONE,
            (Place.REHEARSAL,),
            (
                "There was no copy of the state to rehearse on: the previous version did not run, or stopped "
                "while its state was copied."
            ),
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.NO_INPUT,
            Fault.NONE,
            (Place.REHEARSAL,),
            "Too few batches came in time, and there was nothing to read.",
            remedy="Raise spec.upgrade.rehearsal.timeoutSeconds, or lower spec.upgrade.rehearsal.batches.",
            page="guide.md#rehearse-it",
        ),
        Entry(
            Reason.NO_ROOM,
            Fault.CLUSTER,
            (Place.REHEARSAL, Place.REPARTITION),
            "The pod found no node or was not admitted for five minutes, or was lost again and again.",
            remedy="Check the nodes and the ResourceQuota of the namespace, or request less.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.DEADLINE_EXCEEDED,
            Fault.VERSION,
            (Place.REHEARSAL, Place.REPARTITION, Place.EXPORT),
            "It was not complete in time; the message says how far it was.",
            remedy="Raise the timeoutSeconds, or the resources, that the message names.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.STATE_PARTITIONS_KEPT,
            Fault.NONE,
            (Place.APP, Place.EVENT, Place.UPGRADE),
            (
                "spec.state.partitions differs from the number that the state has, and does not take effect yet: "
                "the running version is not stable, or the snapshot's state has its own number."
            ),
            after="Once the version is stable.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.REPARTITIONED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The state is in its new number of partitions.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.SPARK_TOO_OLD,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "Spark before 4.2 cannot repartition state.",
            remedy="Upgrade the image first, in an upgrade of its own.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.UNSUPPORTED_PROVIDER,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "The state store is not RocksDB.",
            remedy="Keep the number of partitions, or start a new lineage with RocksDB.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.UNSUPPORTED_OPERATOR,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "Spark cannot determine the keys of an operator, such as a limit.",
            remedy="Keep the number of partitions, or remove the operator first.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.STATE_IN_ONE_PLACE,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "An aggregation without a key has all of its state in the first partition.",
            remedy="Keep the number of partitions: more would not help.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.STATE_UNREADABLE,
            Fault.DATA,
            (Place.UPGRADE, Place.REPARTITION, Place.EXPORT),
            "The state cannot be read: files are missing or damaged, or another Spark wrote it.",
            remedy=(
                "Verify a snapshot of it, or use an image with the Spark that wrote it; for an export that is "
                "spec.export.image."
            ),
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.BATCH_UNCOMMITTED,
            Fault.NONE,
            (Place.UPGRADE, Place.REPARTITION),
            "The previous version was ended inside a batch, and runs it again under the same number first.",
            remedy="Raise spec.driver.stopGracePeriodSeconds if batches take longer.",
            after="The repartition is deferred twice.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.SPARK_FAILED,
            Fault.VERSION,
            (Place.UPGRADE, Place.REPARTITION),
            "Spark's own repartition failed; the message has Spark's.",
            remedy="See the log of the pod.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.STATE_DIFFERS,
            Fault.CLUSTER,
            (Place.UPGRADE, Place.REPARTITION),
            "The state was not the same after the repartition. The new lineage is not used.",
            remedy="Report it, with the message and the log of the pod.",
            page="guide.md#divide-the-state-anew",
        ),
        Entry(
            Reason.FILE_SINK_ROLLED_BACK,
            Fault.NONE,
            (Place.EVENT,),
            "A file sink dropped batches from its log that run again after a rollback.",
            page="guide.md#what-a-rollback-means-for-outputs",
        ),
        Entry(
            Reason.FILE_SINK_CONTINUED,
            Fault.NONE,
            (Place.EVENT,),
            "The log of a file sink records that a repartition output nothing.",
            page="guide.md#divide-the-state-anew",
        ),
    ),
)
