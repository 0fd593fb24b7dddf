"""Queries that start, by source, sink and trigger: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Queries",
    "sources-and-sinks.md",
    (
        Entry(
            Reason.STARTS_EMPTY,
            Fault.VERSION,
            (Place.EVENT,),
            (
                "Spark cannot continue a query: its sink is memory (in another output mode than complete), or it reads "
                "a socket. It runs, and starts without its state, at batch 0, whenever the driver starts. The message "
                "says which query, and why."
            ),
            remedy="Where its results have to outlast the driver, use another sink or source.",
            after=(
                "The other queries continue as always. An upgrade, a rehearsal and a rollback start such a query in "
                "the same way, and no version is blamed for it."
            ),
        ),
        Entry(
            Reason.TABLE_LOCATION,
            Fault.NONE,
            (Place.EVENT,),
            (
                "A query writes to a table (toTable). The message says where its catalog and its data are: the catalog "
                "of a session is in the memory of the driver unless spec.sparkConf names another one. If none of the "
                "query's earlier batches is there, the message says that, too: the table is another one than before."
            ),
            after=(
                "Where the catalog does not outlast the driver, and the data are plain files in object storage, "
                "Tidegate names the table's place to Spark at each start, and the query continues."
            ),
            page="guide/write.md",
        ),
        Entry(
            Reason.CONTINUOUS_TRIGGER,
            Fault.NONE,
            (Place.EVENT, Place.AUTOSCALING),
            (
                "A query has a continuous trigger. Its epochs count as batches, also for the condition Ready and for "
                "whether a version is stable. Spark reports no rows, rates and lag of such a query, retries none of "
                "its tasks, and has no moment between two epochs at which it could be stopped or paused: a stop, or "
                "an executor that ends, repeats the rows of the epoch that was not committed."
            ),
            remedy=(
                "Give executors as many cores as the sources of the query have partitions. For metrics, autoscaling "
                "and pauses, use trigger(processingTime=…)."
            ),
            after="The autoscaler leaves the number of executors as it is.",
            page="guide/write.md",
        ),
        Entry(
            Reason.REAL_TIME_TRIGGER,
            Fault.NONE,
            (Place.EVENT, Place.AUTOSCALING),
            (
                "A query is in real-time mode: each of its batches lasts as long as its trigger says, with or without "
                "input, and its offsets are written when it ends. A stop, a pause and the conditions that count "
                "batches wait for that. The event is a warning if the driver's grace period is too short for a batch."
            ),
            remedy=(
                "Make spec.driver.stopGracePeriodSeconds longer than a batch by more than 25 seconds, and "
                "spec.upgrade.timeoutSeconds longer than spec.upgrade.stableBatches batches; or give the trigger a "
                "shorter time, from 5 seconds on. Give executors as many cores as the sources have partitions."
            ),
            after=(
                "The application runs on. What a stop interrupts, the next start reads again. The autoscaler leaves "
                "the number of executors as it is."
            ),
            page="guide/write.md",
        ),
        Entry(
            Reason.UNNAMED_QUERY,
            Fault.NONE,
            (Place.EVENT,),
            (
                "A query has no name, and the text of the script does not show that it starts no other query without "
                "one: a loop, a class, a function that is called twice, a writer that is given away, code that is "
                "made while it runs. The query runs, and continues as long as its checkpointLocation stays the same."
            ),
            remedy=(
                "Give the query the name that the message has, with .queryName(...): it continues its state. Otherwise "
                "a version with another checkpointLocation, or with a further query above it, is refused."
            ),
            page="guide/write.md",
        ),
    ),
)
