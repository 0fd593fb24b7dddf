"""Removes entries of rolled-back batches from the logs of file sinks. Talks to the JVM.

Spark's file sink skips, without a message, a batch whose number is in ``<path>/_spark_metadata``. After a rollback, or
when an application takes over another one's outputs, those numbers come again with other rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries import query_messages as messages

METADATA = "_spark_metadata"
FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
"""Names of formats that are written as plain files."""
COMPACT = ".compact"
_BATCH = re.compile(r"(\d+)(\.compact)?")


@dataclass(frozen=True)
class Sink:
    """Where a query writes files."""

    path: str


class SinkRefusedError(Exception):
    """What the sink remembers cannot be taken back; the words are for a person."""


def may_know_other_batches(config: DriverConfig, first_lineage: int) -> bool:
    """Return whether a sink may remember batches of another history, under numbers that the queries come to. Pure."""
    if config.rehearsal is not None:
        return False
    return config.lineage > first_lineage or (config.start_from is not None and not config.apart)


def sink_of(path: str | None, kind: str | None, earlier: dict[str, str], default: str) -> Sink | None:
    """Return the files that a query writes, None if it writes none. Pure.

    Args:
        path: the argument of ``start``, if there was one.
        kind: the format, as an argument of ``start``, if there was one.
        earlier: options that were set before, keys in lower case.
        default: the format that was set before, or else Spark's.
    """
    place = path or earlier.get("path")
    return Sink(place) if place and (kind or default).lower() in FORMATS else None


def to_remove(names: Iterable[str], last: int) -> list[str]:
    """Return which files of a sink's log are of batches after ``last``, the newest first. Pure.

    Raises:
        SinkRefusedError: without them the log would not say any more what batch ``last`` and those before wrote.
    """
    batches: dict[int, set[str]] = {}
    for name in names:
        found = _BATCH.fullmatch(name)
        if found:
            batches.setdefault(int(found[1]), set()).add(name)
    later = sorted((batch for batch in batches if batch > last), reverse=True)
    if not later:
        return []
    if last < 0:
        raise SinkRefusedError("it holds output of another lineage, whose batches have the same numbers")
    merged = [batch for batch, of in batches.items() if batch <= last and f"{batch}{COMPACT}" in of]
    needed = range(max(merged, default=0), last + 1)
    missing = [batch for batch in needed if batch not in batches]
    if missing:
        raise SinkRefusedError(f"its log was merged since, and batch {missing[0]} is not in it by itself any more")
    return [name for batch in later for name in sorted(batches[batch])]


def check_begins_here(going: list[str], commits: Iterable[str]) -> None:
    """Check that a query which takes another application's place is where that was. Pure.

    Args:
        going: what is to be removed of the sink's log.
        commits: names in the query's commit log. One that has just begun with a snapshot has one, of its batch.

    Raises:
        SinkRefusedError: it has run since, and put out elsewhere what is not in this log.
    """
    if going and sum(is_number(name) for name in commits) > 1:
        raise SinkRefusedError(
            "its log has later batches of the application whose place is taken, and this one has run since it began: "
            "the same numbers are other batches"
        )


def is_queries_own(entries: Iterable[str], last: int) -> bool:
    """Return whether a sink's log is of the query that is about to write there: of its batches alone. Pure.

    Args:
        entries: names in the log.
        last: the last batch that the query has begun, -1 if there is none.
    """
    return newest_in(entries) <= last


def newest_in(entries: Iterable[str]) -> int:
    """Return the newest batch in a sink's log, -1 if it has none; ``entries``: the names in it. Pure."""
    return max((batch for batch in map(batch_in, entries) if batch is not None), default=-1)


def refuse_another_log(session: Any, checkpoint: str, sink: Sink) -> None:
    """Check that a sink's log has no batches beyond those of the query's checkpoint.

    A query writes its offsets before the sink's log. So in a lineage without a history before it, later batches are
    those of another query, of a program that ran elsewhere, or of one that had another name.

    Args:
        session: the query's.
        checkpoint: its.
        sink: where it writes.

    Raises:
        SinkRefusedError: there are some; Spark would leave out the query's batches of these numbers.
    """
    names = _names(session, f"{sink.path.rstrip('/')}/{METADATA}")
    if not names:
        return
    last = last_begun(session, checkpoint)
    if not is_queries_own(names, last):
        raise SinkRefusedError(messages.files_of_another_query(sink.path, last + 1, newest_in(names)))


