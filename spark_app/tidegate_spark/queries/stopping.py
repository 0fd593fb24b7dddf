"""Stops queries between two batches. Talks to the JVM; every wait has a deadline.

Spark's ``stop()`` interrupts the running batch. Setting the execution's state to TERMINATED at the right moment lets
its thread finish and commit the batch first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.queries.entries import Entry, failure_of
from tidegate_spark.queries.patience import Patience
from tidegate_spark.queries.writers import REAL_TIME

log = logging.getLogger("tidegate")

_this_thread = threading.local()

POLL_MILLISECONDS = 100
JOIN_MILLISECONDS = 5
ENDING_MILLISECONDS = 500
RESERVED_SECONDS = 25.0
"""The most of a stop's grace period that no batch gets."""


@dataclass(frozen=True)
class Stopped:
    """How a query ended: newest batches in its two logs (-1: none, None: could not be read)."""

    name: str
    offsets: int | None
    commits: int | None
    given_up: bool = False
    """Its batch was not waited for any longer, since nobody computed it."""
    failure: str = ""
    """What else cut its batch: why that failed, as text."""

    @property
    def boundary(self) -> bool:
        """True if every batch that was begun is committed."""
        return self.offsets is not None and self.offsets == self.commits


@dataclass(frozen=True)
class Position:
    """Where a query's thread is, seen by one who holds the progress lock: the methods on its stack; pure."""

    waits_for_lock: bool
    methods: tuple[str, ...]

    @property
    def plans(self) -> bool:
        """True inside the planning of a batch."""
        return any("constructNextBatch" in method for method in self.methods)

    @property
    def executes(self) -> bool:
        """True inside the execution of a batch."""
        return any("runBatch" in method for method in self.methods)

    @property
    def awaits_trigger(self) -> bool:
        """True while it waits for its trigger's time."""
        return "waitTillTime" in self.methods

    @property
    def begins_batch(self) -> bool:
        """True if it plans a batch as soon as the lock is free; ended now, it would leave that batch undone."""
        return self.waits_for_lock and self.plans

    @property
    def ends_if_asked(self) -> bool:
        """True if it looks at the state before it plans another batch, as long as it stays where it is."""
        return self.awaits_trigger or self.polls_for_data or (self.waits_for_lock and not self.plans)

    @property
    def polls_for_data(self) -> bool:
        """True between two looks for new data; from here it may come to the lock at any time."""
        return "sleep" in self.methods and not self.executes and not self.plans


def _always(query: StreamingQuery) -> bool:
    return True


def _nothing(query: StreamingQuery) -> str:
    return ""


def stop_at_boundary(
    entries: list[Entry],
    deadline: float,
    unwinding_seconds: float,
    is_computed: Callable[[StreamingQuery], bool] = _always,
    why_lost: Callable[[StreamingQuery], str] = _nothing,
) -> list[Stopped]:
    """Stop all ``entries`` in parallel, each after its running batch if that ends before ``deadline``.

    Args:
        entries: queries to stop; one that has ended already is only looked at.
        deadline: ``time.monotonic()`` after which running batches are interrupted.
        unwinding_seconds: what an interrupted batch gets to unwind, and what reading the logs may take, afterwards.
        is_computed: returns whether a query's running batch gets on; one that does not is interrupted before that.
        why_lost: returns why a query's running batch cannot end, which is then not waited for; empty if it can.

    Returns:
        One result per entry, in their order, at the latest twice ``unwinding_seconds`` after ``deadline``.
    """
    results: dict[str, Stopped] = {}

    def stop(entry: Entry) -> None:
        assert entry.query is not None
        began = time.monotonic()
        lost = why_lost(entry.query)
        patience = Patience(began if lost else deadline, functools.partial(is_computed, entry.query))
        interrupted, unlogged = True, False
        try:
            interrupted, unlogged = _stop_one(entry.query, patience, unwinding_seconds)
        except (Py4JError, OSError) as error:
            # The JVM is gone, or has another inside than we know; what the query's logs say decides what is reported.
            log.warning("stopping: query %r is interrupted, because it cannot be watched: %s", entry.name, error)
            _interrupt(entry.query, unwinding_seconds)
        ended = time.monotonic()
        read = _read_logs(entry.name, entry.query)
        if unlogged and read.boundary and read.commits is not None:
            read = dataclasses.replace(read, offsets=read.commits + 1)
        failure = lost if interrupted else _why_failed(entry.query)
        stopped = results[entry.name] = (
            read if read.boundary else dataclasses.replace(read, given_up=patience.gave_up, failure=failure)
        )
        log.info(
            "stopping: query %r ended after %.1f s, its last batches (begun %s, committed %s) were read in %.1f s",
            *(entry.name, ended - began, stopped.offsets, stopped.commits, time.monotonic() - ended),
        )

    threads = [threading.Thread(target=stop, args=(entry,), daemon=True) for entry in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline + 2 * unwinding_seconds - time.monotonic()))
    return [results.get(entry.name, Stopped(entry.name, None, None)) for entry in entries]


