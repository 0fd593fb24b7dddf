"""State as DataFrames, evaluated a few partitions at a time. Talks to Spark.

Jobs of a few partitions, one after the other, let a waiting batch have its turn between two of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tidegate_spark.exports import formats, state_reader
from tidegate_spark.exports.tables import Table, quoted, tables_of
from tidegate_spark.inspect.checkpoint_logs import At, Files, has_state
from tidegate_spark.inspect.conditions import NOT_NULL, NULL, Condition, Path, key_leaves

POOL = "tidegate-inside"
"""Spark's scheduler pool of all looks, if the application has its jobs scheduled by pools."""
SHARE_OF_CORES = 4
"""One of so many, and at least one core, is what a look may use."""
CANCELLED_AGAIN_SECONDS = 1.0
"""From one cancellation to the next: each takes only the jobs that there are."""
_POOL_SETTING = "spark.scheduler.pool"
_KEY = "key"


@dataclass
class Sessions:
    """A session of the looks' own, under the settings of what is read; one look at a time."""

    spark: SparkSession
    _own: SparkSession | None = None
    _set: frozenset[str] = frozenset()

    def of(self, at: At) -> SparkSession:
        """Return the session, as it must be for reading a batch."""
        if self._own is None:
            # One for all looks: each session whose state is read leaves a listener in Spark.
            self._own = self.spark.newSession()
            # Spark's state stores report to an object that comes with the streams of a session.
            self._own.streams  # noqa: B018 - it is made by being asked for
        settings = state_reader.settings_of(at.settings, at.format_version)
        for key in self._set - settings.keys():
            self._own.conf.unset(key)
        for key, value in settings.items():
            self._own.conf.set(key, value)
        self._set = frozenset(settings)
        return self._own


def tables_at(session: SparkSession, files: Files, checkpoint: str) -> list[Table]:
    """Return the tables of a query's state; none if it keeps no state.

    Raises:
        ExportError: they are not understood.
        PySparkException, Py4JError: Spark cannot read them.
    """
    return tables_of(state_reader.stores_of(session, checkpoint)) if has_state(files) else []


def frame_of(session: SparkSession, checkpoint: str, at: At, table: Table) -> DataFrame:
    """Return the rows of a table after a batch; raises what Spark raises."""
    return formats.portable(state_reader.rows_of(session, checkpoint, at.batch, table))


# --- columns ---------------------------------------------------------------------------------------------------------


def fulfilling(rows: DataFrame, conditions: Iterable[Condition]) -> DataFrame:
    """Return the rows that fulfil every condition."""
    for condition in conditions:
        rows = rows.where(_column_of(condition))
    return rows


