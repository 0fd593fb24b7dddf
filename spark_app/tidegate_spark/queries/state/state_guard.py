"""Refuses a query that would read columns of its state for one another. Talks to the JVM, does file I/O.

Spark shows a new version's columns only when it plans the first batch, which writes state and outputs. So the query is
planned here first, as a new one in a temporary folder, without running a batch, and the columns are compared with the
checkpoint's. For transformWithState in Python, planning calls ``init``.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.faults.faults import explain
from tidegate_spark.process.faults.foreign_text import first_line
from tidegate_spark.process.spark.sparkconf import CHECKPOINT_FILES
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.state.state_columns import Difference, differences
from tidegate_spark.queries.writers import output_mode
from tidegate_spark.snapshots.checkpoint import operator_files
from tidegate_spark.snapshots.checkpoint.operator_files import STATE
from tidegate_spark.snapshots.checkpoint.query_logs import COMMITS, OFFSETS, settings_of
from tidegate_spark.storage.store import SnapshotError

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"
"""Spark's setting: without it, Spark compares nothing, and neither is anything compared here."""
_ENCODING, _UNSAFE_ROW, _AVRO = "spark.sql.streaming.stateStore.encodingFormat", "unsaferow", "avro"
"""Spark keeps it for the life of a checkpoint; those from before it was there have the first."""
_STREAMING = "org.apache.spark.sql.execution.streaming"
_NOT_FOUND = "java.io.FileNotFoundException"
_GIVEN = 11
"""Arguments of Spark's class for a batch's plan that every version has; those after them have defaults."""

log = logging.getLogger("tidegate")


def verdict(query: str, found: Iterable[Difference], notice: Callable[[str, str, bool], None]) -> str:
    """Return why a query must not start, empty if it may; pure, but for its notices.

    Args:
        query: its name.
        found: where its state's columns have other names than the version's.
        notice: gives the user a notice: reason, message, whether it is a warning. The state keeps its names, so each
            launch finds it again.
    """
    reported = list(found)
    for each in reported:
        if each.misread:
            return messages.state_misread(each.operator, each.what, each.before, each.now, CHECK)
    for each in reported:
        message = messages.state_renamed(query, each.operator, each.what, each.before, each.now)
        notice(Reason.STATE_SCHEMA, message, True)
    return ""


class StateGuard:
    """Looks at each query of one driver process that has state."""

    def __init__(self, work_directory: str, notice: Callable[[str, str, bool], None]) -> None:
        """Plan in ``work_directory``; ``notice`` gets what may be meant."""
        self._work_directory, self._notice = work_directory, notice

    def refusal_of(self, writer: DataStreamWriter, name: str, checkpoint: str, mode: str | None) -> str:
        """Return why a query must not start, empty if it may.

        Args:
            writer: what starts it.
            name: the query's.
            checkpoint: where it is.
            mode: the output mode that its start names, None for the writer's own.

        Raises:
            Py4JError: the checkpoint cannot be read now.
        """
        session = writer._spark
        files = _Checkpoint(session, checkpoint)
        operators = files.operators() if str(session.conf.get(CHECK, "true")).lower() == "true" else []
        if not operators:
            return ""
        folder = Path(tempfile.mkdtemp(prefix="plan-", dir=self._folder()))
        try:
            kept = files.settings()
            self._plan(writer, name, mode, folder, kept)
            found = _compare(files, _Planned(folder), operators, kept[_ENCODING] == _AVRO)
        except SnapshotError as error:
            # Of a Spark whose files are not known here; it looks at them itself, at the types.
            self._say_not_compared(name, error)
            return ""
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return verdict(name, found, self._notice)

    def _say_not_compared(self, name: str, error: Exception) -> None:
        why = first_line(explain(error).message)
        log.warning("query %r: the columns of its state are not compared: %s", name, why)
        self._notice(Reason.STATE_NOT_COMPARED, messages.state_not_compared(name, why), True)

    def _folder(self) -> Path:
        folder = Path(self._work_directory)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _plan(
        self, writer: DataStreamWriter, name: str, mode: str | None, folder: Path, kept: Mapping[str, str]
    ) -> None:
        # For operators whose schema may change, Spark looks whether there is such a batch.
        (folder / OFFSETS).mkdir()
        (folder / OFFSETS / "0").touch()
        try:
            _plan_as_new(writer, mode, folder, kept)
        except (PySparkException, Py4JError, TypeError) as error:
            # What is wrong with the query Spark says at its start. A Spark whose classes are others is a TypeError.
            self._say_not_compared(name, error)