def _stop_one(query: StreamingQuery, patience: Patience, unwinding_seconds: float) -> tuple[bool, bool]:
    """Stop a query; return whether it was interrupted, and whether so in a batch that is in no log."""
    execution: Any = query._jsq.streamingQuery()
    thread = execution.queryExecutionThread()
    if _has_batches(execution):
        _let_end(execution, thread, patience)
        lock = execution.awaitProgressLock()
        while thread.isAlive() and not patience.is_over() and not position_of(thread, lock).awaits_trigger:
            thread.join(POLL_MILLISECONDS)
    if not thread.isAlive():
        return False, False
    # In real-time mode a batch's offsets are written when it ends. Without the lock: the stack alone is of interest.
    unlogged = is_real_time(execution) and position_of(thread, execution.awaitProgressLock()).executes
    # Between triggers nothing is interrupted; after the deadline the kubelet would interrupt it anyway. What nobody
    # computes is run again by the next start, now or then.
    _interrupt(query, unwinding_seconds)
    return True, unlogged


def _why_failed(query: StreamingQuery) -> str:
    """Return why a query has failed, empty if it has not, or that cannot be read."""
    with contextlib.suppress(Py4JError, OSError):
        failure = failure_of(query)
        if failure is not None:
            return f"{failure.exception}: {failure.message}" if failure.exception else failure.message
    return ""


def waits_for_tasks(query: StreamingQuery) -> bool:
    """Return whether a query's batch waits for tasks, and does not work in the driver alone; asks the JVM."""
    context = SparkContext._active_spark_context
    if context is None:
        return False
    tracker = context.statusTracker()
    # Spark's job group is the query's run.
    return not set(tracker.getActiveJobsIds()).isdisjoint(tracker.getJobIdsForGroup(str(query.runId)))


def _has_batches(execution: Any) -> bool:
    """Return whether an execution goes from batch to batch; a continuous one does not."""
    return str(execution.getClass().getName()).endswith("MicroBatchExecution")


def is_real_time(execution: Any) -> bool:
    """Return whether a query is in real-time mode, in which each batch reads for as long as its trigger says."""
    return str(execution.trigger().getClass().getSimpleName()) == REAL_TIME


def _interrupt(query: StreamingQuery, unwinding_seconds: float) -> None:
    def stop() -> None:
        with contextlib.suppress(Py4JError, OSError):  # the logs are read next and show the result
            stop_now(query)

    plain = threading.Thread(target=stop, daemon=True)
    plain.start()
    plain.join(unwinding_seconds)


def stop_now(query: StreamingQuery) -> None:
    """Stop a query as Spark does, although a script that does so may have to wait."""
    _this_thread.stops = True
    try:
        query.stop()
    finally:
        _this_thread.stops = False


def is_ours() -> bool:
    """Return whether this thread is in :func:`stop_now`."""
    return getattr(_this_thread, "stops", False)


def _let_end(execution: Any, thread: Any, patience: Patience) -> None:
    """Set the state that makes the execution's thread end by itself, at a point where this costs no batch.

    Spark looks at the state once more after a batch is planned, and interrupts it then. So the state must not change
    between the planning of a batch and its execution. The progress lock, which the thread takes before it constructs a
    batch, after it executed it, and after each trigger, holds the thread still while we see where it is.
    """
    assert SparkContext._jvm is not None
    milliseconds = SparkContext._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
    lock = execution.awaitProgressLock()
    while thread.isAlive() and not patience.is_over():
        if not lock.tryLock(POLL_MILLISECONDS, milliseconds):
            continue
        try:
            if _end_where_safe(execution, thread, lock, patience):
                return
        finally:
            lock.unlock()


