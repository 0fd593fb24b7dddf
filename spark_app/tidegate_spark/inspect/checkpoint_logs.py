"""Reads a query's newest committed batch from the logs of its checkpoint. Does I/O, by the JVM's file systems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate_spark.inspect.errors import NotYetError, UnreadableError
from tidegate_spark.process.faults.foreign_text import numbered_files
from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError, UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.query_logs import COMMITS, OFFSETS, read_commit, read_offsets
from tidegate_spark.storage.store import Entry

_NOT_FOUND = "java.io.FileNotFoundException"
_STATE = "state"

SPARKS = (PySparkException, Py4JError, MissingFileError)
"""What is raised when Spark, or the storage, does not give what is asked for."""


@dataclass(frozen=True)
class At:
    """A committed batch of a query, as its logs have it; times in milliseconds since the epoch."""

    batch: int
    began_ms: int
    watermark_ms: int
    """By which the next batch goes; 0 if the query has none."""
    offsets: Mapping[str, str]
    """By source, number or name: as Spark logs them."""
    settings: Mapping[str, str]
    """That Spark keeps for the life of the checkpoint."""
    format_version: int


class Files:
    """A checkpoint's files, wherever Spark can read them."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        """Look below ``root``; nothing is read yet."""
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsc.hadoopConfiguration()
        self._root = root.rstrip("/")

    def numbers(self, directory: str) -> list[int]:
        """Return the names of files in a directory that are numbers; none if it is not there."""
        place = self._path(directory)
        try:
            statuses = place.getFileSystem(self._conf).listStatus(place)
        except Py4JJavaError as error:
            if is_not_found(error):
                return []
            raise
        # One text for all of them: there may be hundreds, and each would be several calls. Py4J gives an array of a
        # subclass, as S3A's are, only to a method that takes any object.
        reported = str(self._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(statuses).mkString("\n"))
        return numbered_files(reported)

    def exists(self, name: str) -> bool:
        """Return whether there is such a file or directory."""
        place = self._path(name)
        return bool(place.getFileSystem(self._conf).exists(place))

    def read(self, name: str) -> bytes:
        """Return the content of a file of text.

        Raises:
            MissingFileError: it is not there any more.
        """
        place = self._path(name)
        try:
            stream = place.getFileSystem(self._conf).open(place)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")).encode()
            finally:
                stream.close()
        except Py4JJavaError as error:
            if is_not_found(error):
                raise MissingFileError(name, "it was there a moment ago") from error
            raise

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{name}")


def newest_batch(files: Files) -> int | None:
    """Return the newest committed batch, None if there is none."""
    return max(files.numbers(COMMITS), default=None)


def has_state(files: Files) -> bool:
    """Return whether the query has operators with state."""
    return files.exists(_STATE)


def read_batch(files: Files, query: str, batch: int | None = None) -> At:
    """Return the newest committed batch of a query, or another one that is still kept.

    Args:
        files: of its checkpoint.
        query: its name, for words.
        batch: None: the newest.

    Raises:
        NotYetError: nothing is committed.
        MissingFileError: Spark has cleaned the batch up.
        UnreadableError: a log is not understood.
    """
    number = newest_batch(files) if batch is None else batch
    if number is None:
        raise NotYetError(f"query {query!r} has not committed a batch yet: ask again after its first")
    paths = [f"{OFFSETS}/{number}", f"{COMMITS}/{number}"]
    log = Checkpoint({path: Entry(path, 0, "") for path in paths}, files.read)
    try:
        return at_of(number, log)
    except UnreadableCheckpointError as error:
        raise UnreadableError(f"the checkpoint of query {query!r} is not understood: {error}") from error


def at_of(batch: int, log: Checkpoint) -> At:
    """Return what the two logs say of a batch; raises as :func:`read_offsets` and what reading raises."""
    commit, offsets = read_commit(log, batch), read_offsets(log, batch)
    planned = _object(offsets.text)
    next_watermark = _object(log.read_text(f"{COMMITS}/{batch}", "")).get("nextBatchWatermarkMs")
    return At(
        batch=batch,
        began_ms=int(planned.get("batchTimestampMs", 0)),
        watermark_ms=int(next_watermark or planned.get("batchWatermarkMs", 0)),
        offsets=offsets.by_source,
        settings=offsets.conf,
        format_version=1 if commit.ids is None else 2,
    )


def is_not_found(error: Py4JJavaError) -> bool:
    """Return whether a file was not there."""
    return _NOT_FOUND in str(error.java_exception.getClass().getName())


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object in the second line of a log's entry, whose first is the version."""
    lines = text.split("\n")
    found = json.loads(lines[1]) if len(lines) > 1 and lines[1].strip().startswith("{") else {}
    return found if isinstance(found, dict) else {}