def as_texts(rows: DataFrame, *before: Column) -> DataFrame:
    """Return each row as two texts, its key and the rest of it as JSON; null if there is none. ``before``: in front."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    whole = {name: formats.rebuilt(F.col(quoted(name)), of).alias(name) for name, of in types.items()}
    rest = [column for name, column in whole.items() if name != _KEY]
    nothing = F.lit(None).cast("string")
    key = F.to_json(whole[_KEY], formats.IN_JSON) if _KEY in whole else nothing
    other = F.to_json(F.struct(*rest), formats.IN_JSON) if rest else nothing
    return rows.select(*before, key.alias("key"), other.alias("rest"))


def as_nothing(rows: DataFrame) -> DataFrame:
    """Return rows that are as many, and hold nothing."""
    return rows.select(F.lit(None).cast("string").alias("nothing"))


def window_columns(path: Path) -> tuple[Column, Column]:
    """Return begin and end of the window, in milliseconds."""
    window = _at(path)
    begin, end = (F.unix_millis(window.getField(name).cast("timestamp")) for name in ("start", "end"))
    return begin, end


def with_window(rows: DataFrame, path: Path, watermark_ms: int) -> DataFrame:
    """Return rows with their window in front: begin, end, and whether the watermark has passed that."""
    window, (_, end) = _at(path), window_columns(path)
    closed = end <= watermark_ms if watermark_ms else F.lit(None).cast("boolean")
    start, stop = window.getField("start").alias("window_start"), window.getField("end").alias("window_end")
    return rows.select(start, stop, closed.alias("closed"), *(F.col(quoted(name)) for name in rows.columns))


def _column_of(condition: Condition) -> Column:
    column = _at(condition.path)
    if condition.operation in (NULL, NOT_NULL):
        return column.isNull() if condition.operation == NULL else column.isNotNull()
    value = F.lit(condition.value)
    if condition.operation == "startswith":
        return column.startswith(value)
    if condition.operation == "contains":
        return column.contains(value)
    typed = value.cast(condition.type)
    made: dict[str, Callable[[], Column]] = {
        "=": lambda: column == typed,
        "!=": lambda: column != typed,
        "<": lambda: column < typed,
        "<=": lambda: column <= typed,
        ">": lambda: column > typed,
        ">=": lambda: column >= typed,
    }
    return made[condition.operation]()


def _at(path: Path) -> Column:
    column = F.col(quoted(path[0]))
    for name in path[1:]:
        column = column.getField(name)
    return column


# --- jobs ------------------------------------------------------------------------------------------------------------


def likely_partition(
    session: SparkSession, schema: Mapping[str, Any], conditions: Sequence[Condition], partitions: int
) -> int:
    """Return the partition in which Spark keeps a key, of which every column is known.

    That is how Spark distributes rows by their keys. If it is ever otherwise, nothing is found there, and whoever asks
    looks at all of them.
    """
    values = {each.path: F.lit(each.value).cast(each.type) for each in conditions if each.operation == "="}
    columns = _structured([(path[1:], values[path]) for path in key_leaves(schema)])
    # Of a table that is part of the plan: no job is run for it.
    one = session.sql("SELECT 0 AS nothing FROM VALUES (0) AS t(x)")
    (row,) = one.select(F.pmod(F.hash(*columns), F.lit(partitions)).alias("partition")).collect()
    return int(row["partition"])


def _structured(leaves: list[tuple[Path, Column]]) -> list[Column]:
    """Return the columns whose fields are at these paths, in their order."""
    columns: dict[str, list[tuple[Path, Column]]] = {}
    for path, value in leaves:
        columns.setdefault(path[0], []).append((path[1:], value))
    return [(of[0][1] if of[0][0] == () else F.struct(*_structured(of))).alias(name) for name, of in columns.items()]


@dataclass(frozen=True)
class Job:
    """The jobs of one look: their group, and when they are to have ended."""

    spark: SparkSession
    group: str
    seconds_left: Callable[[], float]

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Run jobs within the block as those of the look; they are cancelled when its time is over.

        Those that begin then are, too: what is read first, such as the state's metadata, may take all of the time.
        """
        context, ended = self.spark.sparkContext, threading.Event()
        context.setLocalProperty(_POOL_SETTING, POOL)
        context.setJobGroup(self.group, "Tidegate looks inside", interruptOnCancel=True)

        def cancel() -> None:
            pause = max(0.0, self.seconds_left())
            while not ended.wait(pause):
                context.cancelJobGroup(self.group)
                pause = CANCELLED_AGAIN_SECONDS

        threading.Thread(target=cancel, name="inside-time", daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def in_turns(self, order: Sequence[int]) -> Iterator[list[int]]:
        """Yield partitions, a few at a time, while there is time left."""
        at_once = max(1, self.spark.sparkContext.defaultParallelism // SHARE_OF_CORES)
        for first in range(0, len(order), at_once):
            if self.seconds_left() <= 0:
                return
            yield list(order[first : first + at_once])

    def run(self, rows: Any, work: Callable[[Iterable[Any]], Iterator[Any]], partitions: list[int]) -> list[Any]:
        """Return what ``work`` makes of these partitions of an RDD; raises what Spark raises."""
        return list(self.spark.sparkContext.runJob(rows, work, partitions))