def last_begun(session: Any, checkpoint: str) -> int:
    """Return the last batch that a query has begun, -1 if there is none; asks the JVM."""
    return max((int(name) for name in _names(session, f"{checkpoint}/offsets") if is_number(name)), default=-1)


def roll_back(
    session: Any, checkpoint: str, sink: Sink, notice: Callable[[str, str], None], *, others: bool = False
) -> None:
    """Take back what a sink remembers of batches that the query's checkpoint does not know.

    Args:
        session: the query's.
        checkpoint: the query's, in this lineage.
        sink: where it writes.
        notice: gives the user a notice once: reason and message.
        others: they are another application's, with whose snapshot this one began.

    Raises:
        SinkRefusedError: it cannot be taken back. Nothing was.
    """
    log = f"{sink.path.rstrip('/')}/{METADATA}"
    names = _names(session, log)
    if not names:
        return
    last = last_begun(session, checkpoint)
    try:
        going = to_remove(names, last)
        if others:
            check_begins_here(going, _names(session, f"{checkpoint}/commits"))
    except SinkRefusedError as error:
        raise SinkRefusedError(messages.file_sink_stuck(sink.path, last, error)) from None
    for name in going:
        # The newest first: whatever it is interrupted at, what is left is whole.
        place = session._jvm.org.apache.hadoop.fs.Path(log, name)
        place.getFileSystem(_settings(session)).delete(place, False)
    if going:
        notice(
            Reason.FILE_SINK_ROLLED_BACK,
            messages.file_sink_rolled_back(sink.path, last, len(going)),
        )


def note_without_output(session: Any, sink: Sink, batch: int, notice: Callable[[str, str], None]) -> None:
    """Note in a sink's log that a batch put nothing out: the one in which the query's state was repartitioned.

    Spark passes that batch by, and its log must have each one: without it, readers fail at once, and the query when
    the log is merged. Spark's own class writes it, since every tenth entry is a merged one.

    Args:
        session: the Spark session.
        sink: where the query writes.
        batch: which.
        notice: gives the user a notice once: reason and message.
    """
    log = f"{sink.path.rstrip('/')}/{METADATA}"
    if not lacks(_names(session, log), batch):
        return
    classes = session._jvm.org.apache.spark.sql.execution.streaming.sinks
    usual_retention = getattr(classes.FileStreamSinkLog, "$lessinit$greater$default$4")()
    version = classes.FileStreamSinkLog.VERSION()
    sink_log = classes.FileStreamSinkLog(version, session._jsparkSession, log, usual_retention)
    nothing = session.sparkContext._gateway.new_array(classes.SinkFileStatus, 0)
    sink_log.add(batch, nothing)
    notice(Reason.FILE_SINK_CONTINUED, messages.file_sink_continued(sink.path, batch))


def lacks(names: Iterable[str], batch: int) -> bool:
    """Return whether a sink's log ends right before a batch, so that the next one would leave a gap. Pure."""
    known = [number for number in map(batch_in, names) if number is not None]
    return bool(known) and max(known) == batch - 1


def batch_in(name: str) -> int | None:
    """Return the batch of an entry of a sink's log, None if it is none. Pure."""
    found = _BATCH.fullmatch(name)
    return int(found[1]) if found else None


def _names(session: Any, directory: str) -> list[str]:
    return names_in(session, directory) or []


def names_in(session: Any, directory: str) -> list[str] | None:
    """Return the names in a directory, None if there is none; asks the JVM."""
    place = session._jvm.org.apache.hadoop.fs.Path(directory)
    store = place.getFileSystem(_settings(session))
    if not store.exists(place):
        return None
    return [str(status.getPath().getName()) for status in store.listStatus(place)]


def _settings(session: Any) -> Any:
    """Return what Spark reaches the sink with: Hadoop keeps a client as it was made first, for whoever comes next."""
    return session._jsparkSession.sessionState().newHadoopConf()
