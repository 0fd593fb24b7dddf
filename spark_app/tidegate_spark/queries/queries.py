"""Where each streaming query keeps its checkpoint, and which queries there are: a wrapper around DataStreamWriter.

The script's own calls stay as they are; ``start`` and ``toTable`` get a name and a checkpoint location on their way to
Spark. Talks to the JVM.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.object_paths import checkpoint_directory as checkpoint_directory  # noqa: PLC0414 - said so that importers may take it
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.spark.sparkconf import CHECKPOINT_FORMAT, SHUFFLE_PARTITIONS, STATE_STORE, format_of_store
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.same_query import Plan, note_functions, plan_of
from tidegate_spark.queries.sinks.file_sinks import Sink, SinkRefusedError, sink_of
from tidegate_spark.queries.sinks.outputs import Output, output_of
from tidegate_spark.queries.sinks.tables import Given
from tidegate_spark.queries.writers import texts, writer_format, writer_mode, writer_options

UNNAMED = "main"
"""The name of a script's one unnamed query."""


class QueryRefusedError(SystemExit):
    """A query that cannot be given a checkpoint of its own.

    Not an Exception: a script that catches those around ``start()`` would go on with one query less.
    """

    reason = Reason.QUERY_REFUSED


class StateRefusedError(QueryRefusedError):
    """A query that would read its state for something else."""

    reason = Reason.STATE_SCHEMA


class DriverStoppingError(SystemExit):
    """``start()`` was called after the driver began to stop."""


@dataclass(frozen=True)
class Entry:
    """A query that was started: its name, where in the script, whether the script named it, and its latest run."""

    name: str
    site: str
    named: bool
    query: StreamingQuery | None = None
    plan: Plan | None = None
    """What an unnamed query does; a named one goes by its name."""
    location: str = ""
    """The checkpointLocation that the script gave an unnamed query."""
    directory: str = ""
    """The name of its checkpoint's directory in the lineage."""


def refusal(
    wanted: Entry, entries: dict[str, Entry], active: Callable[[Entry], bool], failed: Callable[[Entry], bool]
) -> str | None:
    """Return why a query must not be started, None if it may.

    Args:
        wanted: the query.
        entries: those that were started before.
        active: asks whether one of them runs.
        failed: asks whether the latest run of one of them ended with a failure.
    """
    before, site = entries.get(wanted.name), wanted.site
    if before is None:
        return None
    if not wanted.named:
        if not before.named and not active(before) and _goes_on(before, wanted, failed):
            return None
        # Two queries on one checkpoint would skip each other's input, even one after the other.
        whose = f"query {before.name!r}" if before.named else f"the unnamed query, called {UNNAMED!r},"
        return messages.unnamed_shares(site, whose, before.site)
    if not before.named:
        return messages.named_shares(wanted.name, site, UNNAMED, before.site)
    if active(before):
        return messages.named_twice(wanted.name, before.site, site)
    return None


def _goes_on(before: Entry, wanted: Entry, failed: Callable[[Entry], bool]) -> bool:
    """Say whether an unnamed query is the one before, started again: it goes on in its checkpoint."""
    if before.location or wanted.location:
        return before.location == wanted.location  # the script says so itself
    if before.plan is None or wanted.plan is None or before.site != wanted.site:
        return False
    # One that has ended well has read all that there was: whoever starts another one like it may mean another.
    return before.plan.is_same(wanted.plan) and failed(before)


class Target(NamedTuple):
    """What ``start`` or ``toTable`` was told of where to write."""

    path: str | None
    kind: str | None
    """The format."""
    table: str = ""
    mode: str | None = None
    """The output mode."""

    def output(self, writer: DataStreamWriter, options: dict[str, str | None]) -> Output | None:
        """Return where that is, with what was set before; asks the JVM."""
        path = {"path": self.path} if self.path else {}
        return output_of(self.kind or writer_format(writer), self.table, {**options, **path})


