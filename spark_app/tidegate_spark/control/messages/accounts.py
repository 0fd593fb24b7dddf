"""The account of each message: what its queries and the driver report. Pure, but for :class:`Attendance`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate_spark.contract.control_protocol import (
    CLEAR_CACHES,
    DUMP_STATE,
    LONGEST_ERROR,
    MOST_ERRORS,
    PAUSE,
    PING,
    RESUME,
    SET_LOG_LEVEL,
    SNAPSHOT,
    MessageReport,
    MessageState,
    QueryAcknowledgement,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.messages import messages
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import Verdict

OF_THE_DRIVER = frozenset({PAUSE, RESUME, SET_LOG_LEVEL})
"""What no query has to take part in."""
MOST_MESSAGE_BYTES, MOST_NUMBER_BYTES = 256 * 1024, 320 * 1024
"""Bytes of all words about messages in one report, and of their queries' numbers: the operator takes 1 MiB, and
everything else is in there."""
NUMBER_BYTES = 100
"""Of what is said of one query, beside its name and words."""
LONGEST_MESSAGE, SHORT_MESSAGE = 1024, 100
"""Characters of what is said of one message, and of one for which there is no room."""
SILENT = "it ended before it had taken the message in; its task was done by another worker"
OF_BOTH = frozenset({PING, CLEAR_CACHES, SNAPSHOT, DUMP_STATE})


@dataclass(frozen=True)
class Account:
    """What is known of one message."""

    sequence: int
    done: bool = False
    """The driver has done its part, or failed."""
    failed: bool = False
    reason: str = ""
    message: str = ""
    """The driver's words."""
    queries: dict[str, QueryAcknowledgement] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    """What the log said of it, noted before that forgets it; None: the log can be asked."""


@dataclass(frozen=True)
class Needs:
    """Who has to do something about a message."""

    driver: bool
    queries: bool


@dataclass
class BatchAccount:
    """The Python workers that ran a task of one batch, as far as they asked what is in force."""

    workers: dict[str, Mapping[int, str] | None] = field(default_factory=dict)
    """Worker -> sequence -> error, of one that has applied everything; None until it has."""

    def acknowledgement(self, batch: int, sequence: int) -> QueryAcknowledgement:
        """Return what the query says of a message that came into force in this batch, once that is committed."""
        if not self.workers:
            return QueryAcknowledgement(batch, 1, 1)
        errors = {name: applied.get(sequence) for name, applied in self.workers.items() if applied is not None}
        failed = [f"{name}: {error}"[:LONGEST_ERROR] for name, error in sorted(errors.items()) if error is not None]
        silent = [f"{name}: {SILENT}"[:LONGEST_ERROR] for name in sorted(self.workers.keys() - errors.keys())]
        return QueryAcknowledgement(
            batch,
            len(errors) - len(failed),
            len(self.workers),
            tuple(failed[:MOST_ERRORS]),
            len(failed[MOST_ERRORS:]),
            tuple(silent[:MOST_ERRORS]),
        )


