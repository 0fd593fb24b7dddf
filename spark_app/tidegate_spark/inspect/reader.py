"""Reads the state of running queries: one question, one answer. Talks to Spark.

It reads the newest committed batch, and starts over at a newer one if Spark cleans that batch up meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.tables import Table
from tidegate_spark.inspect import answers, checkpoint_logs, messages, state_frames
from tidegate_spark.inspect.answers import Read
from tidegate_spark.inspect.checkpoint_logs import SPARKS, At, Files
from tidegate_spark.inspect.conditions import Condition, conditions_of_filter, conditions_of_key, is_whole_key
from tidegate_spark.inspect.errors import (
    BadQuestionError,
    InspectionError,
    NotThereError,
    TooSlowError,
    UnavailableError,
    UnreadableError,
)
from tidegate_spark.inspect.partition_work import ByWindow, Count, FirstRows
from tidegate_spark.inspect.questions import CLOSED, OPEN, Operators, Rows, Windows, more_time
from tidegate_spark.inspect.selection import state_of, table_of, window_path, with_windows
from tidegate_spark.inspect.state_frames import Job, Sessions
from tidegate_spark.process.faults.foreign_text import last_cause

ATTEMPTS = 3

Answer = dict[str, Any]


@dataclass
class _Inspection:
    """A question under way, at one batch of a query."""

    question: Operators | Rows | Windows
    job: Job
    query: str
    checkpoint: str
    files: Files
    at: At
    session: SparkSession
    tables: list[Table]

    def head(self, table: Table | None = None) -> Answer:
        of = self.at
        found = answers.head_of(self.query, of.batch, of.began_ms, of.watermark_ms)
        if table is not None:
            found |= {"operator": table.operator, "operatorName": table.operator_name}
            found |= {"name": table.name, "kind": table.kind}
        return found

    def frame(self, table: Table) -> DataFrame:
        return state_frames.frame_of(self.session, self.checkpoint, self.at, table)


@dataclass
class CheckpointReader:
    """Answers questions about the queries of one driver; one at a time, always from the same thread."""

    spark: SparkSession
    places: Callable[[], Mapping[str, str]]
    """Where each query has its checkpoint; only those are asked about."""
    clock: Callable[[], float] = time.monotonic
    _sessions: Sessions | None = None
    _number: int = 0

    def answer(self, question: Operators | Rows | Windows) -> Answer:
        """Return the answer to a question.

        Raises:
            InspectionError: there is none.
        """
        ends = self.clock() + question.seconds
        self._number += 1
        job = Job(self.spark, f"tidegate-inside-{self._number}", lambda: ends - self.clock())
        with job.bounded():
            return self._attempt(question, job, ATTEMPTS)

    def _attempt(self, question: Operators | Rows | Windows, job: Job, left: int) -> Answer:
        query = question.query or ""
        checkpoint = self.places()[query]
        files = Files(self.spark, checkpoint)
        batch = None
        try:
            at = checkpoint_logs.read_batch(files, query)
            batch = at.batch
            session = self._session(at)
            tables = state_frames.tables_at(session, files, checkpoint)
            return self._answer(question, _Inspection(question, job, query, checkpoint, files, at, session, tables))
        except InspectionError:
            raise
        except ExportError as error:
            raise UnreadableError(str(error)) from error
        except SPARKS as error:
            if job.seconds_left() <= 0:
                raise TooSlowError(_slow(question)) from error
            newest = _newest(files)
            if newest is None or newest == batch:
                raise UnreadableError(f"Spark cannot read the state: {last_cause(error)}") from error
            if left <= 1:
                raise UnavailableError(messages.cleaned_too_fast(query, batch, newest, last_cause(error))) from error
        return self._attempt(question, job, left - 1)

    def _session(self, at: At) -> SparkSession:
        if self._sessions is None:
            self._sessions = Sessions(self.spark)
        return self._sessions.of(at)

    def _answer(self, question: Operators | Rows | Windows, inspection: _Inspection) -> Answer:
        if isinstance(question, Operators):
            return {**inspection.head(), "operators": state_of(inspection.tables)}
        if isinstance(question, Rows):
            return self._rows(question, inspection)
        return self._windows(question, inspection)

    # --- rows ---

    def _rows(self, question: Rows, inspection: _Inspection) -> Answer:
        table = table_of(inspection.tables, inspection.query, question.operator, question.name)
        rows = inspection.frame(table)
        schema = rows.schema.jsonValue()
        conditions: tuple[Condition, ...] = ()
        if question.key is not None:
            conditions += conditions_of_key(question.key, schema)
        if question.filter is not None:
            conditions += conditions_of_filter(question.filter, schema)
        limit = question.limit
        work = Count() if question.count else FirstRows(limit + 1, answers.longest_row(limit))
        meant = state_frames.fulfilling(rows, conditions)
        texts = state_frames.as_nothing(meant) if question.count else state_frames.as_texts(meant)
        where = None
        if is_whole_key(conditions, schema):
            where = partial(state_frames.likely_partition, inspection.session, schema, conditions)
        found, read = self._read(inspection, texts, work, None if question.count else limit + 1, where)
        body = answers.count_answer(found, read) if question.count else answers.rows_answer(found, limit, read)
        return {**inspection.head(table), **body}

    # --- windows ---

    def _windows(self, question: Windows, inspection: _Inspection) -> Answer:
        if question.operator is not None:
            candidates = [table_of(inspection.tables, inspection.query, question.operator, question.name)]
        else:
            candidates = [table for table in inspection.tables if question.name in (None, table.name)]
        frames = {number: inspection.frame(table) for number, table in enumerate(candidates)}
        paths = {number: window_path(rows.schema.jsonValue()) for number, rows in frames.items()}
        having = [number for number, path in paths.items() if path is not None]
        if not having:
            raise NotThereError(with_windows(inspection.query, inspection.tables))
        if question.which == CLOSED and not inspection.at.watermark_ms:
            raise BadQuestionError("which", "the query has no watermark, so no window of it is closed; ask for all")
        parts = []
        for number in having:
            path = paths[number]
            assert path is not None
            parts.append(self._windows_of(question, inspection, candidates[number], frames[number], path))
        return {**inspection.head(), "operators": parts}

    def _windows_of(
        self, question: Windows, inspection: _Inspection, table: Table, rows: DataFrame, path: tuple[str, ...]
    ) -> Answer:
        schema = rows.schema.jsonValue()
        if question.filter is not None:
            rows = state_frames.fulfilling(rows, conditions_of_filter(question.filter, schema))
        begin, end = state_frames.window_columns(path)
        watermark = inspection.at.watermark_ms
        if watermark and question.which == OPEN:
            rows = rows.where(end > watermark)
        elif question.which == CLOSED:
            rows = rows.where(end <= watermark)
        longest = answers.longest_row(question.limit * max(1, question.rows))
        work = ByWindow(question.limit, question.rows, longest)
        texts = state_frames.as_texts(rows, begin.alias("begin"), end.alias("end"))
        found, read = self._read(inspection, texts, work)
        head = {"operator": table.operator, "operatorName": table.operator_name, "name": table.name}
        return head | answers.windows_answer(found, question.limit, question.rows, watermark, read)

    # --- reading ---

    def _read(
        self,
        inspection: _Inspection,
        rows: DataFrame,
        work: Callable[[Any], Any],
        enough: int | None = None,
        where: Callable[[int], int] | None = None,
    ) -> tuple[list[Any], Read]:
        """Return what ``work`` makes of the partitions, and how many were read; fewer if there is enough or no time.

        Args:
            inspection: that this is part of.
            rows: of all partitions.
            work: see :mod:`tidegate_spark.inspect.partition_work`.
            enough: of what ``work`` gives.
            where: returns, of so many partitions, the one in which all is likely to be.
        """
        pieces = rows.rdd
        partitions = pieces.getNumPartitions()
        likely = where(partitions) if where is not None and partitions > 1 else None
        found: list[Any] = []
        read = 0
        for several in _turns(inspection.job, partitions, likely):
            try:
                found += inspection.job.run(pieces, work, several)
            except SPARKS:
                if inspection.job.seconds_left() <= 0 and read:
                    break
                raise
            read += len(several)
            # All rows of one key are in one partition.
            if likely in several and any(found):
                return found, Read(read, partitions, proves_all=True)
            if enough is not None and len(found) >= enough:
                break
        if not read:
            raise TooSlowError(_slow(inspection.question))
        return found, Read(read, partitions)


def _turns(job: Job, partitions: int, likely: int | None) -> Iterator[list[int]]:
    """Yield the partitions to read, a few at a time; the likely one alone and first."""
    if likely is not None and job.seconds_left() > 0:
        yield [likely]
    yield from job.in_turns([each for each in range(partitions) if each != likely])


def _newest(files: Files) -> int | None:
    try:
        return checkpoint_logs.newest_batch(files)
    except SPARKS:
        return None


def _slow(question: Operators | Rows | Windows) -> str:
    """Return what is said of a look that came to nothing, with what can help and was not asked for already."""
    more, others = more_time(question.seconds), isinstance(question, Rows) and question.key is None
    helps = [f"give it {more}"] if more else ["ask again while no long batch runs"]
    helps += ["ask for one key (--key, key=)"] if others else []
    remedy = ", or ".join(helps)
    return messages.nothing_read(question.seconds, "" if more else ", the most there is", remedy)
