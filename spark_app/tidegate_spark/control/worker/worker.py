"""A Python worker's state of the control stream, and :func:`current`. Asks the driver once a batch.

It also serves functions that run in the driver for a batch, such as foreachBatch's.
"""

from __future__ import annotations

import base64
import functools
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkContext, TaskContext, cloudpickle

from tidegate_spark.contract.control_protocol import ControlSettings
from tidegate_spark.contract.json_form import from_json
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.control.messages.deadlines import Deadlines
from tidegate_spark.control.messages.handlers import FAIL, RAISED, Handler, message_of
from tidegate_spark.control.worker import models, program
from tidegate_spark.control.worker.batch_view import Current
from tidegate_spark.control.worker.driver_client import (
    ADDRESS_PROPERTY,
    APPLIED,
    QUERY_PROPERTY,
    STATE,
    TOKEN_PROPERTY,
    Caller,
    ControlError,
    Line,
    portions,
)
from tidegate_spark.control.worker.shared_lock import SharedLock
from tidegate_spark.control_log.entries import Entry, Segment
from tidegate_spark.control_log.reducer import Model, State
from tidegate_spark.storage import start_variables

BATCH_PROPERTY = "streaming.sql.batchId"
"""Spark's own."""

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
log = logging.getLogger("tidegate")