def _end_where_safe(execution: Any, thread: Any, lock: Any, patience: Patience) -> bool:
    """Wait, holding the lock, until the thread can be ended, and end it; False if it is about to plan a batch."""
    while thread.isAlive() and not patience.is_over():
        position = position_of(thread, lock)
        if position.begins_batch:
            return False
        if position.ends_if_asked:
            return ask_to_end(execution, thread, lock, patience.is_over)
        thread.join(JOIN_MILLISECONDS)
    return not thread.isAlive()


def ask_to_end(execution: Any, thread: Any, lock: Any, is_over: Callable[[], bool]) -> bool:
    """Have the execution's thread end at its next look at the state; to be called by who holds the lock.

    A thread that waits for its trigger, or for data, may wake up right now, look at the state, and come to the lock to
    plan a batch, before the state is set: interrupted after that, the batch would be undone. So it is looked at again.

    Args:
        execution: the query's.
        thread: the execution's.
        lock: its progress lock.
        is_over: returns whether nobody waits any longer; then it has to end wherever it is.

    Returns:
        False if it is about to plan a batch: then the state is as it was.
    """
    active, terminated = _states(execution)
    execution.state().set(terminated)
    if _obeys(thread, lock, is_over):
        return True
    execution.state().compareAndSet(terminated, active)
    return False


def _obeys(thread: Any, lock: Any, is_over: Callable[[], bool]) -> bool:
    """Return False if the thread waits for the lock to plan a batch, True once it is past that, or out of time."""
    while thread.isAlive() and not is_over():
        position = position_of(thread, lock)
        # A thread that ends takes the lock once more, to wake up those who wait for it: that is no new batch.
        if position.waits_for_lock:
            return not position.plans
        if position.awaits_trigger:
            return True  # it looks at the state when that is over
        thread.join(JOIN_MILLISECONDS)
    return True


def position_of(thread: Any, lock: Any) -> Position:
    """Return where a query's thread is; to be asked by who holds the lock."""
    # The order matters: a thread that waits for the lock we hold stays where its stack then shows it.
    waits = bool(lock.hasQueuedThread(thread))
    return Position(waits, tuple(str(frame.getMethodName()) for frame in thread.getStackTrace()))


def _states(execution: Any) -> tuple[Any, Any]:
    """Return Spark's ACTIVE and TERMINATED."""
    # The classes moved between Spark's versions; the state's own class shows where they are.
    current = execution.state().get().getClass()
    package, loader = current.getName().rpartition(".")[0], current.getClassLoader()
    active, terminated = (
        loader.loadClass(f"{package}.{name}$").getField("MODULE$").get(None) for name in ("ACTIVE", "TERMINATED")
    )
    return active, terminated


def _read_logs(name: str, query: StreamingQuery) -> Stopped:
    try:
        execution: Any = query._jsq.streamingQuery()
        committed = _latest(execution.commitLog())
        if not _has_batches(execution):
            # The next start goes by the last epoch that is committed, and takes back offsets of those after it.
            return Stopped(name, committed, committed)
        return Stopped(name, _latest(execution.offsetLog()), committed)
    except (Py4JError, OSError):
        return Stopped(name, None, None)


def last_commit(query: StreamingQuery) -> int | None:
    """Return the newest batch in the commit log of a query that has ended, -1 if there is none.

    None: that cannot be known, because its thread still runs or the log cannot be read.
    """
    try:
        execution: Any = query._jsq.streamingQuery()
        thread = execution.queryExecutionThread()
        # Whoever awaits a query learns of its end some moments before its thread ends.
        thread.join(ENDING_MILLISECONDS)
        return None if thread.isAlive() else _latest(execution.commitLog())
    except (Py4JError, OSError):
        return None


def _latest(log: Any) -> int:
    latest = log.getLatestBatchId()
    return int(latest.get()) if latest.isDefined() else -1
