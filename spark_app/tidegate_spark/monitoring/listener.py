"""Turns Spark's streaming events into :class:`Progress`. No I/O of its own."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener

from tidegate_spark.control_log.offsets import position_of_progress, without_control
from tidegate_spark.monitoring.lag import lag_of, partitions_of
from tidegate_spark.process.progress import Commit, Progress

BeforeFirst = Callable[[str], None]
"""Takes a query's id; Spark plans the query's first batch when it returns."""

Note = Callable[[str, Mapping[str, Any]], None]
"""Takes a query's name and the JSON of a ``StreamingQueryProgress``; must return quickly."""


IsOurs = Callable[[str], bool]
"""Takes the name of a query that starts; returns whether the script starts it. False: nothing of it is noted."""


def _nobody(*_: object) -> None:
    """Take no note."""


def _everybody(_: str) -> bool:
    """Take each query for the script's."""
    return True


def read_commit(progress: dict[str, Any]) -> Commit:
    """Return the metrics of one ``StreamingQueryProgress``, given as Spark's own JSON object.

    Spark posts a progress event after the batch's entry in the commit log is written, so its batch is committed.
    """
    duration_ms = int(progress.get("batchDuration") or progress.get("durationMs", {}).get("triggerExecution", 0))
    operators = progress.get("stateOperators") or []
    sources = progress.get("sources") or []
    # Beside a source of Spark's first interface, messages count as rows in Spark's sum though none of them is read.
    data = without_control(sources)
    of_data = {**progress, **_sum_of(data)} if len(data) < len(sources) else progress
    return Commit(
        batch_id=int(progress["batchId"]),
        input_rows=max(0, int(of_data.get("numInputRows") or 0)),
        input_rows_per_second=_rate(of_data.get("inputRowsPerSecond")),
        processed_rows_per_second=_rate(of_data.get("processedRowsPerSecond")),
        batch_duration_ms=duration_ms,
        state_rows=sum(int(o.get("numRowsTotal") or 0) for o in operators),
        state_bytes=sum(_state_bytes(o) for o in operators),
        time=_seconds(progress["timestamp"]) + duration_ms / 1000,
        lag_rows=lag_of(sources),
        control=position_of_progress(sources),
        source_partitions=partitions_of(data),
        state_partitions=max((int(o.get("numShufflePartitions") or 0) for o in operators), default=0),
    )


def _sum_of(sources: list[Mapping[str, Any]]) -> dict[str, float]:
    names = ("numInputRows", "inputRowsPerSecond", "processedRowsPerSecond")
    return {name: sum(_rate(source.get(name)) for source in sources) for name in names}


def _rate(value: Any) -> float:
    # Spark writes NaN and infinity for the first batch, which has no interval before it.
    number = float(value or 0.0)
    return number if 0 <= number < float("inf") else 0.0


def _state_bytes(operator: dict[str, Any]) -> int:
    # RocksDB's memoryUsedBytes is its caches; the state itself is in its SST files.
    on_disk = (operator.get("customMetrics") or {}).get("rocksdbSstFileSize")
    return int(on_disk if on_disk is not None else operator.get("memoryUsedBytes") or 0)


def _seconds(timestamp: str) -> float:
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


class ProgressListener(StreamingQueryListener):
    """Keeps each query's metrics; must return quickly, since Spark's listener bus waits for it."""

    def __init__(self, reported: SparkCalls) -> None:
        """Have Spark's events go to ``reported``."""
        self._reported = reported

    @property
    def _jlistener(self) -> Any:
        """What PySpark gives to Spark: it gets events as they are, without PySpark's copies of them."""
        jvm: Any = SparkContext._jvm
        return jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self._reported)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Spark calls ``SparkCalls`` instead."""

    onQueryProgress = onQueryIdle = onQueryTerminated = onQueryStarted  # noqa: N815 - Spark's names


class SparkCalls:
    """What Spark calls, with its own events: ``org.apache.spark.sql.streaming.StreamingQueryListener``.

    PySpark makes an object of its own of each event first, by one call to the JVM for every figure of every stateful
    operator. That is hundreds for a batch with state in RocksDB, takes seconds while the driver has other work, and
    holds up the listener bus: metrics came later and later while batches were short.
    """

    class Java:
        """The interface that Py4J has Spark see."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)

    def __init__(
        self,
        progress: Progress,
        before_first: BeforeFirst = _nobody,
        note: Note = _nobody,
        is_ours: IsOurs = _everybody,
    ) -> None:
        """Write into ``progress``.

        Args:
            progress: takes the metrics.
            before_first: is called with a query's id before it plans its first batch.
            note: gets each query's events as they are.
            is_ours: is asked about each query before that.
        """
        self._progress, self._before_first, self._note, self._is_ours = progress, before_first, note, is_ours
        self._names: dict[str, str] = {}
        self._others: set[str] = set()
        """Runs of queries that the script has not started."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Remember the query's name, which the events of idle and ended queries do not carry."""
        name, run = event.name() or event.id().toString(), event.runId().toString()
        if not self._is_ours(name):
            self._others.add(run)
            return
        self._names[run] = name
        self._progress.query_started(name)
        # Spark reports a start in the query's own thread, and goes on when this returns.
        self._before_first(event.id().toString())

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Take over a batch's metrics, all of them in one text."""
        data = json.loads(event.progress().json())
        if data.get("runId") in self._others:
            return
        name = data.get("name") or str(data["id"])
        self._progress.query_committed(name, read_commit(data))
        self._note(name, data)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Note that there was nothing to read."""
        name = self._names.get(event.runId().toString())
        if name:
            self._progress.query_idle(name)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Note the end, and whether it was a failure; which one is read from the query itself."""
        run = event.runId().toString()
        self._others.discard(run)
        name = self._names.pop(run, None)
        # A query of the same name may run again already: only the last run's end counts.
        if name and name not in self._names.values():
            self._progress.query_ended(name, failed=event.exception().isDefined())