class Worker:
    """One process that runs functions of queries. Thread safe."""

    def __init__(self, name: str, ask: Ask, directory: Path) -> None:
        """Prepare.

        Args:
            name: of the process, unique in the application.
            ask: asks the driver.
            directory: where files of models are kept.
        """
        self._name, self._ask, self._directory = name, ask, directory
        self._lock = SharedLock()
        self._known: dict[str, tuple[int, State, Current]] = {}
        self._handlers: Mapping[str, Handler] = {}
        self._version = 0
        self._handled: dict[tuple[str, str], int] = {}
        """Query and type -> sequence of the newest message that a handler was called for."""
        self._made: dict[tuple[str, str], Any] = {}
        """Query and type -> what the handler returned: two queries are at different messages for a while."""
        self._last_made: dict[str, tuple[int, Any]] = {}
        """Type -> sequence of the message that the handler was called for last, if it did not fail, and the result."""
        self._place, self._settings = Storage(""), ControlSettings()
        self._deadlines = Deadlines(self._settings.message_timeout_seconds)
        self._objects: dict[str, tuple[str, Any]] = {}
        """Name of a model -> checksum of the version that was loaded last, and what was made of it."""
        self._rejected: dict[tuple[str, str], str] = {}
        """Names and checksums of what could not be loaded -> why."""
        self._reported: set[tuple[str, int, str]] = set()

    def current(self, query: str, batch: int) -> Current:
        """Return what is in force in a batch.

        Raises:
            ControlError: the driver does not answer, or a handler failed whose exceptions are to fail the query.
        """
        with self._lock.held():
            known = self._known.get(query)
            if known is not None and known[0] == batch:
                return known[2]
            before = known[1] if known is not None else None
            said = self._ask(
                STATE,
                {
                    "query": query,
                    "batch": batch,
                    "worker": self._name,
                    "position": before.position if before is not None else -1,
                    "handlers": self._version,
                },
            )
            state = self._read(said, before)
            here = _Batch(self, query, batch)
            now = Current(state, here, query, batch)
            self._known[query] = (batch, state, now)
            earlier = from_json(Segment, said["before"]).entries
            failure = self._call(from_json(Segment, said["messages"]).entries, earlier, here)
            if not said.get("applied"):
                self._report_applied(here)
            here.applied = True
            if failure is not None:
                # Asked for again in the next attempt at this task, it must fail again.
                del self._known[query]
                raise failure
            return now

    # --- what a program is shown in a batch: see Surroundings ---

    def trouble(self, here: _Batch, sequence: int, message: str) -> None:
        """Report what is wrong with a message; the same once for each query."""
        with self._lock.held():
            if (here.query, sequence, message) in self._reported:
                return
            self._reported.add((here.query, sequence, message))
            log.warning("control: message %d: %s", sequence, message)
            here.errors.setdefault(sequence, message)
            if here.applied:
                self._report_applied(here)

    def made(self, query: str, kind: str) -> Any:
        """Return what this worker's handler returned for a query's newest message of a type."""
        return self._made.get((query, kind))

    def file_of(self, here: _Batch, name: str, versions: Sequence[Model]) -> Path:
        """Return the file of the first of a model's versions that can be had."""
        with self._lock.held():
            for model in versions:
                file = self._file_of(here, name, model)
                if file is not None:
                    return file
            raise _none(name, versions)

    def loaded(self, here: _Batch, name: str, versions: Sequence[Model], loader: Callable[[Path], Any]) -> Any:
        """Return what ``loader`` makes of the file of the first version that can be had and loaded."""
        with self._lock.held():
            before = self._objects.get(name)
            for model in versions:
                if before is not None and before[0] == model.sha256:
                    return before[1]
                rejection = self._rejected.get((name, model.sha256))
                if rejection is not None:
                    self.trouble(here, model.sequence, rejection)  # it may be another query's
                    continue
                file = self._file_of(here, name, model)
                if file is None:
                    continue
                try:
                    made = loader(file)
                except RAISED as error:  # whatever it is: the previous version goes on
                    # The same file would fail again.
                    message = self._rejected[(name, model.sha256)] = f"model {name!r}: {type(error).__name__}: {error}"
                    self.trouble(here, model.sequence, message)
                    continue
                self._objects[name] = (model.sha256, made)
                return made
            raise _none(name, versions)

    def _file_of(self, here: _Batch, name: str, model: Model) -> Path | None:
        if (name, model.sha256) in here.missed:
            return None
        try:
            is_over = models.within(self._settings.message_timeout_seconds)
            size_limit = self._settings.models.size_limit
            fetch = models.fetcher(self._place, models.pod_credentials, size_limit=size_limit, is_over=is_over)
            get = functools.partial(models.file_of, model, self._directory, fetch, size_limit, is_over)
            return self._deadlines.run(f"fetching {model.uri}", get)
        except Exception as error:  # whatever it is: the previous version goes on, and the next batch tries again
            here.missed.add((name, model.sha256))
            self.trouble(here, model.sequence, f"model {name!r}: {type(error).__name__}: {error}")
            return None

    # --- parts ---

    def _read(self, said: Mapping[str, Any], before: State | None) -> State:
        handlers = said.get("handlers")
        if handlers:
            self._handlers = cloudpickle.loads(base64.b64decode(handlers["content"]))
            self._version = int(handlers["version"])
        self._place, settings = from_json(Storage, said["storage"]), from_json(ControlSettings, said["control"])
        if settings != self._settings:
            self._settings, self._deadlines = settings, Deadlines(settings.message_timeout_seconds)
        if said.get("state"):
            return from_json(State, said["state"])
        assert before is not None
        return before

    def _call(self, entries: Iterable[Entry], earlier: Sequence[Entry], here: _Batch) -> Exception | None:
        """Call the handlers; return what is to end the task.

        Args:
            entries: messages to call them for.
            earlier: messages before those, of each type the newest first: for where a handler fails, and goes on.
            here: the batch.
        """
        failure: Exception | None = None
        for entry in entries:
            handler, key = self._handlers.get(entry.type), (here.query, entry.type)
            if handler is None or self._handled.get(key, 0) >= entry.sequence:
                continue
            error = self._made_of(handler, entry, here)
            if error is not None and handler.raises == FAIL:
                failure = ControlError(f"the handler for {entry.type!r} failed: {type(error).__name__}: {error}")
                failure.__cause__ = error
                continue
            if error is not None:
                self._fall_back(handler, [each for each in earlier if each.type == entry.type], here)
            self._handled[key] = entry.sequence
        return failure

    def _made_of(self, handler: Handler, entry: Entry, here: _Batch) -> BaseException | None:
        """Keep what a handler makes of a message; return what it raised, which is reported."""
        try:
            self._made[(here.query, entry.type)] = self._result(handler, entry)
        except RAISED as error:  # whatever a handler raises
            message = f"{type(error).__name__}: {error}"
            here.errors.setdefault(entry.sequence, message)
            log.warning("control: the handler for %s (%d) failed: %s", entry.type, entry.sequence, message)
            return error
        return None

    def _fall_back(self, handler: Handler, earlier: Iterable[Entry], here: _Batch) -> None:
        """Keep what a handler makes of the newest message for which it does not fail: what older workers have."""
        for entry in earlier:
            # What was made before, if anything was, is of the newest that was any good then.
            if entry.sequence <= self._handled.get((here.query, entry.type), 0):
                return
            if self._made_of(handler, entry, here) is None:
                return

    def _result(self, handler: Handler, entry: Entry) -> Any:
        """Call a handler, unless it was called last for this very message, by another query."""
        last = self._last_made.pop(entry.type, None)
        if last is None or last[0] != entry.sequence:
            called = functools.partial(handler.function, message_of(entry))
            what = f"the handler for {entry.type} (message {entry.sequence})"
            last = (entry.sequence, self._deadlines.run(what, called))
        self._last_made[entry.type] = last
        return last[1]

    def _report_applied(self, here: _Batch) -> None:
        body = {"query": here.query, "batch": here.batch, "worker": self._name}
        for number, errors in enumerate(portions(here.errors)):
            self._ask(APPLIED, {**body, "errors": errors, "more": number > 0})


