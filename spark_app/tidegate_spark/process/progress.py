"""What the driver knows about itself, for the agent. Thread safe, no I/O.

The driver's threads write it (preflight, listener, watch) and only the agent reads it; nothing here calls Spark.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate_spark.contract.control_protocol import ControlReport
from tidegate_spark.contract.protocol import (
    MOST_NOTICES,
    PROTOCOL,
    AgentReport,
    DriverConfig,
    DriverState,
    Fault,
    Notice,
    QueryReport,
)
from tidegate_spark.contract.snapshot_protocol import SnapshotReport


@dataclass(frozen=True)
class Commit:
    """Figures of one finished batch of one query, as Spark reports them; units as in QueryReport."""

    batch_id: int
    input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    batch_duration_ms: int
    state_rows: int
    state_bytes: int
    time: float
    lag_rows: int = -1
    control: int = -1
    """The batch's position in the control log; -1 if the query does not ask for messages."""
    source_partitions: int = -1
    state_partitions: int = 0


@dataclass(frozen=True)
class Leaving:
    """Executors that are on their way out, which of them for longest, and for how many seconds."""

    number: int
    longest: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Ends:
    """Executors that are gone though nobody asked for it, and for how many seconds no others are started yet."""

    number: int
    held_seconds: float = 0.0


COUNT_SECONDS = 15.0
"""For so long a count of executors holds; it is made each second, unless something keeps it from that."""


QUERIES_ROOM, QUERY_SIZE = 448 * 1024, 640
"""Bytes of a report that may be about queries, less than half of the longest one that the operator reads; and of one
query, beside its name."""


class Observer:
    """Called with what queries do; its methods must return quickly. This one does nothing."""

    def started(self, query: str) -> None:
        """Take note that a query runs."""

    def committed(self, query: str, commit: Commit) -> None:
        """Take note of a finished batch."""

    def idle(self, query: str) -> None:
        """Take note of a trigger that found nothing to read."""

    def at_batch(self, query: str) -> None:
        """Take note that a query is at a batch."""

    def waits(self, query: str, waits: bool) -> None:
        """Take note whether a query waits for the time of its trigger, or is paused."""


