"""The number of executors, changed and counted while the application runs. Talks to the JVM."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def running_executors(context: SparkContext) -> list[str]:
    """Return the ids of the executors that are registered now, oldest first."""
    found = context._jsc.sc().getExecutorIds()
    ids = [str(found.apply(index)) for index in range(found.size())]
    return sorted((each for each in ids if each != "driver"), key=lambda each: (len(each), each))


def set_executors(context: SparkContext, wanted: int) -> None:
    """Make ``wanted`` the number of executors: Spark starts those missing; the youngest of those too many are ended.

    Tasks of an ended executor run again elsewhere, within their batch.
    """
    jvm: Any = context._jvm
    scala_context = context._jsc.sc()
    nothing = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    scala_context.requestTotalExecutors(wanted, 0, nothing)
    surplus = running_executors(context)[wanted:]
    if surplus:
        scala_context.killExecutors(jvm.PythonUtils.toSeq(surplus))
        # Ending executors lowers Spark's own target by as many, below what is wanted.
        scala_context.requestTotalExecutors(wanted, 0, nothing)
