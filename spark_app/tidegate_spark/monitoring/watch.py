"""Checks Spark once a second: its JVM, failed queries, executors. Talks to the JVM."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.executors import executor_work, executors
from tidegate_spark.jvm.jvm_process import EXIT_NOT_KNOWN
from tidegate_spark.jvm.session import jvm_exit_code
from tidegate_spark.monitoring.jvm_queries import JvmQueries
from tidegate_spark.process.faults.foreign_text import names_missing_state
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Ends, Leaving, Progress
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.entries import Entry, failure_of, has_unwound, is_active
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.stopping import last_commit

INTERVAL_SECONDS = 1.0
WORK_INTERVAL_SECONDS = 5.0
"""Between two looks at what executors did; they cost three calls to the JVM for each executor."""
RELEASE_INTERVAL_SECONDS = 5.0
FAILED_QUERY_SECONDS = 15.0
"""What a script gets to start a failed query again; afterwards the driver ends with that failure."""

COMPLETED = Outcome(Reason.COMPLETED, messages.FINISHED)

log = logging.getLogger("tidegate")


def outcome_of(entry: Entry) -> Outcome | None:
    """Return the failure that ended the query's latest run, None if it runs or ended without one; asks the JVM."""
    if entry.query is None or entry.query.isActive:
        return None
    failure = failure_of(entry.query)
    if failure is None:
        return None
    return Outcome(failure.reason, f"Query {entry.name!r}: {failure.message}", failure.exception)


def first_failure(queries: Queries) -> Outcome | None:
    """Return the failure of the first query, in starting order, whose latest run failed; a lost fence goes first.

    A script may start thousands of queries one after the other: those that ended well are asked about once.
    """
    failures = []
    for entry in queries.not_ended_well():
        if is_active(entry):
            continue
        outcome = outcome_of(entry)
        if outcome is not None:
            failures.append(outcome)
        elif entry.query is not None and has_unwound(entry.query):
            queries.note_ended_well(entry)
    fenced = next((outcome for outcome in failures if outcome.reason is Reason.FENCED), None)
    return fenced or next(iter(failures), None)


def cut_with_script(queries: Queries) -> Outcome | None:
    """Return the end of a script that has ended well while code in the JVM runs a query, None if it does not."""
    others = queries.elsewhere()
    return Outcome(Reason.SCRIPT_UNSUPPORTED, messages.cut_at_the_end(others)) if others else None


def cause_of(outcome: Outcome, queries: Queries) -> Outcome:
    """Return the end of a script: what failed a query of it, if that is not the application's own fault; asks the JVM.

    A script that finds a query failed raises, or exits with, something of its own.
    """
    if outcome.reason is not Reason.APPLICATION_FAILED:
        return outcome
    failure = None
    with contextlib.suppress(Py4JError, OSError):  # then it is as the script says
        failure = first_failure(queries)
    if failure is None or failure.reason is Reason.APPLICATION_FAILED:
        return outcome
    return dataclasses.replace(failure, message=f"{failure.message} {outcome.message}".strip())


def directory_without_state(queries: Queries, outcome: Outcome) -> str:
    """Return the checkpoint's directory of the query whose failure ``outcome`` is: it found no state; asks the JVM.

    Empty if that cannot be known: a script may raise it in other words while several have failed so.
    """
    failed = {found.message: entry.directory for entry in queries.entries() if (found := outcome_of(entry)) is not None}
    without = {message: directory for message, directory in failed.items() if names_missing_state(message)}
    return without.get(outcome.message) or (next(iter(without.values())) if len(without) == 1 else "")


