"""Where a driver takes control messages in, has them logged, and says what came of them. I/O through the log.

One thread writes. What is asked from outside is answered from memory, but for one thing: a position is handed out to a
query when everything up to it is decided, and what the driver is to do before that batch is done.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace

from tidegate_spark.control import accounts
from tidegate_spark.control.accounts import AccountBook, BatchAccount, needs_of
from tidegate_spark.control.checking import checked
from tidegate_spark.control.entries import ControlLogError, Entry, Kind, message_of
from tidegate_spark.control.fold import State, Verdict, in_force
from tidegate_spark.control.handlers import FAIL, Declared
from tidegate_spark.control.handlers import message_of as shown
from tidegate_spark.control.log import ControlLog
from tidegate_spark.control.log_objects import LostError
from tidegate_spark.control.ports import Works
from tidegate_spark.control.reaching import Reached
from tidegate_spark.control_protocol import ControlOrders, ControlReport, MessageReport, QueryAcknowledgement
from tidegate_spark.snapshots.library import Library

READY_SECONDS = 60.0
"""What a query waits for the log to be read, before its first position."""
LOOK_SECONDS, IDLE_SECONDS = 1.0, 60.0
"""Between two looks, while something is open and while nothing is."""
LONGEST_PAUSE_SECONDS = 30.0
BASE_SECONDS = 3600.0
MOST_ORDERS = 1000

log = logging.getLogger("tidegate")


class ControlDesk:
    """One driver's. Thread safe."""

    def __init__(
        self,
        connect: Callable[[], Library],
        works: Works,
        declared: Declared,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare.

        Args:
            connect: reaches the storage with the credentials of the moment; it may raise.
            works: the driver.
            declared: what the program says.
            clock: seconds since the epoch.
        """
        self._reached, self._works, self._declared, self._clock = Reached(connect), works, declared, clock
        self._lock, self._work = threading.Lock(), threading.RLock()
        self._wake, self._ready, self._stopping = threading.Event(), threading.Event(), threading.Event()
        self._offered: OrderedDict[str, Entry] = OrderedDict()
        self._reports: tuple[MessageReport, ...] = ()
        self._positions: dict[str, int] = {}
        self._commits: list[tuple[str, int, int]] = []
        self._batches: dict[tuple[str, int], BatchAccount] = {}
        self._paused, self._last = False, 0
        self._library: Library | None = None
        self._log: ControlLog | None = None
        self._book = AccountBook()
        self._handled = self._carried = 0
        """Up to where handlers of the driver were called; from where the driver's part of messages is looked at."""

    # --- from outside ---

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
        self._wake.set()

    def report(self) -> ControlReport:
        """Return how far everything is."""
        with self._lock:
            return ControlReport(self._last, dict(self._positions), self._paused, self._reports)

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
            self._call_handlers(found, position)
        with self._lock:
            self._last = max(self._last, position)
        return position

    def state_at(self, position: int) -> State:
        """Return what is in force at a position; raises what :meth:`ControlLog.state_at` does."""
        return self._opened().state_at(position)

    def messages(self, after: int, upto: int) -> tuple[Entry, ...]:
        """Return the messages that come into force behind a position, up to another one; raises likewise.

        What a rollback took back may have been removed; nothing else was.
        """
        found = self._opened()
        return in_force(found.entries(after, upto, whole=False), found.state_at(after).lineage if after else 0)

    def worker_asks(self, query: str, batch: int, worker: str) -> None:
        """Take note that a worker runs a task of a batch."""
        with self._lock:
            self._batches.setdefault((query, batch), BatchAccount()).workers.setdefault(worker, None)

    def worker_applied(self, query: str, batch: int, worker: str, errors: Mapping[int, str]) -> None:
        """Take note that a worker has taken in what is in force in a batch; ``errors``: by sequence."""
        with self._lock:
            self._batches.setdefault((query, batch), BatchAccount()).workers[worker] = dict(errors)

    def committed(self, query: str, batch: int, position: int) -> None:
        """Take note that a batch is committed, and which position it had."""
        with self._lock:
            if position > self._positions.get(query, -1):
                self._commits.append((query, batch, position))
                self._wake.set()
            for key in [key for key in self._batches if key[0] == query and key[1] < batch]:
                del self._batches[key]

    def begins(self, query: str, position: int) -> None:
        """Take note of the position of a query's newest committed batch, before it goes on."""
        with self._lock:
            self._positions[query] = position
            # It is another lineage's, or another run's.
            self._commits = [commit for commit in self._commits if commit[0] != query]
        self._wake.set()

    def last_look(self) -> None:
        """Look once more, whatever comes of it."""
        with contextlib.suppress(Exception):  # the next process finds it out
            self.look()

    # --- the work ---

    def _run(self) -> None:
        pause, seen = 1.0, ""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                more = self.look()
            except Exception as error:  # whatever it is: the next look may do better
                self._reached.forget()
                if str(error) != seen:
                    log.warning("control: %s", error, extra={"action": "control"})
                seen = str(error)
                self._stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            pause, seen = 1.0, ""
            self._wake.wait(LOOK_SECONDS if more else IDLE_SECONDS)

    def look(self) -> bool:
        """Do what is to be done; return whether something is open. Raises what keeps it from being done."""
        with self._work:
            library = self._library = self._reached.library()
            if self._log is None:
                self._begin(library)
            assert self._log is not None
            self._log.use(library)
            is_open = self._works.is_open()
            if is_open:
                self._log_offered(self._log)
            self._take_commits(library, self._log)
            self._carry_out(library, self._log)
            self._book.save(library)
            self._keep_base(library, self._log)
            return self._show(library, self._log, is_open)

    def _begin(self, library: Library) -> None:
        found = ControlLog(library, self._clock)
        found.load()
        state = _state_of_all(found)
        with self._lock:
            self._paused, self._last = state.paused, found.last
        # Of older ones those are looked at that are offered again.
        self._handled = self._carried = found.begin
        self._works.pause(state.paused)
        self._works.begin(state)
        self._log = found
        self._ready.set()

    def _opened(self) -> ControlLog:
        if not self._ready.wait(READY_SECONDS) or self._log is None:
            raise ControlLogError("the control log cannot be read: see the driver's log")
        return self._log

    def _log_offered(self, found: ControlLog) -> None:
        with self._lock:
            drafts = [draft for draft in self._offered.values() if found.find(draft.id) is None]
        if drafts:
            vocabulary = self._declared.vocabulary()
            found.append([checked(draft, vocabulary) for draft in drafts])

    def _take_commits(self, library: Library, found: ControlLog) -> None:
        while True:
            with self._lock:
                if not self._commits:
                    return
                query, batch, position = self._commits[0]
                before = self._positions.get(query, -1)
                workers = self._batches.get((query, batch), BatchAccount())
            for entry in self._new_in(found, before, position):
                account = self._book.get(library, entry.sequence)
                if query not in account.queries:
                    told = {**account.queries, query: workers.acknowledgement(batch, entry.sequence)}
                    self._book.put(replace(account, queries=told))
            with self._lock:
                self._commits.pop(0)
                self._positions[query] = max(before, position)
                self._batches.pop((query, batch), None)

    def _new_in(self, found: ControlLog, before: int, position: int) -> tuple[Entry, ...]:
        if position <= before:
            return ()
        # A query that is new begins with what is in force, and acknowledges what nobody has forgotten.
        after = max(before, 0) if before >= 0 else min(found.begin, position)
        try:
            return self.messages(after, position)
        except LostError:
            return ()

    def _carry_out(self, library: Library, found: ControlLog) -> None:
        """Do the driver's part of what is logged, each message as far as it can be done now."""
        for entry in self._of_interest(found):
            needs = needs_of(entry.type, ())
            if entry.kind is not Kind.MESSAGE or not needs.driver:
                continue
            account = self._book.get(library, entry.sequence)
            if account.done or found.decide([entry.sequence]).get(entry.sequence) is not Verdict.IN_FORCE:
                continue
            state = _state_of_all(found)
            with self._lock:
                self._paused = state.paused
            self._works.pause(state.paused)
            done = self._works.carry_out(entry, account, state)
            if done is not None:
                self._book.put(done)
                log.info("control: %s (%d) is done", entry.type, entry.sequence, extra={"action": "control"})

    def _of_interest(self, found: ControlLog) -> list[Entry]:
        """Return the entries behind the base that this process began with, and older ones that are offered."""
        with self._lock:
            offered = [found.find(name) for name in self._offered]
        recent = found.entries(max(self._carried, found.begin), found.last)
        older = sorted(number for number in offered if number is not None and number <= max(self._carried, found.begin))
        return [*(entry for number in older for entry in _one(found, number)), *recent]

    def _call_handlers(self, found: ControlLog, position: int) -> None:
        handlers = dict(self._declared.on_driver)
        if position <= self._handled or self._library is None:
            return
        for entry in self.messages(self._handled, position) if handlers else ():
            handler = handlers.get(entry.type)
            account = self._book.get(self._library, entry.sequence)
            if handler is None or account.done:
                continue
            try:
                handler.function(shown(entry))
            except Exception as error:
                log.exception("control: the handler for %s (%d) failed", entry.type, entry.sequence)
                if handler.raises == FAIL:
                    raise ControlLogError(f"the handler for {entry.type!r} failed: {_words(error)}") from error
                account = replace(account, failed=True, reason="HandlerFailed", message=_words(error))
            self._book.put(replace(account, done=True))
        self._handled = position
        self._wake.set()

    def _keep_base(self, library: Library, found: ControlLog) -> None:
        if not found.wants_base(BASE_SECONDS):
            return
        open_ones = [report.sequence for report in self.report().messages]
        newest = found.write_base()
        oldest = self._works.oldest(library)
        gone = found.remove_before(newest if oldest is None else oldest)
        self._carried = max(self._carried, gone)
        self._book.forget(library, gone, open_ones)

    def _show(self, library: Library, found: ControlLog, is_open: bool) -> bool:
        with self._lock:
            offered = list(self._offered.values())
        asking = self._works.asking() if is_open else None
        for query in asking or ():
            self._acknowledge_late(library, found, query)
        reports = [report for draft in offered for report in self._report(library, found, draft, asking)]
        state = _state_of_all(found)
        with self._lock:
            self._reports = tuple(report for report in reports if report.id in self._offered)
            self._last, self._paused = found.last, state.paused
            more = bool(self._commits)
        self._works.pause(state.paused)
        return more or len(reports) < len(offered) or any(report.state.value in OPEN for report in reports)

    def _acknowledge_late(self, library: Library, found: ControlLog, query: str) -> None:
        """Say which batch it was for messages that a process did not come to say it of, which ended meanwhile."""
        with self._lock:
            offered = [found.find(name) for name in self._offered]
            position = self._positions.get(query, -1)
        for entry in [entry for number in offered if number is not None for entry in _one(found, number)]:
            account = self._book.get(library, entry.sequence)
            if entry.kind is not Kind.MESSAGE or entry.sequence > position or query in account.queries:
                continue
            batch = self._works.batch_of(library, query, entry.sequence)
            if batch is not None and found.verdict(entry.sequence) is Verdict.IN_FORCE:
                self._book.put(replace(account, queries={**account.queries, query: QueryAcknowledgement(batch, 1, 1)}))

    def _report(
        self, library: Library, found: ControlLog, draft: Entry, asking: frozenset[str] | None
    ) -> list[MessageReport]:
        sequence = found.find(draft.id)
        if sequence is None:
            return []
        (entry,) = _one(found, sequence) or (replace(draft, sequence=sequence),)
        try:
            verdict = found.verdict(sequence)
        except LostError:
            verdict = None
        needs = needs_of(entry.type, self._declared.on_driver)
        account = self._book.get(library, sequence)
        return [accounts.report_of(entry, verdict, account, needs, asking)]


OPEN = frozenset({"Logged", "InForce"})
"""States of a message that something may still come of."""


def _one(found: ControlLog, sequence: int) -> tuple[Entry, ...]:
    try:
        return found.entries(sequence - 1, sequence)
    except LostError:
        return ()


def _state_of_all(found: ControlLog) -> State:
    return found.state_at(found.last)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