class Queries:
    """All queries of this driver."""

    def __init__(self, lineage_uri: str, state_partitions: int, progress: Progress) -> None:
        """Keep checkpoints below ``lineage_uri``, with ``state_partitions`` in new ones."""
        self._lineage_uri = lineage_uri
        self._state_partitions = str(state_partitions)
        self._progress = progress
        self._lock = threading.Lock()
        self._settings_lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._starting = 0
        self._closed = False
        self.on_refusal: Callable[[Reason, str], None] = lambda reason, message: None
        self.directory_of: Callable[[DataStreamWriter, str, str, str], str] = lambda writer, name, kind, mode: (
            checkpoint_directory(name)
        )
        """Called with what starts a query, its name, format and output mode; returns its checkpoint's directory.

        Raises SinkRefusedError as :attr:`before_files`.
        """

        self.before_files: Callable[[str, Sink], None] | None = None
        """Called with the checkpoint and the sink of a query that writes files, before it starts; None: nobody looks.

        Raises SinkRefusedError if it must not start.
        """

        self.before_table: Callable[[DataStreamWriter, str, str, str, Given], None] | None = None
        """Likewise for a table: with what starts the query, its name, its checkpoint, the table, what is said of it."""

        self.before_start: Callable[[str, str], str] | None = None
        """Called with name and checkpoint of a query before it starts; returns why it must not, empty if it may."""

        self.before_output: Callable[[str, Output | None], str] | None = None
        """Likewise with name and output."""

        self.before_control: Callable[[DataStreamWriter, str], str] | None = None
        """Likewise with what starts it, and its name."""

        self.before_input: Callable[[DataStreamWriter, str], str] | None = None
        """Likewise, for what it reads."""

        self.before_state: Callable[[DataStreamWriter, str, str, str | None], str] | None = None
        """Likewise with what starts it, its name, its checkpoint and the output mode that its start names."""

        self.before_session: Callable[[SparkSession], None] = lambda session: None
        """Called with the session of a query before it starts."""

        self.on_start: Callable[[str], None] = lambda name: None
        """Called with the name of a query that was started."""

        self.around: Callable[[str], AbstractContextManager[None]] | None = None
        """Within what it returns a query of this name is started."""

    def install(self) -> None:
        """Wrap ``DataStreamWriter.start`` and ``toTable`` for this process."""
        note_functions()
        original_start, original_table = DataStreamWriter.start, DataStreamWriter.toTable

        @functools.wraps(original_start)
        def start(  # noqa: PLR0913, PLR0917 - Spark's signature
            writer: DataStreamWriter,
            path: str | None = None,
            format: str | None = None,  # noqa: A002 - Spark's name
            outputMode: str | None = None,  # noqa: N803 - Spark's name
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            queryName: str | None = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> StreamingQuery:
            call = functools.partial(original_start, writer, path, format, outputMode, partitionBy)
            target = Target(path or options.get("path"), format, mode=outputMode)
            return self._start_query(writer, queryName, options, call, target)

        @functools.wraps(original_table)
        def to_table(  # noqa: PLR0913, PLR0917 - Spark's signature
            writer: DataStreamWriter,
            tableName: str,  # noqa: N803 - Spark's name
            format: str | None = None,  # noqa: A002 - Spark's name
            outputMode: str | None = None,  # noqa: N803 - Spark's name
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            queryName: str | None = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> StreamingQuery:
            call = functools.partial(original_table, writer, tableName, format, outputMode, partitionBy)
            target = Target(options.get("path"), format, tableName, outputMode)
            return self._start_query(writer, queryName, options, call, target)

        DataStreamWriter.start = start  # type: ignore[assignment, method-assign] # the one place where a script's queries pass
        DataStreamWriter.toTable = to_table  # type: ignore[assignment, method-assign] # likewise

    def close(self) -> None:
        """Let no further query start."""
        with self._lock:
            self._closed = True

    @property
    def starting(self) -> bool:
        """True while a ``start()`` is under way."""
        with self._lock:
            return self._starting > 0

    def entries(self) -> list[Entry]:
        """Return all queries that were started, ended ones too, each with its latest run."""
        with self._lock:
            return [entry for entry in self._entries.values() if entry.query is not None]

    def active(self) -> list[Entry]:
        """Return the queries that run now; asks the JVM."""
        return [entry for entry in self.entries() if _is_active(entry)]

    def _start_query(
        self,
        writer: DataStreamWriter,
        name_argument: str | None,
        options: dict[str, Any],
        call: Callable[..., StreamingQuery],
        target: Target,
    ) -> StreamingQuery:
        site = call_site()
        self.before_session(writer._spark)
        earlier = writer_options(writer)
        output = target.output(writer, {**earlier, **texts(options)})
        locations = [key for key in options if key.lower() == "checkpointlocation"]
        own_location = [options.pop(key) for key in locations] or [earlier.get("checkpointlocation")]
        entry, before = self._admit(
            _wanted(name_argument or earlier.get("queryname"), site, writer, output, own_location)
        )
        try:
            kind, mode = target.kind or writer_format(writer), target.mode or writer_mode(writer)
            with self._refusing(site):
                entry = self._place(entry, self.directory_of(writer, entry.name, kind, mode.lower()))
            location = f"{self._lineage_uri}/{entry.directory}"
            self._say_redirected(entry.name, own_location[-1], location)
            self._ask_before(writer, entry.name, location, output, site)
            with self._refusing(site):
                if target.table and self.before_table is not None:
                    given = Given(kind, target.path or earlier.get("path") or "")
                    self.before_table(writer, entry.name, location, target.table, given)
                elif self.before_files is not None and not target.table:
                    files = sink_of(target.path, target.kind, earlier, writer_format(writer))
                    if files is not None:
                        self.before_files(location, files)
            self._look_at_state(writer, entry.name, location, target.mode, site)
            writer.queryName(entry.name).option("checkpointLocation", location)
            with self.around(entry.name) if self.around is not None else contextlib.nullcontext():
                query = self._start(writer._spark.conf, functools.partial(call, **options))
        except BaseException:
            self._settle(entry.name, before)
            raise
        self._settle(entry.name, dataclasses.replace(entry, query=query))
        self.on_start(entry.name)
        batch = committed_batch(query)
        if batch is not None:
            self._progress.query_started(entry.name, batch)
        return query

    def _admit(self, wanted: Entry) -> tuple[Entry, Entry | None]:
        with self._lock:
            if self._closed:
                raise DriverStoppingError(143)
            message = refusal(wanted, self._entries, _is_active, _has_failed)
            if message is None:
                before = self._entries.get(wanted.name)
                self._entries[wanted.name] = wanted
                self._starting += 1
                return wanted, before
        raise self._refused(QueryRefusedError(message))

    def _refused(self, error: QueryRefusedError) -> QueryRefusedError:
        self.on_refusal(error.reason, str(error))
        return error

    def _place(self, entry: Entry, directory: str) -> Entry:
        with self._lock:
            self._entries[entry.name] = placed = dataclasses.replace(entry, directory=directory)
        return placed

    def directory(self, name: str) -> str:
        """Return the name of the directory of a query's checkpoint, as far as it was started."""
        with self._lock:
            entry = self._entries.get(name)
        return entry.directory if entry is not None and entry.directory else checkpoint_directory(name)

    def _settle(self, name: str, entry: Entry | None) -> None:
        with self._lock:
            self._starting -= 1
            if entry is None:
                del self._entries[name]
            else:
                self._entries[name] = entry

    def _ask_before(self, writer: DataStreamWriter, name: str, location: str, output: Output | None, site: str) -> None:
        why = self.before_start(name, location) if self.before_start is not None else ""
        if not why and self.before_output is not None:
            why = self.before_output(name, output)
        if not why and self.before_control is not None:
            why = self.before_control(writer, name)
        if not why and self.before_input is not None:
            why = self.before_input(writer, name)
        if why:
            raise self._refused(QueryRefusedError(f"query {name!r} started at {site}: {why}"))

    def _look_at_state(self, writer: DataStreamWriter, name: str, location: str, mode: str | None, site: str) -> None:
        why = self.before_state(writer, name, location, mode) if self.before_state is not None else ""
        if why:
            raise self._refused(StateRefusedError(f"query {name!r} started at {site}: {why}"))

    @contextlib.contextmanager
    def _refusing(self, site: str) -> Iterator[None]:
        try:
            yield
        except SinkRefusedError as error:
            raise self._refused(QueryRefusedError(f"the query started at {site}: {error}")) from error

    def _say_redirected(self, name: str, own_location: Any, location: str) -> None:
        if own_location and str(own_location).rstrip("/") != location:
            self._progress.notice(
                Reason.CHECKPOINT_REDIRECTED,
                messages.checkpoint_ignored(name, own_location, location),
            )

    def _start(self, conf: RuntimeConfig, call: Callable[[], StreamingQuery]) -> StreamingQuery:
        # A query takes a copy of the session's settings when it is made. They are the session's own again afterwards,
        # and one start at a time sees them changed.
        with self._settings_lock:
            return with_settings(conf, self._state_settings(conf), call)

    def _state_settings(self, conf: RuntimeConfig) -> dict[str, str]:
        # Spark fixes a new query's number of state partitions from this setting; the spec, not the script, decides it.
        store, version = str(conf.get(STATE_STORE)), str(conf.get(CHECKPOINT_FORMAT))
        # A store that the script names in the session: the format is ours, and only RocksDB has it.
        fitting = format_of_store(store, version)
        settings = {CHECKPOINT_FORMAT: fitting} if fitting != version else {}
        scripts_own = conf.get(SHUFFLE_PARTITIONS)
        if scripts_own == self._state_partitions:
            return settings
        self._progress.notice(
            Reason.CONFIGURATION_IGNORED,
            messages.partitions_ignored(SHUFFLE_PARTITIONS, scripts_own, self._state_partitions),
        )
        return {**settings, SHUFFLE_PARTITIONS: self._state_partitions}


def with_settings(conf: RuntimeConfig, settings: dict[str, str], call: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Return ``call()``, during which ``conf`` has ``settings``; afterwards it has what it had before."""
    before = {key: conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            conf.set(key, value)
        return call()
    finally:
        for key, earlier in before.items():
            if earlier is None:
                conf.unset(key)
            else:
                conf.set(key, earlier)


def _is_active(entry: Entry) -> bool:
    return entry.query is None or bool(entry.query.isActive)


def _has_failed(entry: Entry) -> bool:
    return entry.query is not None and bool(entry.query._jsq.exception().isDefined())


def _wanted(
    requested: str | None, site: str, writer: DataStreamWriter, output: Output | None, own_location: list[Any]
) -> Entry:
    """Return a query as the script asks for it."""
    if requested:
        return Entry(requested, site, named=True)
    return Entry(UNNAMED, site, named=False, plan=plan_of(writer, output), location=str(own_location[-1] or ""))


def committed_batch(query: StreamingQuery) -> int | None:
    """Return the newest batch in ``query``'s commit log, -1 if there is none, None if it cannot be read now."""
    try:
        latest = query._jsq.streamingQuery().commitLog().getLatestBatchId()
        return int(latest.get()) if latest.isDefined() else -1
    except (Py4JError, OSError):
        return None


def call_site() -> str:
    """Return file and line of the innermost caller outside this package and PySpark."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("tidegate_spark", "pyspark")):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
