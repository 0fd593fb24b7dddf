"""Ends the driver: the first cause counts, queries stop at a batch boundary, the process ends. Does I/O.

One thread does this, so that a script that blocks or fails cannot prevent it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.contract.protocol import DriverConfig, DriverState, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.restart_budget import RestartBudget
from tidegate_spark.process import signals
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.logs import within
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.stopping import RESERVED_SECONDS, Stopped, last_commit, stop_at_boundary, waits_for_tasks

log = logging.getLogger("tidegate")

SCRIPT_END_SECONDS = 10.0
"""What a script gets for its last lines after its queries have stopped; a script that loops is ended then."""
LONGEST_UPLOAD_SECONDS, LAST_SECONDS = 30.0, 2.0
"""At most so long for the log, and so many at the end of the grace period for nothing: the process has to be gone."""


@dataclass(frozen=True)
class Budget:
    """How the grace period is shared out; seconds."""

    batch: float
    unwinding: float
    session: float
    upload: float

    @classmethod
    def of(cls, grace_seconds: float) -> Budget:
        """Give the running batch all but a part that has a limit."""
        reserve = min(RESERVED_SECONDS, 0.4 * grace_seconds)
        return cls(grace_seconds - reserve, 0.2 * reserve, 0.25 * reserve, 0.25 * reserve)

    def upload_within(self, left: float) -> float:
        """Return how long the log's upload may take when so much of the grace period is left: what others left it."""
        return max(self.upload, min(LONGEST_UPLOAD_SECONDS, left - LAST_SECONDS))


