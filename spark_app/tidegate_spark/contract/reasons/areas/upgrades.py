"""Upgrades and rollbacks: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Upgrades and rollbacks",
    "guide/upgrade.md",
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
            page="guide/rehearse.md",
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
            remedy='If it takes long, see the log of the pod that the message names: "kubectl logs POD -n NAMESPACE".',
            page="guide/repartition.md",
        ),
        Entry(
            Reason.UPGRADE_REPARTITIONED,
            Fault.NONE,
            (Place.EVENT,),
            "The state is in its new number of partitions, and the new version starts on it.",
            page="guide/repartition.md",
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
            (
                "The new version did not become stable, and runs nevertheless; the message says why it was not rolled "
                "back."
            ),
            remedy=(
                "Fix the new version and change the spec. Or roll back, if status.upgrade.rollbackSnapshot.id is "
                "there: set spec.upgrade.rollbackTo to it; the batches after that snapshot run again, and outputs may "
                "get their data twice."
            ),
            after="The upgrade is Completed if the new version becomes stable after all.",
        ),
        Entry(
            Reason.UPGRADE_ROLLING_BACK,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "The previous version, which was stable, is being started with the state that it had.",
            page="guide/roll-back.md",
        ),
        Entry(
            Reason.UPGRADE_ROLLED_BACK,
            Fault.VERSION,
            (Place.APP, Place.EVENT),
            "The previous version runs again, instead of the one in the spec; status.upgrade says why.",
            remedy="Correct what status.upgrade.message names, and change the spec.",
            after="The new version is tried again only after a change of the spec, such as spec.restartNonce.",
            page="guide/roll-back.md",
        ),
        Entry(
            Reason.UPGRADE_REFUSED,
            Fault.VERSION,
            (Place.APP, Place.EVENT),
            "The new version was not started, and the previous version continues; status.upgrade says why.",
            remedy="Correct what status.upgrade.message names, and change the spec.",
            after=(
                "Tidegate tries again after a change of the spec; if something was missing that the edit names, also "
                "once that exists."
            ),
        ),
        Entry(
            Reason.UPGRADE_WITHDRAWN,
            Fault.NONE,
            (Place.EVENT,),
            "The spec was set back before the new version was started; the previous version continues.",
        ),
        Entry(
            Reason.UPGRADING,
            Fault.NONE,
            (Place.APP,),
            "The application works, and an upgrade is under way.",
        ),
        Entry(
            Reason.UPGRADE_TIMEOUT,
            Fault.VERSION,
            (Place.UPGRADE,),
            "The new version was not stable within spec.upgrade.timeoutSeconds.",
            remedy=(
                "Fix the new version and change the spec; or raise spec.upgrade.timeoutSeconds and change "
                "spec.restartNonce, which tries the same version again."
            ),
        ),
        Entry(
            Reason.LAUNCHED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The new version was started, and has to become stable now (its gate).",
        ),
        Entry(
            Reason.INPUT_ARRIVED,
            Fault.NONE,
            (Place.UPGRADE,),
            (
                "Input arrived after a time without any, and the count of spec.upgrade.timeoutSeconds started again "
                "from 0."
            ),
        ),
        Entry(
            Reason.STABLE,
            Fault.NONE,
            (Place.UPGRADE,),
            (
                "The new version committed spec.upgrade.stableBatches batches of each query that had input, without a "
                "failure."
            ),
        ),
        Entry(
            Reason.COPIED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The copy of the state is complete.",
        ),
        Entry(
            Reason.COPY_REMOVED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The copy of the state was deleted before it was used. The running version was not stopped.",
            remedy="If the upgrade was to repartition the state, it is refused: change spec.restartNonce to try again.",
            after=(
                "Any other upgrade continues: the driver of the new version makes the rollback snapshot, so a rollback "
                "stays possible."
            ),
        ),
        Entry(
            Reason.DRIVER_GONE,
            Fault.NONE,
            (Place.UPGRADE,),
            "The driver ended before the state was copied.",
            after=(
                "The upgrade continues without the copy: the driver of the new version makes the rollback snapshot, so "
                "a rollback stays possible."
            ),
        ),
        Entry(
            Reason.STATE_ABANDONED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The new version starts without state, because spec.upgrade.mode is Stateless.",
        ),
        Entry(
            Reason.ABANDON_STATE_UNCONFIRMED,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE),
            "spec.upgrade.mode Stateless would give up the state, and nobody has confirmed that.",
            remedy=(
                'To keep the state, set spec.upgrade.mode to Snapshot. To give it up, run "kubectl annotate '
                'streamingapp APP -n NAMESPACE --overwrite tidegate.dev/abandon-state=LINEAGE"; LINEAGE is the number '
                "in status.lineage."
            ),
            after="Each of the two starts the upgrade.",
        ),
        Entry(
            Reason.STATE_MISSING,
            Fault.DATA,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "An upgrade found no committed batch to continue from in the storage. The new version has processed "
                "nothing."
            ),
            remedy=(
                "Set spec.suspend to true, restore the files below <spec.storage.uri>/<namespace>/<name>/lineages/, "
                'set spec.suspend to false, and change spec.restartNonce. To give the state up instead, run "kubectl '
                'annotate streamingapp APP -n NAMESPACE --overwrite tidegate.dev/abandon-state=LINEAGE", where '
                "LINEAGE is the number in status.lineage, set spec.upgrade.mode to Stateless, and change "
                "spec.restartNonce."
            ),
            after="Tidegate tries again only after a change of the spec.",
        ),
        Entry(
            Reason.ROLLBACK_REQUESTED,
            Fault.NONE,
            (Place.UPGRADE,),
            "spec.upgrade.rollbackTo asks for the rollback.",
            page="guide/roll-back.md",
        ),
        Entry(
            Reason.ROLLBACK_IGNORED,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "spec.upgrade.rollbackTo is not the id of a rollback snapshot that can be used; the message has that "
                "id, if there is one."
            ),
            remedy=(
                "Nothing has to be done, and the field can stay. To roll back now, set it to "
                "status.upgrade.rollbackSnapshot.id: the batches after that snapshot run again, and outputs may get "
                "their data twice."
            ),
            page="guide/roll-back.md",
        ),
        Entry(
            Reason.ROLLBACK_SNAPSHOT_LOST,
            Fault.DATA,
            (Place.APP,),
            "spec.upgrade.rollbackTo names the rollback snapshot, and it is lost. The running version continues.",
            remedy=(
                "Remove spec.upgrade.rollbackTo. To run the previous version without that snapshot, change the spec "
                "back to it: it continues from the newest batch."
            ),
            page="guide/roll-back.md",
        ),
        Entry(
            Reason.SECRET_NOT_RECORDED,
            Fault.VERSION,
            (Place.APP,),
            (
                "The version to roll back to had a secret in plain text in the field that the message names. Tidegate "
                "does not record secrets, and the spec no longer has it. The running version continues."
            ),
            remedy=(
                "Set that field of the spec to the secret again (for a variable, valueFrom.secretKeyRef also works), "
                "or remove spec.upgrade.rollbackTo."
            ),
            page="design/secrets.md#a-version-is-recorded-without-its-secrets",
        ),
        Entry(
            Reason.SPEC_REVERTED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The spec was set back before the new version was stable.",
            after=(
                "The previous version continues; if the new version had already started, the previous one starts again "
                "with the state that it had, or from the newest batch if there is no rollback snapshot."
            ),
        ),
        Entry(
            Reason.SUPERSEDED,
            Fault.NONE,
            (Place.UPGRADE,),
            "The spec changed again before the new version was stable, and the newer version takes its place.",
            after=(
                "What the version did within spec.upgrade.timeoutSeconds is rolled back first, and the newer one "
                "starts from the state that the stable version had; else it continues with the state there is."
            ),
        ),
        Entry(
            Reason.STARTING_OFFSETS_UNUSED,
            Fault.NONE,
            (Place.OFFSETS_UNUSED,),
            "spec.upgrade.startingOffsets is not in use; the message says whether it will be.",
            remedy="Do what the message says if you want these offsets, or remove them from the spec.",
            page="guide/lost-records.md#the-same-application-with-other-offsets",
        ),
        Entry(
            Reason.FILE_SINK_ROLLED_BACK,
            Fault.NONE,
            (Place.EVENT,),
            (
                "The log of a file sink (its folder _spark_metadata) was rolled back with the state, and the later "
                "batches run again. The files of their first run stay: readers that use the log ignore them, but "
                "readers that list the folder see these rows twice."
            ),
            page="guide/roll-back.md#what-a-rollback-means-for-outputs",
        ),
        Entry(
            Reason.SOURCE_FILES_CLEANED,
            Fault.NONE,
            (Place.EVENT,),
            (
                "A query reads files with the option cleanSource, so Spark deletes or moves each file after its batch. "
                "A rollback, or a start from a snapshot, lists the folder to read the later files again: those that "
                "are gone are left out without an error."
            ),
            remedy=(
                "Set cleanSource to archive: files can be put back. Or remove it, and let the object store expire "
                "files that are older than any snapshot you would go back to."
            ),
            after="In a rehearsal cleanSource is off.",
            page="guide/roll-back.md#what-a-rollback-means-for-inputs",
        ),
        Entry(
            Reason.SOURCE_FILES_MISSING,
            Fault.DATA,
            (Place.EVENT,),
            (
                "After a rollback, a query cannot read again what the version that was rolled back had read: its "
                "source has deleted or moved the files (cleanSource). The message names some, the driver's log all."
            ),
            remedy=(
                "Put the files back into the folder of the source, from the archive or from copies: the query reads "
                "them as new files."
            ),
            after="The query runs without them.",
            page="guide/roll-back.md#what-a-rollback-means-for-inputs",
        ),
    ),
)