class _Batch:
    """A worker in one batch of one query: in the driver there are several queries at a time."""

    def __init__(self, worker: Worker, query: str, batch: int) -> None:
        self._worker, self.query, self.batch = worker, query, batch
        self.applied = False
        self.errors: dict[int, str] = {}
        self.missed: set[tuple[str, str]] = set()
        """Names and checksums of what could not be had."""

    def trouble(self, sequence: int, message: str) -> None:
        """See :class:`tidegate_spark.control.worker.batch_view.Surroundings`, as of the others."""
        self._worker.trouble(self, sequence, message)

    def made(self, kind: str) -> Any:
        """Likewise."""
        return self._worker.made(self.query, kind)

    def file_of(self, name: str, versions: Sequence[Model]) -> Path:
        """Likewise."""
        return self._worker.file_of(self, name, versions)

    def loaded(self, name: str, versions: Sequence[Model], loader: Callable[[Path], Any]) -> Any:
        """Likewise."""
        return self._worker.loaded(self, name, versions, loader)


def _none(name: str, versions: Sequence[Model]) -> ControlError:
    said = f"see the acknowledgement of message {versions[0].sequence}"
    return ControlError(f"model {name!r} cannot be had in any version: {said}")


class _Workers:
    """The one of this process."""

    lock = threading.Lock()
    here: Worker | None = None
    known_by: tuple[int, str] = (0, "")


def current() -> Current:
    """Return what is in force in the batch whose function this is called from.

    In the functions of a query that :func:`tidegate_spark.control.controlled` made take part, on the executors and (in
    ``foreachBatch``) in the driver. Every call in a batch returns the same, in every worker, and again if the batch is
    run again. Outside of Tidegate nothing is in force, so that everything has its default.

    Raises:
        ControlError: the query does not take part, this is no function of a query, or the driver does not answer.
    """
    context = TaskContext.get()
    read = context.getLocalProperty if context is not None else _property_of_driver()
    query = read(QUERY_PROPERTY)
    if not query:
        if context is None and program.is_hosted():
            raise ControlError("current() returns what is in effect in a batch: call it in functions of a query")
        return Current(State(), _Outside())
    address, batch = read(ADDRESS_PROPERTY), read(BATCH_PROPERTY)
    if not address:
        message = f"query {query!r} does not take part in the control stream"
        raise ControlError(f"{message}: pass one of its inputs through tidegate_spark.control.controlled()")
    if not batch:
        raise ControlError(f"this is called for query {query!r}, and in none of its batches")
    return _here(Line(address, read(TOKEN_PROPERTY) or "")).current(query, int(batch))


def _here(line: Line) -> Worker:
    with _Workers.lock:
        known_by = (os.getpid(), line.address)
        if _Workers.here is None or _Workers.known_by != known_by:
            start_variables.note_start_of_process()
            name = f"{socket.gethostname()}/{os.getpid()}"
            directory = Path(tempfile.gettempdir()) / "tidegate-models"
            _Workers.here, _Workers.known_by = Worker(name, Caller(line).ask, directory), known_by
        return _Workers.here


def _property_of_driver() -> Callable[[str], str | None]:
    context: Any = SparkContext._active_spark_context
    return context.getLocalProperty if context is not None else lambda key: None


class _Outside:
    """Where there is no control stream."""

    def trouble(self, sequence: int, message: str) -> None:
        """Write it to the log: nobody else asks."""
        log.warning("control: %s", message)

    def made(self, kind: str) -> Any:
        """Return nothing."""
        return None

    def file_of(self, name: str, versions: Sequence[Model]) -> Path:
        """Not asked for: there is no model."""
        raise ControlError(f"there is no model {name!r}")

    def loaded(self, name: str, versions: Sequence[Model], loader: Callable[[Path], Any]) -> Any:
        """Likewise."""
        raise ControlError(f"there is no model {name!r}")
