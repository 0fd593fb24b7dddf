"""Gives each streaming query its name and checkpoint location, by wrapping DataStreamWriter. Talks to the JVM.

The script's calls stay as they are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.object_paths import checkpoint_directory as checkpoint_directory  # noqa: PLC0414 - said so that importers may take it
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.spark.sparkconf import CHECKPOINT_FORMAT, SHUFFLE_PARTITIONS, STATE_STORE, format_of_store
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.entries import (
    Entry,
    committed_batch,
    entry_of,
    has_failed,
    is_active,
    is_moved,
    refusal,
    retried,
)
from tidegate_spark.queries.query_hooks import QueryHooks
from tidegate_spark.queries.refusals import (
    DriverStoppingError,
    NotContinuedError,
    NotStartedError,
    QueryRefusedError,
    StateRefusedError,
)
from tidegate_spark.queries.same_query import note_functions
from tidegate_spark.queries.sinks.file_sinks import SinkRefusedError, sink_of
from tidegate_spark.queries.sinks.outputs import Output, output_of
from tidegate_spark.queries.sinks.tables import Given
from tidegate_spark.queries.unnamed.naming import UndecidedError
from tidegate_spark.queries.writers import give_place, scripts_options, texts, writer_format, writer_mode
from tidegate_spark.storage.location_notes import DamagedNotesError
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError


class Target(NamedTuple):
    """The arguments of ``start`` or ``toTable`` that say where to write."""

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


class Queries(QueryHooks):
    """All queries of this driver."""

    def __init__(self, lineage_uri: str, state_partitions: int, progress: Progress) -> None:
        """Keep checkpoints below ``lineage_uri``, with ``state_partitions`` in new ones."""
        super().__init__()
        self._lineage_uri = lineage_uri
        self._state_partitions = str(state_partitions)
        self._progress = progress
        self._lock = threading.Lock()
        self._settings_lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._ended_well: dict[str, StreamingQuery] = {}
        """Runs that are known to have ended without a failure, which is for good: nobody asks the JVM again."""
        self._starting = 0
        self._closed = False

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

    def is_starting(self, name: str) -> bool:
        """Return whether a ``start()`` of this name is under way: its query may run already."""
        with self._lock:
            entry = self._entries.get(name)
        return entry is not None and not entry.was_started

    def has_started(self, name: str, run: str) -> bool:
        """Return whether a run is the latest one of the query of this name; asks the JVM."""
        with self._lock:
            entry = self._entries.get(name)
        return entry is not None and entry.query is not None and str(entry.query.runId) == run

    def entries(self) -> list[Entry]:
        """Return all queries that were started, ended ones too, each with its latest run."""
        with self._lock:
            return [entry for entry in self._entries.values() if entry.was_started]

    def not_ended_well(self) -> list[Entry]:
        """Return the queries of which it is not known that their latest run ended well: they run, or have failed."""
        with self._lock:
            started = [entry for entry in self._entries.values() if entry.query is not None]
            return [entry for entry in started if self._ended_well.get(entry.name) is not entry.query]

    def note_ended_well(self, entry: Entry) -> None:
        """Take note that a run ended without a failure."""
        if entry.query is not None:
            with self._lock:
                self._ended_well[entry.name] = entry.query

    def release_ended(self, last_commit: Callable[[StreamingQuery], int | None]) -> None:
        """Keep nothing in the JVM of runs that ended well; asks the JVM, and the storage.

        A query that Python knows stays there with its plans and logs. A script may start another one each minute.

        Args:
            last_commit: returns a run's newest committed batch, None if it cannot be read now: then it is kept.
        """
        with self._lock:
            ended = dict(self._ended_well)
        for name, query in ended.items():
            batch = last_commit(query)
            if batch is None:
                continue
            with self._lock:
                entry = self._entries.get(name)
                if entry is not None and entry.query is query:
                    self._entries[name] = dataclasses.replace(entry, query=None, ended_at=batch)
                if self._ended_well.get(name) is query:
                    del self._ended_well[name]

    def active(self) -> list[Entry]:
        """Return the queries that run now; asks the JVM."""
        return [entry for entry in self.not_ended_well() if is_active(entry)]

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
        earlier = scripts_options(writer)
        output = target.output(writer, {**earlier, **texts(options)})
        locations = [key for key in options if key.lower() == "checkpointlocation"]
        own_location = [options.pop(key) for key in locations] or [earlier.get("checkpointlocation")]
        own_name = name_argument or earlier.get("queryname")
        wanted = entry_of(own_name, site, writer, output, own_location)
        entry, before = self._admit(wanted if wanted.named else self._named(wanted))
        try:
            entry = self._with_directory(writer, entry, target)
            self._ask_for_location(entry)
            location = self._location(entry)
            self._say_redirected(entry.name, own_location[-1], location)
            self._ask_others(writer, entry, target, output, earlier)
            give_place(writer, entry.name, location, {"queryname": own_name, "checkpointlocation": own_location[-1]})
            with self.around(entry.name) if self.around is not None else contextlib.nullcontext():
                query = self._start(writer._spark.conf, functools.partial(call, **options))
        except BaseException:
            self._settle(entry.name, before)
            if before is None and not wanted.named:
                self.forget_unnamed(entry.name)
            raise
        self._settle(entry.name, dataclasses.replace(entry, query=query))
        self.on_start(entry.name)
        batch = committed_batch(query)
        if batch is not None:
            self._progress.query_started(entry.name, batch)
        return query

    def _location(self, entry: Entry) -> str:
        return f"{self._lineage_uri}/{entry.directory}"

    def _ask_others(
        self, writer: DataStreamWriter, entry: Entry, target: Target, output: Output | None, earlier: dict[str, str]
    ) -> None:
        """Ask everybody who may have something against a query; ``earlier`` is what was set before its start."""
        name, location = entry.name, self._location(entry)
        self._refuse_if(QueryRefusedError, entry, self.why_not(writer, name, location, output))
        with self._refusing(entry.site):
            if target.table and self.before_table is not None:
                given = Given(target.kind or writer_format(writer), target.path or earlier.get("path") or "")
                self.before_table(writer, name, location, target.table, given)
            elif self.before_files is not None and not target.table:
                files = sink_of(target.path, target.kind, earlier, writer_format(writer))
                if files is not None:
                    self.before_files(writer._spark, location, files)
        self._refuse_if(StateRefusedError, entry, self.why_not_its_state(writer, name, location, target.mode))

    def _ask_for_location(self, entry: Entry) -> None:
        """Have a named query refused that has another one's location: Spark would continue that one."""
        if entry.named and not entry.starts_empty:
            with self._refusing(entry.site):
                why = self.before_named(entry.name, entry.location, self._runs)
            self._refuse_if(QueryRefusedError, entry, why)

    def _runs(self, name: str) -> bool:
        with self._lock:
            entry = self._entries.get(name)
        return entry is not None and is_active(entry)

    def _refuse_if(self, kind: type[QueryRefusedError], entry: Entry, why: str) -> None:
        if why:
            raise self._refused(kind(f"query {entry.name!r} started at {entry.site}: {why}"))

    def _named(self, wanted: Entry) -> Entry:
        """Return a query with the name that it gets from us: the script gives it none."""
        with self._lock:
            started = dict(self._entries)
        moved = next((each for each in started.values() if is_moved(each, wanted, has_failed)), None)
        if moved is not None:
            self._end_of_retry(moved, wanted, messages.RETRIED_ELSEWHERE)
        with self._refusing(wanted.site):
            try:
                name = self.name_unnamed(wanted.site, wanted.location, frozenset(started))
            except UndecidedError:
                for each in started.values():
                    self._end_of_retry(each, wanted, messages.RETRIED_AS_ANOTHER)
                raise
        return dataclasses.replace(wanted, name=name)

    def _admit(self, entry: Entry) -> tuple[Entry, Entry | None]:
        with self._lock:
            if self._closed:
                raise DriverStoppingError(143)
            message = refusal(entry, self._entries, is_active, has_failed)
            before = self._entries.get(entry.name)
            if message is None:
                self._entries[entry.name] = entry
                self._starting += 1
                return entry, before
        if before is not None:
            # Of a named query only the location can be another one.
            why = messages.RETRIED_ELSEWHERE if entry.named else messages.RETRIED_AS_ANOTHER
            self._end_of_retry(before, entry, why)
        raise self._refused(QueryRefusedError(message))

    def _end_of_retry(self, before: Entry, wanted: Entry, why: str) -> None:
        """End the driver if a query that has failed is started again, and nothing shows here that it is that one.

        Its first start was accepted, and so will it be in the next process, which continues it. A refusal would be for
        good, and the script may have run for days.
        """
        outcome = retried(before, wanted, why)
        if outcome is not None:
            self.on_failure(outcome)
            raise NotContinuedError(outcome)

    def _refused(self, error: QueryRefusedError) -> QueryRefusedError:
        self.on_refusal(error.reason, str(error))
        return error

    def _with_directory(self, writer: DataStreamWriter, entry: Entry, target: Target) -> Entry:
        kind, mode = target.kind or writer_format(writer), target.mode or writer_mode(writer)
        with self._refusing(entry.site):
            directory = self.directory_of(writer, entry.name, kind, mode.lower())
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

    @contextlib.contextmanager
    def _refusing(self, site: str) -> Iterator[None]:
        try:
            yield
        except SinkRefusedError as error:
            raise self._refused(QueryRefusedError(f"the query started at {site}: {error}")) from error
        except UndecidedError as error:
            raise self._refused(QueryRefusedError(messages.unnamed_undecided(site, str(error)))) from error
        except NewerStorageError as error:
            raise self._refused(NotStartedError(Reason.NEWER_FORMAT, f"{error}.")) from error
        except DamagedNotesError as error:
            raise self._refused(NotStartedError(Reason.NOTES_DAMAGED, f"{error}.")) from error
        except FaultError as error:
            raise self._refused(NotStartedError(error.fault.reason, error.fault.message)) from error

    def _say_redirected(self, name: str, own_location: Any, location: str) -> None:
        if own_location and str(own_location).rstrip("/") != location:
            self._progress.notice(
                Reason.CHECKPOINT_REDIRECTED,
                messages.checkpoint_ignored(name, location),
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


def call_site() -> str:
    """Return file and line of the innermost caller outside this package and PySpark."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("tidegate_spark", "pyspark")):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