class Ending:
    """Waits for a cause to end, and ends the driver."""

    def __init__(
        self,
        config: DriverConfig,
        progress: Progress,
        queries: Queries,
        account: RestartBudget,
        conclude: Callable[[Termination], None],
    ) -> None:
        """``conclude`` is called once, at the end, and does not return."""
        self._config, self._progress, self._queries, self._conclude = config, progress, queries, conclude
        self._account = account
        self._lock = threading.Lock()
        self._outcome: Outcome | None = None
        self._began = 0.0
        self.requested = threading.Event()
        self.script_started = threading.Event()
        self.queries_stopped = threading.Event()
        """Set once no query runs any more, or the time for that is over; then the script's last calls are made."""
        self.script_returned = threading.Event()
        """Set after the script's last line, and those of its threads: nobody is there who could read anything."""
        self.script_ended = threading.Event()
        self._message_written, self._remains_ended = threading.Event(), threading.Event()
        self._remains_to_end = False
        self.before_stop: Callable[[], None] = lambda: None
        """Called before queries are stopped: whoever holds one lets it end."""
        self.has_executors: Callable[[], bool] = lambda: True
        """Returns whether there is anybody who runs tasks; where all is one process, there always is."""
        self.lost: tuple[str, str] = ("", "")
        """The id of a query whose running batch cannot end, and why."""
        self._thread = threading.Thread(target=self._run, name="ending", daemon=True)

    def start(self) -> None:
        """Begin to wait for a cause."""
        self._thread.start()

    def request(self, outcome: Outcome) -> None:
        """End the driver with ``outcome``, unless it is ending already."""
        with self._lock:
            if self._outcome is None:
                self._outcome, self._began = outcome, time.monotonic()
        self.requested.set()

    def left(self) -> float:
        """Return the seconds that are left of the grace period; all of it before the end is asked for."""
        with self._lock:
            asked = self._began if self._outcome is not None else time.monotonic()
        return asked + self._config.stop_grace_seconds - time.monotonic()

    def await_end(self) -> None:
        """Block until the process ends."""
        while True:
            self._thread.join(3600)

    def end_script(self, end_remains: Callable[[], None]) -> None:
        """Say that the script has ended; call ``end_remains``, in this thread, once the termination message is written.

        What it does is foreign code, which may end the process: by then that costs nothing.
        """
        self._remains_to_end = True
        self.script_ended.set()
        self._message_written.wait()
        end_remains()
        self._remains_ended.set()

    def await_remains(self) -> None:
        """Have the script's remains ended, as long as it may have; to be called when the message is written."""
        self._message_written.set()
        if self._remains_to_end and not self._remains_ended.wait(self._script_seconds()):
            log.info("stopping: what the script has left to its end takes too long and is left undone")

    def _script_seconds(self) -> float:
        left = self._began + Budget.of(self._config.stop_grace_seconds).batch - time.monotonic()
        return min(SCRIPT_END_SECONDS, max(left, 0.5))

    def _run(self) -> None:
        self.requested.wait()
        assert self._outcome is not None
        outcome = self._outcome
        self._progress.enter(DriverState.STOPPING)
        self._queries.close()
        extra = {"action": "stop", "reason": outcome.reason}
        log.info("stopping: %s, at most %d s", outcome.reason, self._config.stop_grace_seconds, extra=extra)
        stopped = self._stop_queries()
        for each in stopped:
            self._progress.query_ended(each.name, each.commits if each.commits is not None else -1)
        # "Nothing was committed" is relied upon: an upgrade that committed nothing can be taken back without a pin.
        in_doubt = outcome.reason is Reason.FENCED or not self._progress.commits
        known_of = frozenset() if in_doubt else frozenset(each.name for each in stopped if each.commits is not None)
        known = self._read_last_commits(known_of)
        log.info("stopping: no query runs after %.1f s", time.monotonic() - self._began, extra=extra)
        runs = self.script_started.is_set() and not self.script_returned.is_set()
        reported = runs and signals.signal_script()
        if reported:
            log.info("stopping: the script's own handler of SIGTERM is called", extra=extra)
        self.queries_stopped.set()
        if self.script_started.is_set():
            ended = self.script_ended.wait(self._script_seconds())
            message = "has ended" if ended else "goes on and is ended"
            log.info("stopping: the script %s after %.1f s", message, time.monotonic() - self._began, extra=extra)
        self._conclude(self._termination(outcome, stopped, known))

    def _stop_queries(self) -> list[Stopped]:
        budget = Budget.of(self._config.stop_grace_seconds)
        deadline = self._began + budget.batch
        stopped: dict[str, Stopped] = {}

        def work() -> None:
            # A start() that was under way adds a query after the first look. A JVM that is gone runs none.
            with contextlib.suppress(Py4JError, OSError):
                self.before_stop()
                while time.monotonic() < deadline + budget.unwinding:
                    active = self._queries.active()
                    ends = stop_at_boundary(active, deadline, budget.unwinding, self._is_computed, self._why_lost)
                    stopped.update((each.name, each) for each in ends)
                    if not active and not self._queries.starting:
                        return
                    time.sleep(0.05)

        # In a thread of its own: a JVM that hangs must not keep the driver from writing its termination message.
        worker = threading.Thread(target=work, name="stopping", daemon=True)
        worker.start()
        worker.join(max(0.0, deadline + 3 * budget.unwinding - time.monotonic()))
        return list(stopped.values())

    def _is_computed(self, query: StreamingQuery) -> bool:
        return self.has_executors() or not waits_for_tasks(query)

    def _why_lost(self, query: StreamingQuery) -> str:
        lost, why = self.lost
        return why if lost and str(query.id) == lost else ""

    def _read_last_commits(self, known_of: frozenset[str]) -> bool:
        """Note the last commits of queries that ended by themselves: Spark may not have reported them yet.

        Args:
            known_of: queries whose last commits were read when they were stopped.

        Returns:
            Whether those of all others are known, and no query can commit any more.
        """
        known: list[bool] = []

        def read() -> None:
            for entry in (each for each in self._queries.entries() if each.name not in known_of):
                batch = last_commit(entry.query) if entry.query is not None else entry.ended_at
                if batch is not None:
                    self._progress.query_ended(entry.name, batch)
                known.append(batch is not None)

        # Not waited for any longer than an interrupted batch: the store may be as far away as the fence.
        in_time = within(Budget.of(self._config.stop_grace_seconds).unwinding, read)
        return in_time and all(known) and not self._queries.starting and self._progress.begins_known

    def _termination(self, outcome: Outcome, stopped: list[Stopped], known: bool) -> Termination:
        inside = [each.name for each in stopped if not each.boundary]
        if inside and outcome.if_cut:
            outcome = Outcome(Reason.APPLICATION_FAILED, outcome.if_cut, outcome.exception)
        outcome = self._account.end(outcome, committed=self._progress.commits > 0)
        message = outcome.message
        if outcome.reason is Reason.STOPPED:
            message = stop_message(stopped, inside)
        return Termination(
            reason=outcome.reason,
            message=message,
            epoch=self._config.epoch,
            exception=outcome.exception,
            batches=self._progress.committed,
            boundary=not inside,
            given_up=any(each.given_up for each in stopped),
            batch_failed=bool(inside) and all(each.failure for each in stopped if not each.boundary),
            failures=self._account.times,
            worked=self._account.worked,
            committed=self._progress.commits or (0 if known else -1),
            adopt_epoch=outcome.adopt[0],
            adopt_lineage=outcome.adopt[1],
            adopt_opening=outcome.adopt_opening,
            adopt_found=outcome.adopt_found,
            adopted_from=outcome.adopted_from,
        )


def stop_message(stopped: list[Stopped], inside: list[str]) -> str:
    """Return the result of a requested stop, as text."""
    if inside:
        given_up = [each.name for each in stopped if each.given_up]
        failed = [messages.batch_failed(each.name, each.failure) for each in stopped if each.failure]
        late = [each.name for each in stopped if each.name in inside and not each.failure]
        if not given_up and not late:
            return " ".join(failed)
        names = ", ".join(repr(name) for name in given_up or late)
        return " ".join([*failed, (messages.batch_given_up if given_up else messages.grace_period_over)(names)])
    if not stopped:
        return messages.NOTHING_RAN
    batches = ", ".join(f"{each.name!r} after batch {each.commits}" for each in stopped)
    return messages.stopped_at_boundary(batches)
