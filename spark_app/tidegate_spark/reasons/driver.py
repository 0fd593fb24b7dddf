"""An application and its driver: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "An application and its driver",
    "guide.md#watch-it",
    (
        Entry(
            Reason.RUNNING,
            Fault.NONE,
            (Place.APP,),
            "The driver runs.",
        ),
        Entry(
            Reason.PAUSED,
            Fault.NONE,
            (Place.APP,),
            "The driver runs, and a control message has paused its queries.",
            remedy="Send the message resume to continue.",
            page="guide.md#control-messages",
        ),
        Entry(
            Reason.COMPLETED,
            Fault.NONE,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.EXPORT),
            (
                "What was to be done is done: all queries of an application ended by themselves, or a snapshot or "
                "an export is complete."
            ),
        ),
        Entry(
            Reason.STOPPED,
            Fault.NONE,
            (Place.LAST_EXIT, Place.APP, Place.REHEARSAL, Place.REPARTITION),
            "The process was asked to stop from outside, and stopped at a batch boundary.",
            after="The driver starts again.",
        ),
        Entry(
            Reason.DRIVER_STARTING,
            Fault.NONE,
            (Place.APP,),
            "The driver pod was created and has not answered yet.",
            remedy="Wait: the first pull of a large image takes minutes.",
        ),
        Entry(
            Reason.DRIVER_STOPPING,
            Fault.NONE,
            (Place.APP,),
            "The driver finishes its batch.",
        ),
        Entry(
            Reason.DRIVER_NOT_READY,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "The application was running, and now not all of its queries are; or neither the driver's agent "
                "nor the kubelet confirms that they are."
            ),
            remedy="If it stays, check the node, and the network between operator and driver.",
        ),
        Entry(
            Reason.AGENT_UNREACHABLE,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "The driver runs, and its agent, which the kubelet reaches, does not answer the operator. Batches "
                "go on; rescaling, snapshots, upgrades through one, control messages and metrics wait."
            ),
            remedy="Allow pods of the operator to reach port 8091 of the driver pod (network policies).",
            after="The operator asks the agent again.",
        ),
        Entry(
            Reason.RESTARTED,
            Fault.NONE,
            (Place.APP,),
            "The application has finished, and spec.restart.policy is Always.",
            after="The driver starts again, after 10 seconds to 5 minutes if it ends quickly.",
        ),
        Entry(
            Reason.RESTART_BUDGET_EXHAUSTED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "More failures came within the window than spec.restart.maxFailures allows. The message has the "
                "last exception."
            ),
            remedy="Fix it and change the spec, or change spec.restartNonce, to start the application again.",
            after="Only after a change of the spec; a change of spec.restart alone is not enough.",
        ),
        Entry(
            Reason.RESTART_POLICY_NEVER,
            Fault.VERSION,
            (Place.APP,),
            "The application failed, and spec.restart.policy is Never.",
            remedy="Fix it and change the spec, or change spec.restartNonce, to start the application again.",
            after="After a change of the spec, that of the policy included.",
        ),
        Entry(
            Reason.STALLED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "A query made no progress for spec.restart.stallTimeoutSeconds.",
            remedy="See its logs, and raise spec.restart.stallTimeoutSeconds if single tasks take that long.",
            after="The driver restarts with exponential back-off.",
        ),
        Entry(
            Reason.FENCED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.REPARTITION, Place.UPGRADE),
            "Another process took over the storage (fence.json): this application also runs elsewhere.",
            remedy="End the other one, then change spec.restartNonce.",
            after="Tidegate tries again only after a change of the spec.",
        ),
        Entry(
            Reason.EPOCH_ADOPTED,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            "The status was lost, and the storage has a later epoch. The application continues from there.",
        ),
        Entry(
            Reason.SPEC_CHANGED,
            Fault.NONE,
            (Place.APP, Place.UPGRADE),
            "The spec was edited; the driver stops at a batch boundary.",
            after="The new version starts.",
        ),
        Entry(
            Reason.SUSPENDING,
            Fault.NONE,
            (Place.APP,),
            "spec.suspend is true, and the driver stops at a batch boundary.",
            after="It is suspended then.",
        ),
        Entry(
            Reason.RESUMING,
            Fault.NONE,
            (Place.APP,),
            "The driver stops for an edit that has been reverted since.",
            after="A new driver starts.",
        ),
        Entry(
            Reason.SUSPENDED,
            Fault.NONE,
            (Place.APP, Place.UPGRADE),
            "The application is suspended, and its state is retained.",
            remedy="Set spec.suspend to false to continue.",
        ),
        Entry(
            Reason.EARLIER_DRIVER,
            Fault.NONE,
            (Place.APP,),
            "A pod of a deleted application of the same name still exists.",
            after="It is deleted first.",
        ),
        Entry(
            Reason.RELAUNCH_DELAYED,
            Fault.CLUSTER,
            (Place.APP,),
            "The driver pod was lost several times in quick succession.",
            remedy="See the events for who deletes it.",
            after="Tidegate retries after 10 seconds to 5 minutes.",
        ),
        Entry(
            Reason.MAIN_NOT_FOUND,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The file or module of spec.application.main, or a file of spec.application.pyFiles, is not in "
                "the image."
            ),
            remedy="Check spec.application.main against the content of the image.",
            after="The driver restarts with exponential back-off.",
        ),
        Entry(
            Reason.APPLICATION_FAILED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.REHEARSAL, Place.UPGRADE),
            "The script or a query raised an exception; status.lastExit has its class and message.",
            remedy="Fix the application. It restarts with exponential back-off, and at once when its spec changes.",
            page="guide.md#logs",
        ),
        Entry(
            Reason.QUERY_REFUSED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "A query cannot run safely: two share a checkpoint, a fork would write where its original writes, "
                "an export was not read completely, a file sink would leave batches out, or an old checkpoint is "
                "without the control stream. The message says which."
            ),
            remedy="Fix the queries of the application and its image.",
            after="Tidegate tries again only after a change of the spec.",
            page="guide.md#write-your-application",
        ),
        Entry(
            Reason.DRIVER_CRASHED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "Spark's JVM, or the whole process, was killed or ended without a termination message.",
            remedy="See its logs. It restarts with exponential back-off.",
            page="guide.md#logs",
        ),
        Entry(
            Reason.OUT_OF_MEMORY,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.REHEARSAL, Place.EXPORT, Place.REPARTITION, Place.UPGRADE),
            "The container needed more than its memory and was killed.",
            remedy="Raise the memory request that the message names.",
            after="A driver restarts with exponential back-off.",
        ),
        Entry(
            Reason.DRIVER_LOST,
            Fault.CLUSTER,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "The pod was ended from outside: an eviction, or a node that shut down or restarted.",
            after="A new driver pod follows.",
        ),
        Entry(
            Reason.UNKNOWN_TERMINATION,
            Fault.CLUSTER,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The driver ended with a termination message that this operator does not know: its image has a "
                "newer runtime."
            ),
            remedy="Upgrade the operator.",
            after="Tidegate tries again only after a change of the spec.",
        ),
        Entry(
            Reason.UNKNOWN,
            Fault.CLUSTER,
            (
                Place.APP,
                Place.LAST_EXIT,
                Place.UPGRADE,
                Place.REHEARSAL,
                Place.REPARTITION,
                Place.SNAPSHOT,
                Place.VERIFIED,
                Place.EXPORT,
                Place.MESSAGE,
            ),
            "The runtime reports a reason or a state that this operator does not know: it is newer.",
            remedy="Upgrade the operator.",
        ),
        Entry(
            Reason.INVALID_SPEC,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE, Place.REPARTITION, Place.SNAPSHOT, Place.MESSAGE, Place.EXPORT),
            (
                "No pod can be built from the spec: memory that does not fit, a template that cannot be merged, "
                "fields or values that no pod may have. Or the resource was stored under another version of the "
                "CRD, and this operator cannot read it."
            ),
            remedy="Correct the field that the message names.",
            after="Tidegate tries again after a change of the spec.",
            page="guide.md#an-edit-that-can-not-be-built",
        ),
        Entry(
            Reason.PLAINTEXT_SECRET,
            Fault.VERSION,
            (Place.PLAINTEXT_SECRETS, Place.EVENT),
            (
                "The spec has a value that looks like a secret, by the name of the field or by its own shape. "
                "Everybody reads it who may read the resource or its pods. The application runs."
            ),
            remedy="Move the value to a Secret, and name that in the field that the message names.",
            after="The value is redacted in status, events, logs and snapshots.",
            page="design/secrets.md",
        ),
        Entry(
            Reason.GRACE_PERIOD_EXCEEDED,
            Fault.VERSION,
            (Place.EVENT,),
            "The grace period ended inside a batch. Nothing is lost: the next start runs that batch again.",
            remedy="Raise spec.driver.stopGracePeriodSeconds if batches take longer.",
        ),
        Entry(
            Reason.RESCALED,
            Fault.NONE,
            (Place.EVENT,),
            "The number of executors was changed, without a restart.",
            page="guide.md#rescale-it",
        ),
        Entry(
            Reason.CHECKPOINT_REDIRECTED,
            Fault.NONE,
            (Place.EVENT,),
            (
                "The script names a checkpointLocation of its own; Tidegate keeps the checkpoint in the storage "
                "of the application."
            ),
            page="guide.md#write-your-application",
        ),
        Entry(
            Reason.CONFIGURATION_IGNORED,
            Fault.NONE,
            (Place.EVENT,),
            "The script sets something that Tidegate decides.",
            remedy="Remove the setting from the script.",
            page="guide.md#write-your-application",
        ),
        Entry(
            Reason.CHECKPOINT_CLASS_MISSING,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "The image lacks the class with which Tidegate writes checkpoint files, and writes them in "
                "Spark's own way."
            ),
            remedy="Use the runtime that Tidegate brings (spec.application.runtime: Injected).",
            page="runtime.md",
        ),
    ),
)