class _Checkpoint:
    """Files of a query's checkpoint, by the JVM's file systems."""

    def __init__(self, session: Any, root: str) -> None:
        self._jvm, self._conf, self._root = session._jvm, session._jsc.hadoopConfiguration(), root.rstrip("/")

    def operators(self) -> list[int]:
        """Return the numbers of the operators with state; before a batch is committed, none has any."""
        if not self.names(COMMITS):
            return []
        return sorted(int(name) for name in self.names(STATE) if is_number(name))

    def settings(self) -> dict[str, str]:
        """Return the settings of the session that Spark keeps for the life of the checkpoint.

        Raises:
            UnreadableCheckpointError: they are not understood.
        """
        newest = max((int(name) for name in self.names(OFFSETS) if is_number(name)), default=None)
        body = self.read(f"{OFFSETS}/{newest}") if newest is not None else None
        kept = settings_of(f"{OFFSETS}/{newest}", body.decode("utf-8")) if body is not None else {}
        return {_ENCODING: _UNSAFE_ROW, **kept}

    def names(self, directory: str) -> list[str]:
        place = self._path(directory)
        found = _unless_missing(lambda: place.getFileSystem(self._conf).listStatus(place))
        return [str(status.getPath().getName()) for status in found or ()]

    def read(self, path: str) -> bytes | None:
        place = self._path(path)
        stream = _unless_missing(lambda: place.getFileSystem(self._conf).open(place))
        if stream is None:
            return None
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{name}")


class _Planned:
    """Files of a checkpoint on this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, directory: str) -> list[str]:
        place = self._root / directory
        return [path.name for path in place.iterdir()] if place.is_dir() else []

    def read(self, path: str) -> bytes | None:
        place = self._root / path
        return place.read_bytes() if place.is_file() else None


def _compare(before: _Checkpoint, now: _Planned, operators: Iterable[int], by_name: bool) -> list[Difference]:
    found: list[Difference] = []
    for operator in operators:
        new = operator_files.columns(now, operator)
        old = operator_files.columns(before, operator) if new is not None else None
        if new is not None and old is not None:
            found += differences(operator, old, new, by_name=by_name)
    return found


def _plan_as_new(writer: DataStreamWriter, mode: str | None, folder: Path, kept: Mapping[str, str]) -> None:
    """Have Spark plan the query's first batch; it writes metadata and schemas of the state to ``folder``.

    Args:
        writer: what starts the query.
        mode: the output mode that its start names, None for the writer's own.
        folder: on this machine.
        kept: settings of the checkpoint, which decide on the columns with the plan.
    """
    session: Any = writer._spark
    jvm, spark = session._jvm, session._jsparkSession.cloneSession()
    for key, value in kept.items():
        spark.conf().set(key, value)
    # What is made for an object store may take no folder of this machine.
    spark.conf().unset(CHECKPOINT_FILES)
    execution = getattr(jvm, f"{_STREAMING}.runtime.IncrementalExecution")
    parameters = jvm.java.lang.Class.forName(f"{_STREAMING}.runtime.IncrementalExecution").getConstructors()[0]
    usual = [
        getattr(execution, f"$lessinit$greater$default${number}")()
        for number in range(_GIVEN + 1, parameters.getParameterCount() + 1)
    ]
    random = jvm.java.util.UUID.randomUUID()
    no_batch = getattr(jvm, f"{_STREAMING}.checkpointing.OffsetSeqMetadata")(0, 0, _companion(jvm, _MAP).empty())
    watermarks = _companion(jvm, f"{_STREAMING}.runtime.WatermarkPropagator").noop()
    plan: Any = writer._df._jdf.queryExecution().analyzed()
    place = f"{folder.resolve().as_uri()}/{STATE}"
    first = (spark, plan, _output_mode(writer, mode), place, random, random, 0, _companion(jvm, "scala.None"))
    execution(*first, no_batch, watermarks, True, *usual).executedPlan()


_MAP = "scala.collection.immutable.Map"


def _companion(jvm: Any, name: str) -> Any:
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _output_mode(writer: DataStreamWriter, mode: str | None) -> Any:
    if mode:
        jvm: Any = writer._spark._jvm
        return getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
    return output_mode(writer)


def _unless_missing(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Py4JJavaError as error:
        if str(error.java_exception.getClass().getName()) == _NOT_FOUND:
            return None
        raise
