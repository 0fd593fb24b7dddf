"""Real streaming queries in a Spark of this process, run for a few batches each. Starts a JVM."""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.snapshots.checkpoint.layout import CheckpointAt, needed_files
from tidegate_spark.storage.store import Entry
from tidegate_testing import class_archive
from tidegate_testing.waiting import wait_for
from tidegate_testing.warm_jvms import companion

Outputs = dict[int, list[tuple[Any, ...]]]
"""What a query wrote, by batch, in an order of its own."""

_ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "200ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.fileSource.log.compactInterval": "3",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
}


class OnPurposeError(Exception):
    """A batch that was told to fail did."""


_shared = ExitStack()
"""The Spark of ``shared_session``, while there is one."""


@contextmanager
def spark_here(
    folder: Path, settings: Mapping[str, str] = MappingProxyType({}), master: str = "local[2]"
) -> Iterator[SparkSession]:
    """Run Spark, by default with two cores, and ``settings`` beside the usual ones; its JVM ends with the block.

    A process has room for one: one that was shared ends, and starts again for whoever asks for it next.
    """
    end_shared()
    with _running(folder, settings, master) as session:
        yield session


def shared_session(folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Return a session with settings of its own in a Spark that the next who asks has too: its JVM is warm by then.

    Args:
        folder: where Spark puts what it needs, if there is none yet.
        settings: of Spark, if there is none yet; the same from whoever asks.
    """
    if SparkContext._active_spark_context is None:
        _shared.enter_context(_running(folder, settings, "local[2]"))
    else:
        # What others kept is not looked after any more.
        streaming = cast("Any", SparkContext._jvm).org.apache.spark.sql.execution.streaming
        companion(streaming.state, "StateStore").stop()
    session = SparkSession.getActiveSession()
    assert session is not None, "somebody else's Spark runs in this process"
    return session.newSession()


def end_shared() -> None:
    """End the Spark of ``shared_session``, if there is one."""
    _shared.close()


@contextmanager
def _running(folder: Path, settings: Mapping[str, str], master: str) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).config("spark.local.dir", str(folder / "spark"))
    for key, value in {**_ALWAYS, **class_archive.settings(), **settings}.items():
        builder = builder.config(key, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    gateway = SparkContext._gateway
    try:
        yield session
    finally:
        session.stop()
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(180)
        SparkContext._gateway = SparkContext._jvm = None


class Bench:
    """Runs one kind of query on checkpoints, original and copies."""

    def __init__(
        self, spark: SparkSession, settings: Mapping[str, str], query: Callable[[], DataFrame], mode: str
    ) -> None:
        """Plan ``query`` again for each run, under ``settings``."""
        self._spark = spark
        self._settings = settings
        self._query = query
        self._mode = mode
        self.rows_of_state: dict[int, list[int]] = {}
        """By batch: what each stateful operator said of all its rows. A newer run's replace an older one's."""

    def run(self, checkpoint: Path, until: int, failing: Collection[int] = ()) -> Outputs:
        """Run until batch ``until`` is committed; the query may have begun the next one when it is stopped.

        Args:
            checkpoint: where it keeps itself.
            until: the batch.
            failing: batches that fail once, after their state was written and before they are committed.

        Raises:
            StreamingQueryException: the query failed by itself.
        """
        outputs: Outputs = {}
        left = set(failing)
        while True:
            try:
                self._run_once(checkpoint, until, outputs, left)
            except StreamingQueryException as error:
                if OnPurposeError.__name__ not in str(error):
                    raise
            else:
                assert not left, left
                return outputs

    def _run_once(self, checkpoint: Path, until: int, outputs: Outputs, failing: set[int]) -> None:
        def write(rows: DataFrame, batch: int) -> None:
            outputs[batch] = sorted(tuple(row) for row in rows.collect())
            if batch in failing:
                failing.remove(batch)
                raise OnPurposeError

        with self._in_place():
            writer = self._query().writeStream.outputMode(self._mode).foreachBatch(write)
            query = writer.option("checkpointLocation", str(checkpoint)).start()
        try:
            wait_for(f"batch {until}", lambda: self._is_over(query, checkpoint, until), 600, 0.05)
        finally:
            # What a batch raises when it is interrupted by the stop is no failure of the query's.
            found = query.exception()
            query.stop()
        reported = query.recentProgress
        self.rows_of_state |= {each.batchId: [of.numRowsTotal for of in each.stateOperators] for each in reported}
        if found is not None:
            raise found

    def _is_over(self, query: StreamingQuery, checkpoint: Path, until: int) -> bool:
        return not query.isActive or (checkpoint / "commits" / str(until)).exists()

    def state(self, checkpoint: Path, batch: int, **options: str) -> list[str]:
        """Return what Spark's state reader says the state was after ``batch``, a text for each row, in order."""
        with self._in_place():
            reader = self._spark.read.format("statestore").option("batchId", batch).options(**options)
            # Not by to_json: rows of a join's state have a column more than their schema, on which it fails.
            return sorted(str(row) for row in reader.load(str(checkpoint)).collect())

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Have the settings in the session; a query takes a copy of them when it starts."""
        conf = self._spark.conf
        before = {key: conf.get(key, None) for key in self._settings}
        for key, value in self._settings.items():
            conf.set(key, value)
        try:
            yield
        finally:
            for key, earlier in before.items():
                if earlier is None:
                    conf.unset(key)
                else:
                    conf.set(key, earlier)


def read_batch(checkpoint: Path, batch: int) -> CheckpointAt:
    """Return what ``batch`` of a checkpoint on this machine needs."""
    return needed_files(listing(checkpoint), lambda path: (checkpoint / path).read_bytes(), batch)


def listing(checkpoint: Path) -> dict[str, Entry]:
    """List a checkpoint on this machine as an object store would: without what Spark has not finished."""
    found = {}
    for path in sorted(checkpoint.rglob("[!.]*")):
        # A task that is being stopped may still be taking its temporary files away, and Spark's maintenance old ones.
        with suppress(FileNotFoundError):
            size = path.stat().st_size
            if path.is_file():
                found[str(path.relative_to(checkpoint))] = Entry(str(path), size, "")
    return found


def copy(checkpoint: Path, files: Collection[str], target: Path) -> Path:
    """Copy these files of a checkpoint, and nothing else."""
    for name in files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkpoint / name, target / name)
    return target
