"""The script stops Spark, often in a ``finally``: its queries end at a batch boundary first. Talks to the JVM.

A context that is stopped beneath a running query takes its scheduler and its endpoints away, and the query ends with
whatever error that makes: nobody could tell it from a failure.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable

from pyspark import SparkContext

from tidegate_spark.ending import Budget
from tidegate_spark.progress import Progress
from tidegate_spark.queries import Queries
from tidegate_spark.stopping import stop_at_boundary

log = logging.getLogger("tidegate")


def guard_context(queries: Queries, progress: Progress, grace_seconds: float, ends: Callable[[], bool]) -> None:
    """Have ``SparkContext.stop``, which every way of stopping comes to, stop the queries first.

    Args:
        queries: of this driver.
        progress: is told of their last batches.
        grace_seconds: what a running batch gets, as at any other stop.
        ends: whether the driver is ending; it has looked after the queries itself then.
    """
    original = SparkContext.stop

    @functools.wraps(original)
    def stop(context: SparkContext) -> None:
        active = [] if ends() or context._jsc is None else queries.active()
        if active:
            log.info("the script stops Spark: %d running queries end first", len(active))
            budget = Budget.of(grace_seconds)
            for each in stop_at_boundary(active, time.monotonic() + budget.batch, budget.unwinding):
                progress.query_ended(each.name, each.commits if each.commits is not None else -1)
        original(context)

    SparkContext.stop = stop  # type: ignore[assignment, method-assign] # where every way of stopping passes
