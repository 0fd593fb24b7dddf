"""An application and its driver: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "An application and its driver",
    "guide/watch.md",
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
            remedy="Send a ControlMessage of the type resume to continue.",
            page="guide/control-messages.md",
        ),
        Entry(
            Reason.COMPLETED,
            Fault.NONE,
            (Place.APP, Place.LAST_EXIT, Place.SNAPSHOT, Place.EXPORT),
            (
                "The work is done: all queries of an application ended by themselves, or a snapshot or an export "
                "is complete."
            ),
        ),
        Entry(
            Reason.STOPPED,
            Fault.NONE,
            (Place.LAST_EXIT, Place.APP, Place.UPGRADE, Place.REHEARSAL),
            (
                "The process was asked to stop (by Tidegate, or because its pod is removed, as when a node is "
                "drained), and stopped at a batch boundary. In status.upgrade.rehearsal.cause: the rehearsal ended "
                "before it had a result, for example because spec.upgrade.rehearsal was removed."
            ),
            after="A driver starts again unless the application is suspended. An upgrade continues.",
        ),
        Entry(
            Reason.DRIVER_STARTING,
            Fault.NONE,
            (Place.APP,),
            (
                "The driver pod was created and has not answered yet; or it answers, and its script has not asked for "
                "Spark yet. The message says which."
            ),
            remedy=(
                "Nothing has to be done: the first pull of a large image takes minutes, and a script may work for long "
                "before it asks for a SparkSession."
            ),
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
                "The application was running. Now a query has ended, or has not started again; or nobody (neither the "
                "driver's agent nor the kubelet) confirms that the queries run."
            ),
            remedy=(
                'If a query has ended, "kubectl logs POD -n NAMESPACE" of the driver pod says why. If nothing '
                "answers, check the node of the pod, and network policies for its port 8091."
            ),
        ),
        Entry(
            Reason.AGENT_UNREACHABLE,
            Fault.CLUSTER,
            (Place.APP,),
            (
                "The driver runs and the kubelet reaches it, but its agent (port 8091) does not answer the operator. "
                "Batches continue; rescaling, snapshots, control messages, metrics and repartitions wait, and an "
                "upgrade starts without a copy of the state. It is the same if the driver was launched with another "
                "key (by which operator and agent know each other) than the operator has now; the message says so."
            ),
            remedy=(
                "Allow pods of the operator to reach port 8091 of the driver pod (network policies). If the message "
                "names another key, change spec.restartNonce: the next driver gets the operator's present key."
            ),
            after="The operator asks the agent again.",
        ),
        Entry(
            Reason.RESTARTED,
            Fault.NONE,
            (Place.APP,),
            "The application has finished, and spec.restart.policy is Always.",
            after="The driver starts again: at once or, if the last one ended quickly, after 10 seconds to 5 minutes.",
        ),
        Entry(
            Reason.RESTART_BUDGET_EXHAUSTED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "More than spec.restart.maxFailures failures came within spec.restart.windowSeconds. The message has "
                "the last exception."
            ),
            remedy=(
                "Fix the application and change the spec: spec.application.image, or spec.restartNonce if nothing else "
                "changes."
            ),
            after=(
                "The application starts again only after a change of its version; a change of spec.restart alone is "
                "not enough."
            ),
        ),
        Entry(
            Reason.RESTART_POLICY_NEVER,
            Fault.VERSION,
            (Place.APP,),
            "The application failed, and spec.restart.policy is Never.",
            remedy=(
                "Fix the application and change the spec: spec.application.image, or spec.restartNonce if nothing else "
                "changes."
            ),
            after="The application starts again only after a change of its version, or of spec.restart.policy.",
        ),
        Entry(
            Reason.STALLED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "A query made no progress for spec.restart.stallTimeoutSeconds. This reason is not the condition "
                "Stalled, which is True when a resource cannot continue by itself."
            ),
            remedy=(
                'See what its tasks waited for: "kubectl logs POD -n NAMESPACE --previous" of the driver pod. If '
                "single tasks take that long, raise spec.restart.stallTimeoutSeconds, and change spec.restartNonce: a "
                "driver has the value of its launch."
            ),
            after="The driver restarts with exponential back-off.",
        ),
        Entry(
            Reason.FENCED,
            Fault.ENVIRONMENT,
            (Place.APP, Place.LAST_EXIT, Place.REPARTITION, Place.UPGRADE),
            (
                "Another process of this application took over the application's folder (fence.json has its epoch): "
                "the application also runs elsewhere, such as in another cluster."
            ),
            remedy=(
                "If the folder belongs to this application, suspend the other one, or delete it with "
                "spec.storage.deletionPolicy Retain (with Delete, the files of both are lost); then change "
                "spec.restartNonce. If it belongs to the other one, delete this application with "
                "spec.storage.deletionPolicy Retain."
            ),
            after="Tidegate tries again only after a change of the spec.",
        ),
        Entry(
            Reason.EPOCH_ADOPTED,
            Fault.NONE,
            (Place.APP, Place.EVENT),
            (
                "The status was lost, and has an earlier launch number (epoch) or lineage than the storage, or the "
                "application took over the folder of an earlier one. The application continues with those of the "
                "storage."
            ),
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
            after="Then the application is suspended.",
        ),
        Entry(
            Reason.RESUMING,
            Fault.NONE,
            (Place.APP,),
            "The driver stops for an edit that was reverted meanwhile.",
            after="A new driver starts when the old one has stopped.",
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
            after="Tidegate stops that pod, then starts a driver.",
        ),
        Entry(
            Reason.RELAUNCH_DELAYED,
            Fault.CLUSTER,
            (Place.APP,),
            "The driver pod was lost several times in quick succession.",
            remedy=(
                'Find out who ends the pod: "kubectl get events -n NAMESPACE --field-selector involvedObject.name=POD" '
                "shows preemption, eviction and taints, and the audit log of the API server shows who else deletes it."
            ),
            after="Tidegate retries after 10 seconds to 5 minutes.",
        ),
        Entry(
            Reason.MAIN_NOT_FOUND,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "The file or module of spec.application.main, or a file of spec.application.pyFiles, is not in the image.",
            remedy="Correct spec.application.main or spec.application.pyFiles, or put the file into the image.",
            after="The driver restarts with exponential back-off.",
            start_fixes=False,
        ),
        Entry(
            Reason.APPLICATION_FAILED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.REHEARSAL, Place.UPGRADE),
            "The script or a query raised an exception; status.lastExit has its class and message.",
            remedy="Fix the application. It restarts with exponential back-off, and at once when its spec changes.",
            page="guide/watch.md#logs",
        ),
        Entry(
            Reason.QUERY_REFUSED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "A query cannot run safely: two share a checkpoint, one without a name may be one query or another, a "
                "new name has the checkpointLocation of a query that has state, a fork would write where its original "
                "writes, an export was not read completely, a file sink would leave batches out, a table would not "
                "outlast the driver, or the checkpoint is from before the query used "
                "tidegate_spark.control.controlled(). The message says which."
            ),
            remedy=(
                "Change the query as the message says; then set spec.application.image to the changed image, or change "
                "spec.restartNonce if nothing else in the spec changes. If the original of a fork is stopped for good, "
                "the fork may write where the original wrote: set spec.startFrom.outputs of the fork to TakeOver, and "
                "change its spec.restartNonce."
            ),
            after="Tidegate tries again only after a change of the spec.",
            page="guide/write.md",
            start_fixes=False,
        ),
        Entry(
            Reason.SCRIPT_UNSUPPORTED,
            Fault.VERSION,
            (Place.APP, Place.EVENT, Place.LAST_EXIT, Place.UPGRADE, Place.REHEARSAL),
            (
                "The script uses a way to Spark that does not run here: Spark Connect, DStreams, another session "
                "after spark.stop(), another program in the place of its process (os.exec), queries in a child process "
                "(spark-submit, python, multiprocessing) while its own process has none, or a query that code in the "
                "JVM starts (spark._jvm, a Java or Scala library). In a rehearsal, any Spark in a child process. The "
                "message says which."
            ),
            remedy=(
                "Change the script as the message says; then set spec.application.image to the changed image, or "
                "change spec.restartNonce if nothing else in the spec changes."
            ),
            after=(
                "Tidegate tries again only after a change of the spec. A driver whose queries are in a child process, "
                "or were started by code in the JVM, goes on, and the reason ends when the script itself starts one."
            ),
            page="guide/write.md",
            start_fixes=False,
        ),
        Entry(
            Reason.DRIVER_CRASHED,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "Spark's JVM, or the whole process, was killed or ended without a termination message.",
            remedy='See the last lines of its log: "kubectl logs POD -n NAMESPACE --previous" of the driver pod.',
            after="The driver restarts with exponential back-off.",
            page="guide/watch.md#logs",
        ),
        Entry(
            Reason.OUT_OF_MEMORY,
            Fault.VERSION,
            (Place.APP, Place.LAST_EXIT, Place.REHEARSAL, Place.EXPORT, Place.REPARTITION, Place.UPGRADE),
            "The container needed more than its memory and was killed.",
            remedy=(
                "Raise the memory request that the message names. After a repartition also change spec.restartNonce, "
                "and after an export spec.export.nonce."
            ),
            after="A driver restarts with exponential back-off; after a rehearsal, the upgrade continues.",
        ),
        Entry(
            Reason.DRIVER_LOST,
            Fault.CLUSTER,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            "The pod was ended from outside: preemption, an eviction, or a node that was shut down or restarted.",
            remedy=(
                'If it recurs, "kubectl get events -n NAMESPACE --field-selector involvedObject.name=POD" and the node '
                "of the pod show why. Against preemption, set spec.podTemplate.spec.priorityClassName."
            ),
            after="A new driver pod follows.",
        ),
        Entry(
            Reason.UNKNOWN_TERMINATION,
            Fault.CLUSTER,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE, Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT),
            (
                "The driver, or the pod that works on a snapshot, ended with a termination message that this operator "
                "does not know: its image has a newer runtime."
            ),
            remedy="Upgrade the operator; it then reports why the pod ended, and what to do.",
            after="Until then, a driver starts again only after a change of the spec, and a snapshot waits.",
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
            (
                "The runtime reports a reason or a state that this operator does not know: the runtime is newer than "
                "the operator."
            ),
            remedy="Upgrade the operator.",
        ),
        Entry(
            Reason.INVALID_SPEC,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE, Place.REPARTITION, Place.SNAPSHOT, Place.MESSAGE, Place.EXPORT),
            (
                "No pod can be built from the spec: memory settings that do not fit into the memory request, a "
                "template that cannot be merged, fields or values that no pod may have. Or the resource was stored "
                "under another version of the CRD, and this operator cannot read it."
            ),
            remedy=(
                "Correct the field that the message names; a ControlMessage cannot be changed, so send it again under "
                "another name."
            ),
            after="Tidegate tries again after a change of the spec.",
            page="guide/change.md#an-edit-that-cannot-be-built",
        ),
        Entry(
            Reason.CONFIGURATION_TOO_LONG,
            Fault.VERSION,
            (Place.APP, Place.UPGRADE, Place.REPARTITION),
            (
                "The spec holds more than Kubernetes or Linux hands to a process: more than a Secret takes (1 MiB), or "
                "a variable or a setting of more than 128 KiB. Or it holds more than can be recorded beside it: the "
                "status keeps two versions, so about 450 KiB. Nothing is stopped for such an edit."
            ),
            remedy=(
                "Shorten the field that the message names: put what is long into a file, a ConfigMap that "
                "spec.driver.podTemplate mounts (for executors, spec.executor.podTemplate) or an object in storage, "
                "and have the program read it."
            ),
            after="Tidegate tries again after a change of the spec.",
            page="design/long-configuration.md",
        ),
        Entry(
            Reason.CONFIGURATION_CHANGED,
            Fault.CLUSTER,
            (Place.APP, Place.LAST_EXIT, Place.UPGRADE),
            (
                "The Secret with the long part of a launch's configuration is missing, or is not what the pod was "
                "launched with. The driver did not start with it."
            ),
            remedy="Find out who changes Secrets that are labelled app.kubernetes.io/managed-by=tidegate.",
            after="Tidegate launches again, with a Secret of its own.",
            page="design/long-configuration.md",
            retried=True,
        ),
        Entry(
            Reason.PLAINTEXT_SECRET,
            Fault.VERSION,
            (Place.PLAINTEXT_SECRETS, Place.EVENT),
            (
                "The spec has a value that looks like a secret, by the name of its field or by its text. Everybody who "
                "may read the resource or its pods can read it. The application runs."
            ),
            remedy="Move the value to a Secret, and refer to the Secret as the message says.",
            after="The value is redacted in status, events, logs and snapshots.",
            page="design/secrets.md",
        ),
        Entry(
            Reason.GRACE_PERIOD_EXCEEDED,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "The grace period ended inside a batch, which the next start runs again. No input is lost, but outputs "
                "that are not idempotent, such as foreachBatch, may get the rows of that batch twice."
            ),
            remedy="If batches take longer than spec.driver.stopGracePeriodSeconds, raise it.",
        ),
        Entry(
            Reason.BATCH_GIVEN_UP,
            Fault.CLUSTER,
            (Place.EVENT,),
            (
                "The driver had to stop inside a batch of which no executor was left to run the tasks, as when a node "
                "is drained that has all of them. It did not wait for the rest of the grace period. No input is lost, "
                "but outputs that are not idempotent, such as foreachBatch, may get the rows of that batch twice."
            ),
            after="The next start runs the batch again.",
        ),
        Entry(
            Reason.RESCALED,
            Fault.NONE,
            (Place.EVENT,),
            "The number of executors was changed, without a restart.",
            page="guide/rescale.md",
        ),
        Entry(
            Reason.CHECKPOINT_REDIRECTED,
            Fault.NONE,
            (Place.EVENT,),
            (
                "The script names a checkpointLocation of its own, which is not used: the checkpoint is in the storage "
                "of the application, by the query's name. A query that has another one's location is refused."
            ),
            page="guide/write.md",
        ),
        Entry(
            Reason.CONFIGURATION_IGNORED,
            Fault.NONE,
            (Place.EVENT,),
            (
                "The script sets something that the spec or Tidegate decides, or that has no effect here; or the spec "
                "has such a setting from before it was refused. The message names it, and what to use."
            ),
            remedy="Use what the message names, and remove the setting.",
            page="guide/write.md",
        ),
        Entry(
            Reason.CHECKPOINT_CLASS_MISSING,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "The image lacks the class with which Tidegate writes checkpoint files. Spark writes them by renaming "
                "instead, and two writers of one checkpoint may not notice each other."
            ),
            remedy="Use the runtime that Tidegate brings (spec.application.runtime: Injected).",
            page="runtime.md",
        ),
    ),
)