class Attendance:
    """The workers of the batches that run. Thread safe."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._batches: dict[tuple[str, int], BatchAccount] = {}

    def asks(self, query: str, batch: int, worker: str) -> None:
        """Take note that a worker runs a task of a batch."""
        with self._lock:
            self._batches.setdefault((query, batch), BatchAccount()).workers.setdefault(worker, None)

    def applied(self, query: str, batch: int, worker: str, errors: Mapping[int, str], *, more: bool = False) -> None:
        """Take note that a worker has taken in what is in force in a batch.

        Args:
            query: its name.
            batch: its number.
            worker: the process.
            errors: by sequence.
            more: whether they come in addition to those it reported before, and not in their place.
        """
        with self._lock:
            workers = self._batches.setdefault((query, batch), BatchAccount()).workers
            before = workers.get(worker) if more else None
            workers[worker] = {**(before or {}), **errors}

    def close(self, query: str, batch: int) -> BatchAccount:
        """Return the workers of a batch that is committed, and forget it and those before."""
        with self._lock:
            found = self._batches.get((query, batch), BatchAccount())
            for key in [key for key in self._batches if key[0] == query and key[1] <= batch]:
                del self._batches[key]
            return found


def needs_of(kind: str, driver_types: Iterable[str]) -> Needs:
    """Return who has to do something about a message of a type; ``driver_types`` have a handler at the driver."""
    if kind in OF_THE_DRIVER:
        return Needs(driver=True, queries=False)
    return Needs(driver=kind in OF_BOTH or kind in driver_types, queries=True)


def report_of(
    entry: Entry, verdict: Verdict | None, account: Account, needs: Needs, asking: frozenset[str] | None
) -> MessageReport:
    """Return what is to be said of a message.

    Args:
        entry: the message.
        verdict: what the log says of it; None: it is so old that the log does not, and its account may.
        account: what came of it.
        needs: who has to do something.
        asking: the queries that ask what is in force; None: it is not known yet.
    """
    base = MessageReport(
        entry.id,
        MessageState.LOGGED,
        entry.sequence,
        account.reason,
        account.message[:LONGEST_MESSAGE],
        dict(account.queries),
        dict(account.results),
    )
    verdict = verdict or account.verdict
    if verdict is Verdict.REJECTED:
        reason, message = entry.reason or account.reason, entry.message or account.message
        return replace(base, state=MessageState.REJECTED, reason=reason, message=message)
    if verdict is Verdict.EXPIRED:
        message = messages.EXPIRED_IN_LOG
        return replace(base, state=MessageState.EXPIRED, reason=Reason.EXPIRED, message=message)
    if verdict is Verdict.ROLLED_BACK and not (account.done and not needs.queries):
        message = messages.ROLLED_BACK
        return replace(base, state=MessageState.ROLLED_BACK, reason=Reason.ROLLED_BACK, message=message)
    return _of_one_in_force(base, account, needs, asking)


def _of_one_in_force(
    base: MessageReport, account: Account, needs: Needs, asking: frozenset[str] | None
) -> MessageReport:
    begun = MessageState.IN_FORCE if account.queries or account.done else MessageState.LOGGED
    waits = sorted((asking or frozenset()) - account.queries.keys()) if needs.queries else []
    if asking is None or (needs.driver and not account.done):
        return replace(base, state=begun)
    if waits:
        message = base.message or messages.waits_for_batch(waits[0])
        return replace(base, state=begun, message=message)
    if begun is MessageState.LOGGED:
        message = messages.NO_QUERY
        return replace(base, reason=Reason.NO_QUERY_LISTENS, message=message)
    errors = [error for each in account.queries.values() for error in each.errors]
    if errors and not account.failed:
        return replace(base, state=MessageState.FAILED, reason=Reason.HANDLER_FAILED, message=errors[0])
    return replace(base, state=MessageState.FAILED if account.failed else MessageState.DONE)


def within_bounds(reports: Sequence[MessageReport]) -> tuple[MessageReport, ...]:
    """Return reports that the operator takes in one answer: the last ones lose their words, and say how many.

    Of very many queries the last ones lose the numbers, too.
    """
    left, numbers_left, kept = MOST_MESSAGE_BYTES, MOST_NUMBER_BYTES, []
    for report in reports:
        size = len(json.dumps([report.message, *(each.errors + each.missing for each in report.queries.values())]))
        said = report if size <= left else _without_message(report)
        left -= min(size, left)
        numbers = len(json.dumps(list(report.queries))) + NUMBER_BYTES * len(report.queries)
        kept.append(said if numbers <= numbers_left else replace(said, queries={}))
        numbers_left -= min(numbers, numbers_left)
    return tuple(kept)


def _without_message(report: MessageReport) -> MessageReport:
    queries = {
        name: replace(each, errors=(), missing=(), more_errors=each.more_errors + len(each.errors))
        for name, each in report.queries.items()
    }
    return replace(report, message=report.message[:SHORT_MESSAGE], queries=queries)