class Progress:
    """The driver's state, fault, queries, notices and executors."""

    def __init__(self, config: DriverConfig) -> None:
        """Begin in state Starting, with no query."""
        self._config = config
        self._lock = threading.Lock()
        self._state = DriverState.STARTING
        self._fault: Fault | None = None
        self._queries: dict[str, QueryReport] = {}
        self._proven: set[str] = set()
        self._notices: list[Notice] = []
        self._sequence = 0
        self._executors_wanted = config.executor.instances
        self._executors_running = self._executors_leaving = 0
        self._counted_at: float | None = None
        """When executors were counted last, on the clock of :func:`time.monotonic`."""
        self._short_since = self._leaving_since = 0.0
        self._leaving_longest = ""
        self._executors_ended, self._held_until = 0, 0.0
        self._executors_idle = -1
        self._task_seconds = self._task_seconds_committed = -1.0
        self._commits = 0
        self._empty: set[str] = set()
        """Queries that Spark cannot continue."""
        self._begun: dict[str, int] = {}
        """The last committed batch of each query when it was started first."""
        self.stalled = ""
        """What is stuck, as text; empty while nothing is."""
        self.failures: tuple[float, ...] = ()
        """When the application failed within the window; seconds since the epoch."""
        self.observer = Observer()
        self.snapshots: Callable[[], tuple[SnapshotReport, ...]] = tuple
        """How far the orders about snapshots are."""
        self.control: Callable[[], ControlReport] = ControlReport
        """How far control messages are."""
        self.on_commit: Callable[[str, Commit], None] = lambda query, commit: None
        """Called with each batch; must return quickly."""

    def enter(self, state: DriverState, fault: Fault | None = None) -> None:
        """Note what the driver does now, and what keeps it from running if it waits."""
        with self._lock:
            self._state, self._fault = state, fault

    def hold(self, fault: Fault | None) -> None:
        """Note what keeps the driver from running in the state that it is in; None: nothing does any more."""
        with self._lock:
            if self._state not in (DriverState.STOPPING, DriverState.ENDED):
                self._fault = fault

    def notice(self, reason: str, message: str, warning: bool = False) -> None:
        """Give the user a notice once; the same message is not repeated within this process."""
        with self._lock:
            if len(self._notices) >= MOST_NOTICES or any(n.message == message for n in self._notices):
                return
            self._sequence += 1
            self._notices.append(Notice(self._sequence, reason, message, warning))

    def query_started(self, name: str, last_committed_batch: int | None = None) -> None:
        """Note that query ``name`` runs, from the batch after ``last_committed_batch``; None: the teller does not know.

        Spark's listener reports a start before the checkpoint is read, and who started the query afterwards: it
        may have failed by then.
        """
        with self._lock:
            known = self._queries.get(name)
            before = known or QueryReport(name=name)
            batch = max(before.batch_id, -1 if last_committed_batch is None else last_committed_batch)
            if last_committed_batch is not None:
                self._begun.setdefault(name, batch)
            if known is None or last_committed_batch is None:
                before = dataclasses.replace(before, active=True, failed=False)
            if last_committed_batch is None:
                before = dataclasses.replace(before, continuous=False, real_time=False)
            self._queries[name] = dataclasses.replace(before, batch_id=batch)
        self.observer.started(name)

    def query_starts_empty(self, name: str) -> None:
        """Note that query ``name`` is about to start without what it was: its batches are numbered from 0 again."""
        with self._lock:
            self._empty.add(name)
            known = self._queries.get(name)
            if known is not None:
                self._queries[name] = dataclasses.replace(known, batch_id=-1)
                self._begun[name] = -1

    def query_continues(self, name: str) -> None:
        """Note that query ``name`` is about to start where its checkpoint is."""
        with self._lock:
            self._empty.discard(name)

    def query_triggers(self, name: str, *, continuous: bool = False, real_time: bool = False) -> None:
        """Note that query ``name``, which runs, has a continuous trigger, or that of real-time mode."""
        with self._lock:
            before = self._queries.get(name, QueryReport(name=name))
            self._queries[name] = dataclasses.replace(before, continuous=continuous, real_time=real_time)

    def query_committed(self, name: str, commit: Commit) -> None:
        """Note a finished batch."""
        with self._lock:
            before = self._queries.get(name, QueryReport(name=name))
            self._commits += 1
            self._proven.add(name)
            self._queries[name] = dataclasses.replace(
                before,
                batch_id=max(before.batch_id, commit.batch_id),
                input_rows_per_second=commit.input_rows_per_second,
                processed_rows_per_second=commit.processed_rows_per_second,
                input_rows_total=before.input_rows_total + commit.input_rows,
                batch_duration_ms=commit.batch_duration_ms,
                state_rows=commit.state_rows,
                state_bytes=commit.state_bytes,
                last_commit_time=commit.time,
                lag_rows=commit.lag_rows,
                committed=before.committed + 1,
                busy_ms_total=before.busy_ms_total + max(0, commit.batch_duration_ms),
                source_partitions=commit.source_partitions,
                state_partitions=commit.state_partitions,
                at_batch=False,
            )
            self._task_seconds_committed = self._task_seconds
        self.observer.committed(name, commit)
        self.on_commit(name, commit)

    def query_idle(self, name: str) -> None:
        """Note a trigger that found no new data: the query works, and its rates are zero."""
        with self._lock:
            before = self._queries.get(name, QueryReport(name=name))
            self._proven.add(name)
            self._queries[name] = dataclasses.replace(
                before, input_rows_per_second=0.0, processed_rows_per_second=0.0, at_batch=False
            )
        self.observer.idle(name)

    def query_at_batch(self, name: str, under_way: bool) -> None:
        """Note whether a batch is under way, which Spark reports when it ends."""
        with self._lock:
            self._queries[name] = dataclasses.replace(
                self._queries.get(name, QueryReport(name=name)), at_batch=under_way
            )
        if under_way:
            self.observer.at_batch(name)

    def query_ended(self, name: str, last_committed_batch: int = -1, *, failed: bool = False) -> None:
        """Note that query ``name`` runs no more, and whether an exception ended it; that holds until it runs again."""
        with self._lock:
            before = self._queries.get(name, QueryReport(name=name))
            batch = max(before.batch_id, last_committed_batch)
            self._proven.discard(name)
            self._queries[name] = dataclasses.replace(
                before,
                active=False,
                at_batch=False,
                failed=before.failed or failed,
                batch_id=batch,
                input_rows_per_second=0.0,
                processed_rows_per_second=0.0,
            )

    def executors(
        self,
        *,
        wanted: int | None = None,
        running: int | None = None,
        leaving: Leaving | None = None,
        ends: Ends | None = None,
    ) -> None:
        """Note how many executors are wanted, running, on their way out, and ended by themselves."""
        with self._lock:
            more = wanted is not None and wanted > self._executors_wanted
            self._executors_wanted = self._executors_wanted if wanted is None else wanted
            if running is not None:
                self._executors_running, self._counted_at = running, time.monotonic()
            if leaving is not None:
                self._note_leaving(leaving)
            if ends is not None:
                self._note_ends(ends)
            if self._executors_running >= self._executors_wanted:
                self._short_since = 0.0
            elif more or not self._short_since:
                self._short_since = time.time()

    def _note_leaving(self, leaving: Leaving) -> None:
        self._executors_leaving = leaving.number
        if not leaving.number:
            self._leaving_longest, self._leaving_since = "", 0.0
        elif leaving.longest != self._leaving_longest:
            # Computed once, so that a clock that is set meanwhile does not change it.
            self._leaving_longest, self._leaving_since = leaving.longest, time.time() - leaving.seconds

    def _note_ends(self, ends: Ends) -> None:
        if not ends.held_seconds:
            self._held_until = 0.0
        elif ends.number != self._executors_ended or not self._held_until:
            # Once for each pause, as above: only an end begins one.
            self._held_until = time.time() + ends.held_seconds
        self._executors_ended = ends.number

    @property
    def executors_wanted(self) -> int:
        """How many are wanted, at first those of the configuration."""
        return self._executors_wanted

    def has_executors(self, now: float | None = None) -> bool:
        """Return whether any executor is there, those included that end their tasks and go; true if nobody knows.

        Args:
            now: on the clock of :func:`time.monotonic`.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            if self._counted_at is None or now - self._counted_at > COUNT_SECONDS:
                return True
            return self._executors_running + self._executors_leaving > 0

    def work(self, task_seconds: float, idle: int) -> None:
        """Note the duration of all tasks that have ended so far, and how many executors had none for a while."""
        with self._lock:
            if self._task_seconds < 0:
                self._task_seconds_committed = task_seconds
            self._task_seconds, self._executors_idle = task_seconds, idle

    @property
    def ready(self) -> bool:
        """True if the script runs, has a query active, and each active query has finished a trigger in this process.

        "Finished a trigger" means: committed a batch, or found no new data. A query that reads its first batch, or
        recovers state, is not ready yet; a script that has not come to its first ``start()`` is not ready either.

        While queries are paused they finish none, and need not.
        """
        paused = self.control().paused
        with self._lock:
            return self._is_ready(paused)

    def _is_ready(self, paused: bool) -> bool:
        active = {q.name for q in self._queries.values() if q.active}
        return self._state is DriverState.RUNNING and bool(active) and (paused or active <= self._proven)

    @property
    def commits(self) -> int:
        """How many batches this process has committed, also those that Spark reported only in the end."""
        with self._lock:
            begun = self._begun
            new = sum(max(0, q.batch_id - begun[q.name]) for q in self._queries.values() if q.name in begun)
            return max(self._commits, new)

    @property
    def begins_known(self) -> bool:
        """Whether it is known of each query after which batch it was started."""
        with self._lock:
            return self._queries.keys() <= self._begun.keys()

    @property
    def committed(self) -> dict[str, int]:
        """The last committed batch of each query that has one."""
        with self._lock:
            return {q.name: q.batch_id for q in self._queries.values() if q.batch_id >= 0}

    def report(self) -> AgentReport:
        """Return everything, as the agent sends it."""
        snapshots, control = self.snapshots(), self.control()
        with self._lock:
            return AgentReport(
                app=self._config.app,
                uid=self._config.uid,
                epoch=self._config.epoch,
                lineage=self._config.lineage if self._state is DriverState.RUNNING else 0,
                state=self._state,
                fault=self._fault,
                queries=tuple(
                    dataclasses.replace(q, starts_empty=True) if q.name in self._empty else q
                    for q in _reported(tuple(self._queries.values()))
                ),
                executors_wanted=self._executors_wanted,
                executors_running=self._executors_running,
                executors_leaving=self._executors_leaving,
                executors_short_since=self._short_since,
                executors_leaving_since=self._leaving_since,
                executor_leaving_longest=self._leaving_longest,
                executors_ended=self._executors_ended,
                executors_held_until=self._held_until,
                notices=tuple(self._notices),
                ready=self._is_ready(control.paused),
                failures=self.failures,
                snapshots=snapshots,
                control=control,
                task_seconds=self._task_seconds_committed,
                executors_idle=self._executors_idle,
                protocol=PROTOCOL,
            )


def _reported(queries: Sequence[QueryReport]) -> Sequence[QueryReport]:
    """Return the queries that a report has room for, in their order: those that run, that failed, then the newest.

    A script may give each of its queries a new name, for months. The operator takes no longer report than it has
    memory for, so with all of them the driver would count as unreachable.
    """
    room, chosen = QUERIES_ROOM, set[str]()
    newest_first = tuple(reversed(queries))
    for query in sorted(newest_first, key=lambda query: (not query.active, not query.failed)):
        room -= QUERY_SIZE + len(json.dumps(query.name))
        if room < 0:
            break
        chosen.add(query.name)
    return queries if len(chosen) == len(queries) else tuple(query for query in queries if query.name in chosen)
