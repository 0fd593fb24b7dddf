"""The autoscaler: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.entry import Area, Entry, Fault, Place

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
            "More executors are needed, now.",
        ),
        Entry(
            Reason.SCALE_UP_SOON,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "More executors are needed if nothing changes for a while.",
        ),
        Entry(
            Reason.SCALE_DOWN,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "Fewer executors are enough, now.",
        ),
        Entry(
            Reason.SCALE_DOWN_SOON,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "Fewer executors are enough if nothing changes for a while.",
        ),
        Entry(
            Reason.OUT_OF_BOUNDS,
            Fault.NONE,
            (Place.AUTOSCALING,),
            (
                "There were more or fewer executors than spec.autoscaling.minExecutors and "
                "spec.autoscaling.maxExecutors allow."
            ),
        ),
        Entry(
            Reason.EXCLUDED_PERIOD,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "Another number of executors is recommended, and is not applied during an excluded period.",
            after="The autoscaler changes the number when the period ends.",
        ),
        Entry(
            Reason.MEASURING,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "Not enough batches were measured since the last change.",
            after="The autoscaler decides after two batches of each query, or half an hour.",
        ),
        Entry(
            Reason.RATE_UNKNOWN,
            Fault.VERSION,
            (Place.AUTOSCALING,),
            (
                "Batches run back to back, and the driver does not report how long tasks run, because its runtime is "
                "older than the operator."
            ),
            remedy=(
                "Change spec.restartNonce, which restarts the application with the operator's runtime; with "
                "spec.application.runtime Image, use an image with a newer runtime."
            ),
        ),
        Entry(
            Reason.NOT_RUNNING,
            Fault.NONE,
            (Place.AUTOSCALING,),
            "The application is suspended, paused, starting, or does not answer.",
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
                "Raise spec.state.partitions, which stops the application while its state is repartitioned; or give "
                "the source more partitions, which for a Kafka topic cannot be undone and moves keys to other "
                "partitions."
            ),
        ),
        Entry(
            Reason.EXECUTORS_IDLE,
            Fault.VERSION,
            (Place.AUTOSCALING, Place.EVENT),
            "The application is behind, and some executors have had no task for a minute.",
            remedy=(
                "Raise spec.state.partitions, which stops the application while its state is repartitioned; or give "
                "the source more partitions, which for a Kafka topic cannot be undone and moves keys to other "
                "partitions."
            ),
        ),
        Entry(
            Reason.BATCHES_LIMITED,
            Fault.VERSION,
            (Place.AUTOSCALING, Place.EVENT),
            (
                "Input waits, yet batches have pauses: maxOffsetsPerTrigger or the interval of the trigger limits the "
                "work."
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
            "More executors would bring little, or the last ones brought next to nothing.",
            remedy=(
                "Find what takes the time: the sink, the object store, the driver's part of a batch, or a partition "
                "that holds most of the keys."
            ),
            after="Tidegate retries after an hour, then after two, four and eight.",
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
                "spec.executor.instances was changed while the autoscaler is Active, and has no effect; the condition "
                "InstancesIgnored, with the reason AutoscalerActive, stays as long as that is so."
            ),
            remedy=(
                "Remove an HPA or KEDA that scales the application, or change spec.autoscaling.minExecutors and "
                "spec.autoscaling.maxExecutors. With spec.autoscaling.mode Off or Advise, spec.executor.instances "
                "applies at once."
            ),
        ),
        Entry(
            Reason.AUTOSCALER_ACTIVE,
            Fault.VERSION,
            (Place.INSTANCES_IGNORED,),
            "spec.executor.instances has no effect: the autoscaler decides how many executors there are.",
            remedy=(
                "Remove an HPA or KEDA that scales the application, or change spec.autoscaling.minExecutors and "
                "spec.autoscaling.maxExecutors. With spec.autoscaling.mode Off or Advise, spec.executor.instances "
                "applies at once."
            ),
        ),
    ),
)
