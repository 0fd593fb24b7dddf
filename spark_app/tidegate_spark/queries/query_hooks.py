"""Hooks that run before and after a query starts. No I/O of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.queries.sinks.file_sinks import Sink
from tidegate_spark.queries.sinks.outputs import Output
from tidegate_spark.queries.sinks.tables import Given
from tidegate_spark.queries.unnamed.naming import UNNAMED


@dataclass(eq=False)
class QueryHooks:
    """What others have to say of queries; each can be set once there is somebody to ask."""

    on_refusal: Callable[[Reason, str], None] = lambda reason, message: None
    on_failure: Callable[[Outcome], None] = lambda outcome: None
    """Called with the failure of a query that cannot go on in this process."""
    directory_of: Callable[[DataStreamWriter, str, str, str], str] = lambda writer, name, kind, mode: (
        checkpoint_directory(name)
    )
    """Called with what starts a query, its name, format and output mode; returns its checkpoint's directory.

    Raises SinkRefusedError as :attr:`before_files`.
    """
    name_unnamed: Callable[[str, str, frozenset[str]], str] = lambda site, location, others: UNNAMED
    """Called with where a query is started that has no name, its checkpointLocation and the names of those that were
    started; returns its name.

    Raises UndecidedError if nothing shows which query it is, NewerStorageError if only a newer Tidegate can know,
    DamagedNotesError if what is noted cannot be read, and FaultError if the storage has one.
    """
    forget_unnamed: Callable[[str], None] = lambda name: None
    """Called with the name of a query that has no name of its own, when its first start has failed."""
    before_named: Callable[[str, str, Callable[[str], bool]], str] = lambda name, location, runs: ""
    """Called with the name of a query that the script names, its checkpointLocation, and what says whether a query of a
    name runs; returns why it must not start, empty if it may.

    Raises NewerStorageError, DamagedNotesError and FaultError as :attr:`name_unnamed`.
    """
    before_files: Callable[[SparkSession, str, Sink], None] | None = None
    """Called with session, checkpoint and sink of a query that writes files, before it starts; None: nothing is.

    Raises SinkRefusedError if it must not start, FaultError if it cannot for what is stored.
    """
    before_table: Callable[[DataStreamWriter, str, str, str, Given], None] | None = None
    """Likewise for a table: with what starts the query, its name, its checkpoint, the table, what is said of it."""
    before_start: Callable[[str, str], str] | None = None
    """Called with name and checkpoint of a query before it starts; returns why it must not, empty if it may."""
    before_output: Callable[[str, Output | None], str] | None = None
    """Likewise with name and output."""
    before_control: Callable[[DataStreamWriter, str], str] | None = None
    """Likewise with what starts it, and its name."""
    before_input: Callable[[DataStreamWriter, str], str] | None = None
    """Likewise, for what it reads."""
    before_state: Callable[[DataStreamWriter, str, str, str | None], str] | None = None
    """Likewise with what starts it, its name, its checkpoint and the output mode that its start names."""
    before_session: Callable[[SparkSession], None] = lambda session: None
    """Called with the session of a query before it starts."""
    on_start: Callable[[str], None] = lambda name: None
    """Called with the name of a query that was started."""
    elsewhere: Callable[[], tuple[str, ...]] = tuple
    """Returns the names of queries that code in the JVM runs, as far as that is known; asks the JVM."""
    around: Callable[[str], AbstractContextManager[None]] | None = None
    """Within what it returns a query of this name is started."""

    def why_not(self, writer: DataStreamWriter, name: str, location: str, output: Output | None) -> str:
        """Return why a query must not start, empty if nobody has anything against it."""
        why = self.before_start(name, location) if self.before_start is not None else ""
        if not why and self.before_output is not None:
            why = self.before_output(name, output)
        if not why and self.before_control is not None:
            why = self.before_control(writer, name)
        if not why and self.before_input is not None:
            why = self.before_input(writer, name)
        return why

    def why_not_its_state(self, writer: DataStreamWriter, name: str, location: str, mode: str | None) -> str:
        """Return why a query must not start with the state that is there, empty if it may."""
        return self.before_state(writer, name, location, mode) if self.before_state is not None else ""