def jvm_outcome(code: int, progress: Progress) -> Outcome:
    """Return the end that an exit of the JVM means: of its own accord, as code in a jar has it, or by a crash."""
    if code == 0:
        running = [query.name for query in progress.report().queries if query.active or query.failed]
        if not running:
            return COMPLETED
        names = ", ".join(map(repr, running))
        return Outcome(Reason.APPLICATION_FAILED, messages.jvm_exited_well(names), "JvmExited")
    if code == EXIT_NOT_KNOWN:
        what = messages.JVM_END_NOT_KNOWN
    elif code in (-9, 137):
        what = "was killed by SIGKILL; often for want of memory, then raise spec.driver.resources.requests.memory"
    else:
        what = f"ended with exit code {code}"
    return Outcome(Reason.DRIVER_CRASHED, messages.jvm_ended(what), "JvmExited")


class Watch:
    """The thread that looks."""

    def __init__(
        self,
        session: SparkSession,
        queries: Queries,
        progress: Progress,
        request_end: Callable[[Outcome], None],
        living: executors.Living | None,
    ) -> None:
        """Take what is looked at.

        Args:
            session: whose JVM and executors are looked at.
            queries: started in this process.
            progress: gets the findings.
            request_end: called with the failure of the JVM or of a query that nobody restarted.
            living: knows which executors are there; None: there are none to count, all is one process.
        """
        self.check_further: Callable[[], None] = lambda: None
        self._context = session.sparkContext
        self._queries, self._progress, self._request_end = queries, progress, request_end
        self._jvm_queries = JvmQueries(session, queries, progress)
        queries.elsewhere = self._jvm_queries.running
        self._count_executors = living is not None
        self._wanted: int | None = None
        self._scale = executors.Scale(executors.SparkBackend(self._context), living, progress.executors_wanted)
        self._wake = threading.Event()
        self._failed_since: float | None = None
        self._work, self._work_due = executor_work.WorkTotals(), 0.0

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()
        # Apart, because it asks the storage, which may be away.
        threading.Thread(target=self._release, name="ended-queries", daemon=True).start()

    def want_executors(self, number: int) -> None:
        """Set the number of executors soon; returns at once."""
        self._wanted = number
        self._progress.executors(wanted=number)
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait(INTERVAL_SECONDS)
            self._wake.clear()
            code = jvm_exit_code()
            if code is not None:
                self._request_end(jvm_outcome(code, self._progress))
                return
            try:
                self._check()
            except (Py4JError, OSError, AttributeError) as error:
                # A context that is being stopped, by us or by the script, answers with errors or has no JVM side any
                # more; the JVM's own end is seen at the next look.
                if isinstance(error, AttributeError) and self._context._jsc is not None:
                    raise
                log.debug("watch: %s", error)

    def _release(self) -> None:
        while jvm_exit_code() is None:
            with contextlib.suppress(Py4JError, OSError, AttributeError):  # of a context that is being stopped
                self._queries.release_ended(last_commit)
            time.sleep(RELEASE_INTERVAL_SECONDS)

    def _check(self) -> None:
        self._check_queries()
        # First of all, because at a stop it decides whether a batch is waited for.
        self._see_executors()
        self.check_further()
        self._jvm_queries.check(time.monotonic())

    def _see_executors(self) -> None:
        if not self._count_executors:
            return
        now = time.monotonic()
        count = self._scale.check(self._wanted, now)
        leaving = Leaving(count.leaving, count.longest, now - count.leaving_since)
        ends = Ends(count.ended, max(0.0, count.held_until - now))
        self._progress.executors(running=count.running, leaving=leaving, ends=ends)
        self._check_work(now)

    def _check_work(self, now: float) -> None:
        if now < self._work_due:
            return
        self._work_due = now + WORK_INTERVAL_SECONDS
        idle = self._work.take(now, executor_work.read_work(self._context))
        self._progress.work(self._work.total, idle)

    def _check_queries(self) -> None:
        outcome = first_failure(self._queries)
        if outcome is None:
            self._failed_since = None
            return
        now = time.monotonic()
        self._failed_since = self._failed_since or now
        # Without the fence, a restarted query would only fail again.
        if outcome.reason is Reason.FENCED or now - self._failed_since >= FAILED_QUERY_SECONDS:
            self._request_end(outcome)
