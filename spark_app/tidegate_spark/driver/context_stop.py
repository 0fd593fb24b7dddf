"""Stops queries at a batch boundary when the script stops Spark's context. Talks to the JVM.

A context that stops under a running query makes it fail with an error that looks like its own. A query that the script
stops while the driver stops all of them would be cut inside its batch.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.driver.ending import Budget, Ending
from tidegate_spark.driver.script.end.script_end import query_of_this_batch
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.stopping import is_ours, stop_at_boundary

OTHER_THREADS_SECONDS = 10.0
"""At most so long is waited for a batch by a thread that is not the script's first one: it may be inside that batch."""

log = logging.getLogger("tidegate")


def guard_context(queries: Queries, progress: Progress, grace_seconds: float, ending: Ending) -> None:
    """Have ``SparkContext.stop``, which every way of stopping comes to, stop the queries first.

    Args:
        queries: of this driver.
        progress: gets their last batches.
        grace_seconds: what a running batch gets, as at any other stop.
        ending: of the driver; once it has begun, it looks after the queries itself.
    """
    original = SparkContext.stop

    @functools.wraps(original)
    def stop(context: SparkContext) -> None:
        if ending.requested.is_set():
            ending.queries_stopped.wait()
        elif getattr(context, "_jsc", None) is not None:
            # A JVM that is gone has no query to be stopped, nor has a context that could not be made.
            with contextlib.suppress(Py4JError, OSError):
                stop_queries()
            queries.elsewhere()  # known afterwards, when nobody can be asked any more
        original(context)

    def stop_queries() -> None:
        active = queries.active()
        if not active:
            return
        log.info("the script stops Spark: %d running queries end first", len(active))
        # A paused query would wait for its release.
        ending.before_stop()
        budget = Budget.of(grace_seconds)
        # A function of the query (foreachBatch) would wait for itself.
        own = threading.current_thread() is threading.main_thread()
        deadline = time.monotonic() + (budget.batch if own else min(budget.batch, OTHER_THREADS_SECONDS))
        for each in stop_at_boundary(active, deadline, budget.unwinding):
            progress.query_ended(each.name, each.commits if each.commits is not None else -1)

    SparkContext.stop = stop  # type: ignore[assignment, method-assign] # where every way of stopping passes


def guard_queries(ending: Ending) -> None:
    """Have ``StreamingQuery.stop`` of the script wait while the driver stops all queries, each after its batch.

    A script that stops the others when one has ended would interrupt their batches. Before the driver stops, it is as
    in Spark: whoever stops a query interrupts it.

    Args:
        ending: of the driver.
    """
    original = StreamingQuery.stop

    @functools.wraps(original)
    def stop(query: StreamingQuery) -> None:
        # The batch of a foreachBatch function would wait for itself.
        if ending.requested.is_set() and not is_ours() and query_of_this_batch() is None:
            ending.queries_stopped.wait()
        original(query)

    StreamingQuery.stop = stop  # type: ignore[assignment, method-assign] # where a script's stops pass
