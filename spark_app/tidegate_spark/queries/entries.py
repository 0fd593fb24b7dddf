"""A started query, and whether another one may start beside or after it. Asks the JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.object_paths import EMPTY_START
from tidegate_spark.process.faults import faults
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.same_query import Plan, plan_of
from tidegate_spark.queries.sinks.outputs import Output
from tidegate_spark.queries.unnamed.naming import UNNAMED, plain_location


@dataclass(frozen=True)
class Entry:
    """A query that was started: its name, where in the script, whether the script named it, and its latest run."""

    name: str
    site: str
    named: bool
    query: StreamingQuery | None = None
    """None while it is started, and once nothing of its latest run is kept in the JVM."""
    plan: Plan | None = None
    """What an unnamed query does; a named one goes by its name."""
    location: str = field(default="", repr=False)
    """The checkpointLocation that the script gave it; it may hold a secret."""
    directory: str = ""
    """The name of its checkpoint's directory in the lineage."""
    ended_at: int | None = None
    """The newest batch that its latest run committed (-1: none), if that has ended well and is kept no more."""

    @property
    def was_started(self) -> bool:
        """Whether there was a run of it, be it ended."""
        return self.query is not None or self.ended_at is not None

    @property
    def starts_empty(self) -> bool:
        """Whether its checkpoint is of one start alone, and continued by nothing."""
        return EMPTY_START in self.directory


def entry_of(
    requested: str | None, site: str, writer: DataStreamWriter, output: Output | None, own_location: list[Any]
) -> Entry:
    """Return a query as the script asks for it; one without a name gets its own later."""
    location = str(own_location[-1] or "")
    if requested:
        return Entry(requested, site, named=True, location=location)
    return Entry(UNNAMED, site, named=False, plan=plan_of(writer, output), location=location)


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
        return messages.unnamed_shares(site, before.name, before.named, before.site)
    if not before.named:
        return messages.named_shares(wanted.name, site, before.name, before.site)
    return _why_not_again(before, wanted, active)


def _why_not_again(before: Entry, wanted: Entry, active: Callable[[Entry], bool]) -> str | None:
    """Return why a named query must not start though one of its name has, None if it is that one, started again."""
    if active(before):
        return messages.named_twice(wanted.name, before.site, wanted.site)
    # Spark would continue another checkpoint: one function may load one table after the other under one name.
    if not before.starts_empty and not _is_one_place(before, wanted):
        return messages.named_elsewhere(wanted.name, before.site, wanted.site)
    return None


def _goes_on(before: Entry, wanted: Entry, failed: Callable[[Entry], bool]) -> bool:
    """Return whether an unnamed query is the previous one, started again: it continues in its checkpoint."""
    if plain_location(before.location) or plain_location(wanted.location):
        return _is_one_place(before, wanted)  # the script says so itself
    if before.plan is None or wanted.plan is None or before.site != wanted.site:
        return False
    # A query that ended well has read everything: an equal one that starts later may be meant as another.
    return before.plan.is_same(wanted.plan) and failed(before)


def is_moved(before: Entry, wanted: Entry, failed: Callable[[Entry], bool]) -> bool:
    """Return whether an unnamed query is the previous one, which failed, started again with another location."""
    if before.named or _is_one_place(before, wanted) or before.site != wanted.site:
        return False
    return before.plan is not None and wanted.plan is not None and before.plan.is_same(wanted.plan) and failed(before)


def _is_one_place(before: Entry, wanted: Entry) -> bool:
    return plain_location(before.location) == plain_location(wanted.location)


def is_active(entry: Entry) -> bool:
    """Return whether a query runs, or is being started."""
    return entry.ended_at is None and (entry.query is None or bool(entry.query.isActive))


def has_unwound(query: StreamingQuery) -> bool:
    """Return whether a query's thread has ended: until then it may be active again, or fail, though it is not now."""
    return not query._jsq.streamingQuery().queryExecutionThread().isAlive()


def failure_of(query: StreamingQuery) -> faults.Failure | None:
    """Return the failure that ended a query's run, None if it runs or ended without one."""
    exception = query._jsq.exception()
    return faults.classify(faults.java_chain(exception.get())) if exception.isDefined() else None


def retried(before: Entry, wanted: Entry, why: str) -> Outcome | None:
    """Return how the driver ends that cannot continue a query; None if it was not started again where it has failed.

    Args:
        before: a query that was started.
        wanted: one that is to be started.
        why: the two are not known to be one.
    """
    is_one = before.named == wanted.named and (not wanted.named or before.name == wanted.name)
    if not is_one or before.site != wanted.site or before.query is None:
        return None
    failure = failure_of(before.query)
    if failure is None:
        return None
    remedy = messages.ONE_LOCATION if wanted.named else messages.name_it(before.name)
    message = messages.retried(before.name, failure.message, wanted.site, why, remedy)
    return Outcome(failure.reason, message, failure.exception, failure.own_storage)


def has_failed(entry: Entry) -> bool:
    """Return whether a query's latest run ended with a failure; which one, :func:`failure_of` says at a price."""
    return entry.query is not None and bool(entry.query._jsq.exception().isDefined())


def committed_batch(query: StreamingQuery) -> int | None:
    """Return the newest batch in ``query``'s commit log, -1 if there is none, None if it cannot be read now."""
    try:
        latest = query._jsq.streamingQuery().commitLog().getLatestBatchId()
        return int(latest.get()) if latest.isDefined() else -1
    except (Py4JError, OSError):
        return None
