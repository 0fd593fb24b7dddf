"""The autoscaler: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "The autoscaler",
    "autoscaling.md#what-each-reason-means",
    (
        Entry(
            Reason.STEADY,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "There are as many executors as are needed.",
        ),
        Entry(
            Reason.SCALE_UP,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "More executors are needed; they are added now, or only recommended if spec.autoscaling.mode is Advise.",
        ),
        Entry(
            Reason.SCALE_UP_SOON,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "More executors are needed; they are added (or recommended) if that lasts for "
                "spec.autoscaling.stabilizationWindowSeconds."
            ),
        ),
        Entry(
            Reason.SCALE_DOWN,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "Fewer executors are enough; some are removed now, or fewer only recommended if spec.autoscaling.mode "
                "is Advise."
            ),
        ),
        Entry(
            Reason.SCALE_DOWN_SOON,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "Fewer executors are enough; some are removed (or fewer recommended) if that lasts for "
                "spec.autoscaling.scaleDown.intervalSeconds."
            ),
        ),
        Entry(
            Reason.OUT_OF_BOUNDS,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "The number of executors is outside of what spec.autoscaling.minExecutors and "
                "spec.autoscaling.maxExecutors allow."
            ),
            after="If spec.autoscaling.mode is Active, the autoscaler corrects the number at once.",
        ),
        Entry(
            Reason.EXCLUDED_PERIOD,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "Another number of executors is recommended, but is not set during a period of "
                "spec.autoscaling.excludedPeriods."
            ),
            after="The autoscaler changes the number when the period ends.",
        ),
        Entry(
            Reason.MEASURING,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "Not enough batches were measured since the last change.",
            after=(
                "The autoscaler decides when it has measured two batches of each query within half an hour, or one "
                "that is as long as spec.autoscaling.metricsWindowSeconds."
            ),
        ),
        Entry(
            Reason.RATE_UNKNOWN,
            Fault.VERSION,
            (Place.AUTOSCALING,),
            (
                "Batches follow one another without a pause, and the driver does not report how long tasks run, "
                "because its runtime is older than the operator."
            ),
            remedy=(
                "Change spec.restartNonce, which restarts the application with the operator's runtime; if "
                "spec.application.runtime is Image, use an image with a newer runtime."
            ),
        ),
        Entry(
            Reason.ROWS_UNKNOWN,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "Executors work, and Spark reports no rows of a query's sources since the driver started, as of some "
                "connectors. Without them nobody knows what arrives, so the number of executors stays."
            ),
            remedy=(
                "Set spec.autoscaling.mode to Off or Advise, and spec.executor.instances to what the application "
                "needs. If the connector has a newer version that reports rows (numInputRows in Spark's progress), "
                "use it."
            ),
            after="If there is no input at all, the autoscaler decides after the first rows.",
        ),
        Entry(
            Reason.NOT_RUNNING,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "The application is suspended, paused or starting, or its driver does not answer the operator.",
            after="The autoscaler decides again when the application runs.",
        ),
        Entry(
            Reason.UPGRADE_UNDER_WAY,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "An upgrade has stopped the previous version, and the new one is not stable yet.",
            after="The autoscaler decides again when the version is stable.",
        ),
        Entry(
            Reason.AT_MAXIMUM,
            Fault.NONE,
            (Place.AUTOSCALING, Place.EVENT),
            "More executors are needed, and spec.autoscaling.maxExecutors is reached.",
            remedy="Raise spec.autoscaling.maxExecutors.",
        ),
        Entry(
            Reason.PARTITIONS_CEILING,
            Fault.VERSION,
            (Place.AUTOSCALING, Place.EVENT),
            "More executors are needed, but would have no tasks: there are as many cores as partitions already.",
            remedy=(
                "Raise spec.state.partitions, which stops the application while its state is repartitioned. Or give "
                "the source more partitions; a Kafka topic cannot lose them again, and its keys move to other "
                "partitions."
            ),
        ),
        Entry(
            Reason.EXECUTORS_IDLE,
            Fault.VERSION,
            (Place.AUTOSCALING, Place.EVENT),
            "The application has a backlog, and some executors have had no task for a minute.",
            remedy=(
                "Raise spec.state.partitions, which stops the application while its state is repartitioned. Or give "
                "the source more partitions; a Kafka topic cannot lose them again, and its keys move to other "
                "partitions."
            ),
        ),
        Entry(
            Reason.BATCHES_LIMITED,
            Fault.VERSION,
            (Place.AUTOSCALING, Place.EVENT),
            (
                "Input waits, but there are pauses between batches: maxOffsetsPerTrigger or the interval of the "
                "trigger limits the work."
            ),
            remedy="Raise maxOffsetsPerTrigger of the source, or shorten the trigger's interval, in the program.",
        ),
        Entry(
            Reason.QUOTA_REACHED,
            Fault.CLUSTER,
            (Place.AUTOSCALING, Place.EVENT),
            "A ResourceQuota of the namespace, which the message names, has no room.",
            remedy="Raise the quota.",
            after="The autoscaler adds executors when the quota has room.",
        ),
        Entry(
            Reason.INEFFECTIVE_SCALING,
            Fault.VERSION,
            (Place.AUTOSCALING, Place.EVENT),
            "More executors would hardly help, or the last ones that were added hardly helped.",
            remedy=(
                "Find what takes the time: the sink, the object store, the part of a batch that the driver does alone, "
                "or a partition that holds most of the keys. Spark's web interface (port 4040 of the driver pod) shows "
                "how long the tasks of a batch run."
            ),
            after=(
                "The autoscaler tries more executors again after one hour, then after two and four hours, then every "
                "eight hours."
            ),
            page="autoscaling.md#how-it-decides",
        ),
        Entry(
            Reason.AUTOSCALED,
            Fault.NONE,
            (Place.EVENT,),
            "The autoscaler changed the number of executors; the message has the reason and its numbers.",
        ),
        Entry(
            Reason.INSTANCES_IGNORED,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "spec.executor.instances was changed while the autoscaler is Active, and has no effect. The condition "
                "InstancesIgnored (reason AutoscalerActive) stays until the number is set back, or "
                "spec.autoscaling.mode, minExecutors or maxExecutors change."
            ),
            remedy=(
                "Set spec.executor.instances back, or change spec.autoscaling.minExecutors and "
                "spec.autoscaling.maxExecutors. Remove an HPA or KEDA ScaledObject that scales the application. With "
                "spec.autoscaling.mode Off or Advise, spec.executor.instances applies at once."
            ),
        ),
        Entry(
            Reason.AUTOSCALER_ACTIVE,
            Fault.VERSION,
            (Place.INSTANCES_IGNORED,),
            "spec.executor.instances has no effect: the autoscaler decides how many executors there are.",
            remedy=(
                "Set spec.executor.instances back, or change spec.autoscaling.minExecutors and "
                "spec.autoscaling.maxExecutors. Remove an HPA or KEDA ScaledObject that scales the application. With "
                "spec.autoscaling.mode Off or Advise, spec.executor.instances applies at once."
            ),
        ),
    ),
)
