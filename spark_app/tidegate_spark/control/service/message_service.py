"""Takes control messages in a driver, logs them, and reports their results. I/O by the log.

One thread writes. Requests are answered from memory, except a query's position: it is given when everything up to it is
decided and the driver has done its part before that batch.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from tidegate_spark.contract.control_protocol import ControlOrders, ControlReport, MessageReport
from tidegate_spark.control.channels.admission import within_limit
from tidegate_spark.control.channels.cluster_requests import OPEN_STATES, involves_cluster
from tidegate_spark.control.channels.pending_replies import Ended, PendingReplies
from tidegate_spark.control.messages.accounts import Attendance, BatchAccount, within_bounds
from tidegate_spark.control.messages.ack_store import AckStore
from tidegate_spark.control.messages.deadlines import Deadlines
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.cached_client import Reached
from tidegate_spark.control.service.driver_duties import DriverDuties
from tidegate_spark.control.service.handler_calls import call_handlers
from tidegate_spark.control.service.inspection import Inspector
from tidegate_spark.control.service.ports import DriverOperations
from tidegate_spark.control.service.reports import Reporting, messages_between, new_in_batch, uncalled
from tidegate_spark.control_log.entries import ControlLogError, Entry, message_of
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.reducer import State
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.store import NewerStorageError

READY_SECONDS = 60.0
"""Seconds that a query waits for the log to be read, before its first position."""
POLL_SECONDS, IDLE_SECONDS = 1.0, 60.0
"""Seconds between two passes, while something is open and while nothing is."""
LONGEST_PAUSE_SECONDS = 30.0
BREATH_SECONDS = 0.02
"""Least seconds between two passes: whoever waits for the first to end would not wake up before the second begins."""
BASE_SECONDS = 3600.0
MOST_ORDERS, NO_BATCH = 1000, -1

log = logging.getLogger("tidegate")


class MessageService:
    """One driver's. Thread safe."""

    def __init__(  # noqa: PLR0913 - those beyond are by name
        self,
        connect: Callable[[], SnapshotRepository],
        operations: DriverOperations,
        declared: Declared,
        clock: Callable[[], float] = time.time,
        *,
        answers: bool | None = None,
        message_seconds: float = 60.0,
    ) -> None:
        """Prepare.

        Args:
            connect: reaches the storage with the credentials of the moment; it may raise.
            operations: the driver.
            declared: what the program says.
            clock: seconds since the epoch.
            answers: whether messages from a broker get replies; None: none is read.
            message_seconds: what one message may take to be looked at, and each call of a handler for it.
        """
        self._inspector, self._deadlines = Inspector(operations, declared, message_seconds), Deadlines(message_seconds)
        self._reached, self._operations, self._declared, self._clock = Reached(connect), operations, declared, clock
        self._lock, self._work = threading.Lock(), threading.RLock()
        self._wake, self._ready, self._stopping = threading.Event(), threading.Event(), threading.Event()
        self._offered: OrderedDict[str, Entry] = OrderedDict()
        self._reports: tuple[MessageReport, ...] = ()
        self._positions: dict[str, int] = {}
        self._commits: list[tuple[str, int, int, BatchAccount]] = []
        self.workers = Attendance()
        self.on_newer: Callable[[str], None] = lambda _: None
        """Called with the cause when a newer Tidegate wrote the log: what it says cannot be known here."""
        self._paused, self._last, self._handled = False, 0, 0
        """The last: up to where handlers of the driver were called."""
        self._repository: SnapshotRepository | None = None
        self._log: ControlLog | None = None
        self._channel, self._answers = PendingReplies(), answers
        self._counted: tuple[int, dict[str, int]] = (0, {})
        self._store = AckStore(self._channel.accounts)
        self._duties = DriverDuties(operations, self._store, self._channel, self._hold_queries)

    def start(self) -> None:
        """Begin to work, in a thread."""
        threading.Thread(target=self._run, name="control", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping.set()
        self._wake.set()

    def give(self, orders: ControlOrders) -> None:
        """Take messages in; returns at once.

        Raises:
            ValueError: one has no id or no type, or there are too many.
        """
        if len(orders.messages) > MOST_ORDERS:
            raise ValueError(f"at most {MOST_ORDERS} messages at a time")
        if not all(order.id and order.type for order in orders.messages):
            raise ValueError("a message needs an id and a type")
        with self._lock:
            for order in orders.messages:
                self._offered.setdefault(order.id, message_of(order))
            for name in orders.forget:
                self._offered.pop(name, None)
            self._reports = tuple(report for report in self._reports if report.id in self._offered)
        self._channel.cluster.learn(orders.ended)
        self._wake.set()

    def report(self) -> ControlReport:
        """Return how far everything is."""
        with self._lock:
            positions = dict(self._positions)
            return ControlReport(self._last, positions, self._paused, self._reports, asked=self._channel.asked)

    def is_known(self, seconds: float) -> bool:
        """Wait until it is known what is in force, at most so long; return whether it is."""
        return self._ready.wait(seconds)

    @property
    def paused(self) -> bool:
        """Whether queries are to be held."""
        with self._lock:
            return self._paused

    def position(self) -> int:
        """Return the position that a query's next batch is to have.

        Raises:
            ControlLogError: it cannot be known, or a handler failed whose exceptions are to fail the query.
            Exception: what the store's client raises.
        """
        found = self._opened()
        if found.is_settled and found.last == self._handled:
            return self._handled
        with self._work:
            position = found.settle()
            self._note_channel(found)
            self._call_handlers(found, position)
        with self._lock:
            self._last = max(self._last, position)
        return position

    def state_at(self, position: int) -> State:
        """Return what is in force at a position; raises what :meth:`ControlLog.state_at` does."""
        return self._opened().state_at(position)

    def messages(self, after: int, upto: int) -> tuple[Entry, ...]:
        """Return the messages that come into force behind a position, up to another one; raises likewise.

        What a rollback undid may have been removed; nothing else was.
        """
        return messages_between(self._opened(), after, upto)

    def committed(self, query: str, batch: int, position: int) -> None:
        """Take note that a batch is committed, and which position it had."""
        with self._lock:
            workers = self.workers.close(query, batch)
            if position > self._positions.get(query, -1):
                self._commits.append((query, batch, position, workers))
                self._wake.set()

    def begins(self, query: str, position: int) -> None:
        """Take note of the position of a query's newest committed batch, before it goes on."""
        with self._lock:
            if not any(commit[0] == query for commit in self._commits):
                self._positions[query] = position
            else:  # what the previous run has committed is noted first
                self._commits.append((query, NO_BATCH, position, BatchAccount()))
        self._wake.set()

    def last_poll(self) -> None:
        """Make one last pass; its failure has no effect."""
        with contextlib.suppress(Exception):  # the next process finds it out
            self.check()

    # --- from the intake of a broker's channel ---

    def takes_in(self) -> bool:
        """Return whether messages can be logged: the log is read, and it is known what the program understands."""
        return self._log is not None and self._operations.is_open()

    def consumed(self) -> dict[str, int]:
        """Return from where on parts of topics are to be read; raises ControlLogError."""
        return self._opened().consumed

    def take_in(self, drafts: Sequence[Entry]) -> None:
        """Log messages, those of them that are not in the log; when it returns they are there for good.

        Raises:
            ControlLogError: it cannot be written.
            Exception: what the store's client raises.
        """
        found = self._opened()

        def append(ready: Sequence[Entry]) -> None:
            with self._work:
                asked = sum(involves_cluster(entry) for entry in self._channel.open)
                found.append(within_limit(ready, asked, lambda name: found.find(name) is not None))
                self._note_channel(found)
            with self._lock:
                self._last = max(self._last, found.last)
            self._wake.set()

        self._inspector.log_in_order(found, drafts, append, threading.TIMEOUT_MAX)

    def answers(self) -> tuple[Ended, ...]:
        """Return what is to be answered to a broker, and is written down; nothing where there is no place."""
        return self._channel.ready if self._answers else ()

    def answered(self, sequences: Sequence[int]) -> None:
        """Take note that the broker has these answers."""
        with self._work:
            self._channel.reported(sequences)
        self._wake.set()

    def counted(self) -> tuple[int, dict[str, int]]:
        """Return how many messages came from a broker, and how many of them ended in which state."""
        with self._lock:
            return self._counted

    # --- the work ---

    def _run(self) -> None:
        pause, seen = 1.0, ""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                more = self.check()
            except Exception as error:  # whatever it is: the next pass may succeed
                self._reached.forget()
                if isinstance(error, NewerStorageError):
                    self.on_newer(f"{error}.")
                if str(error) != seen:
                    log.warning("control: %s", error, extra={"action": "control"})
                seen = str(error)
                self._stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            pause, seen = 1.0, ""
            self._stopping.wait(BREATH_SECONDS)
            self._wake.wait(POLL_SECONDS if more else IDLE_SECONDS)

    def check(self) -> bool:
        """Do what is to be done; return whether something is open. Raises what keeps it from being done."""
        with self._work:
            repository, found = self._begun()
        is_open = self._operations.is_open()
        # Whole models are fetched for it: no query waits for that, and nothing else for longer than a moment.
        all_logged = not is_open or self._log_offered(found)
        with self._work:
            if not found.is_settled:
                found.let_expire()
            self._note_channel(found)
            self._take_commits(repository, found)
            with self._lock:
                offered = list(self._offered)
            self._duties.carry_out(repository, found, offered)
            more = self._report_results(repository, found, is_open)
            newest = self._keep_base(repository, found)
        if newest is not None:
            self._remove_old(repository, found, newest)
        return more or not all_logged

    def _begun(self) -> tuple[SnapshotRepository, ControlLog]:
        repository = self._repository = self._reached.repository()
        if self._log is None:
            self._begin(repository)
        assert self._log is not None
        self._log.use(repository)
        return repository, self._log

    def _begin(self, repository: SnapshotRepository) -> None:
        found = ControlLog(repository, self._clock)
        found.load()
        self._channel.load(repository, found.last, begin=self._answers is not None)
        state = _state_of_all(found)
        with self._lock:
            self._paused, self._last = state.paused, found.last
        self._handled = -1
        self._duties.begin(found.begin)
        self._operations.pause(state.paused)
        self._operations.begin(state)
        self._log = found
        self._ready.set()

    def _opened(self) -> ControlLog:
        if not self._ready.wait(READY_SECONDS) or self._log is None:
            raise ControlLogError("the control log cannot be read: see the driver's log")
        return self._log

    def _log_offered(self, found: ControlLog) -> bool:
        """Have the messages logged that were offered; return whether all are."""
        with self._lock:
            offered = [draft for draft in self._offered.values() if found.find(draft.id) is None]

        def append(ready: Sequence[Entry]) -> None:
            with self._work:
                found.append(ready)

        return self._inspector.log_in_order(found, offered, append, POLL_SECONDS)

    def _note_channel(self, found: ControlLog) -> None:
        """Take note of what came from a broker, before anybody asks what is known of it."""
        if found.last > self._channel.upto:
            self._channel.note(found.entries(self._channel.upto, found.last, whole=False), found.last)

    def _take_commits(self, repository: SnapshotRepository, found: ControlLog) -> None:
        while True:
            with self._lock:
                if not self._commits:
                    return
                query, batch, position, workers = self._commits[0]
                before = self._positions.get(query, -1)
            new = new_in_batch(found, before, position) if batch != NO_BATCH else ()
            for entry in (entry for entry in new if not self._store.is_over(entry)):
                account = self._store.get(repository, entry.sequence)
                if query not in account.queries:
                    reported = {**account.queries, query: workers.acknowledgement(batch, entry.sequence)}
                    self._store.put(replace(account, queries=reported))
            with self._lock:
                self._commits.pop(0)
                self._positions[query] = max(before, position)

    def _hold_queries(self, state: State) -> None:
        with self._lock:
            self._paused = state.paused
        self._operations.pause(state.paused)

    def _call_handlers(self, found: ControlLog, position: int) -> None:
        handlers = dict(self._declared.on_driver)
        if position <= self._handled or self._repository is None:
            return
        if handlers:
            with self._lock:
                planned = max(self._positions.values(), default=found.begin)
            new = uncalled(found, self._handled, planned, position)
            call_handlers(handlers, new, self._store, self._repository, self._deadlines)
        self._handled = position
        self._wake.set()

    def _keep_base(self, repository: SnapshotRepository, found: ControlLog) -> int | None:
        """Write a base if it is time; return its position, None if it is not."""
        if not found.wants_base(BASE_SECONDS):
            return None
        with self._lock:
            offered = dict(self._offered)
        # What was not noted would be gone.
        reporting = Reporting(repository, found, self._store, None, frozenset())
        reporting.note_verdicts([*reporting.logged(offered.values()), *self._channel.open])
        self._store.save(repository)
        self._channel.save(repository, whole=True)
        return found.write_base(offered)

    def _remove_old(self, repository: SnapshotRepository, found: ControlLog, newest: int) -> None:
        """Remove what no batch can ask for any more, now that there is a base at ``newest``."""
        # The whole lineage is listed for it, with all state: no query waits for that. The oldest position only grows,
        # and a query that begins meanwhile begins behind the base.
        oldest = self._operations.oldest(repository)
        with self._work:
            gone = found.remove_before(newest if oldest is None else oldest)
            self._duties.forget(gone)
            self._store.forget(repository, gone, [report.sequence for report in self.report().messages])

    def _report_results(self, repository: SnapshotRepository, found: ControlLog, is_open: bool) -> bool:
        """Report the results of messages, once they are stored; return whether any is still open."""
        with self._lock:
            offered = list(self._offered.values())
            positions = dict(self._positions)
        asking = self._operations.asking() if is_open else None
        reporting = Reporting(repository, found, self._store, asking, frozenset(self._declared.on_driver))
        entries, of_channel = reporting.logged(offered), self._channel.open
        reporting.acknowledge_late(self._operations, [*entries, *of_channel], positions)
        reports = reporting.reports_of(entries)
        self._channel.end(reporting.reports_of(of_channel), answered=bool(self._answers))
        self._store.save(repository)
        self._channel.save(repository)
        state = _state_of_all(found)
        with self._lock:
            self._reports = within_bounds([report for report in reports if report.id in self._offered])
            self._counted = (self._channel.received, dict(self._channel.ended))
            self._last, self._paused = found.last, state.paused
            more = bool(self._commits or self._channel.open)
        self._operations.pause(state.paused)
        return more or len(reports) < len(offered) or any(report.state in OPEN_STATES for report in reports)


def _state_of_all(found: ControlLog) -> State:
    return found.state_at(found.last)
