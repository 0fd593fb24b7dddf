"""Stopping queries between two batches. Talks to the JVM; every wait has a deadline.

Spark's own ``stop()`` interrupts the running batch. Setting the execution's state to TERMINATED instead lets its thread
finish the batch, commit it, and end by itself at the next look at the state.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.queries import Entry

POLL_MILLISECONDS = 100


@dataclass(frozen=True)
class Stopped:
    """How a query ended: newest batches in its two logs (-1: none, None: could not be read)."""

    name: str
    offsets: int | None
    commits: int | None

    @property
    def boundary(self) -> bool:
        """True if every batch that was begun is committed."""
        return self.offsets is not None and self.offsets == self.commits


def stop_at_boundary(entries: list[Entry], deadline: float, unwinding_seconds: float) -> list[Stopped]:
    """Stop all ``entries`` in parallel, each after its running batch if that ends before ``deadline``.

    Args:
        entries: queries to stop; one that has ended already is only looked at.
        deadline: ``time.monotonic()`` after which running batches are interrupted.
        unwinding_seconds: what an interrupted batch gets to unwind, and what reading the logs may take, afterwards.

    Returns:
        One result per entry, in their order, at the latest twice ``unwinding_seconds`` after ``deadline``.
    """
    results: dict[str, Stopped] = {}

    def stop(entry: Entry) -> None:
        assert entry.query is not None
        with contextlib.suppress(Py4JError, OSError):  # the JVM is gone, or refuses: what the logs say decides
            _stop_one(entry.query, deadline, unwinding_seconds)
        results[entry.name] = _read_logs(entry.name, entry.query)

    threads = [threading.Thread(target=stop, args=(entry,), daemon=True) for entry in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline + 2 * unwinding_seconds - time.monotonic()))
    return [results.get(entry.name, Stopped(entry.name, None, None)) for entry in entries]


def _stop_one(query: StreamingQuery, deadline: float, unwinding_seconds: float) -> None:
    execution: Any = query._jsq.streamingQuery()
    thread = execution.queryExecutionThread()
    _let_end(execution)
    while thread.isAlive() and time.monotonic() < deadline:
        if _sleeps_until_next_trigger(thread):
            break
        thread.join(POLL_MILLISECONDS)
    if thread.isAlive():
        # Between triggers nothing is interrupted; after the deadline the kubelet would interrupt it anyway.
        plain = threading.Thread(target=_stop_quietly, args=(query,), daemon=True)
        plain.start()
        plain.join(unwinding_seconds)


def _stop_quietly(query: StreamingQuery) -> None:
    with contextlib.suppress(Py4JError, OSError):  # the logs are read next and tell what came of it
        query.stop()


def _let_end(execution: Any) -> None:
    """Set the state that makes the execution's thread end after its batch."""
    # The classes moved between Spark's versions; the state's own class tells where they are.
    current = execution.state().get().getClass()
    name = current.getName().rpartition(".")[0] + ".TERMINATED$"
    execution.state().set(current.getClassLoader().loadClass(name).getField("MODULE$").get(None))


def _sleeps_until_next_trigger(thread: Any) -> bool:
    """Return True if the execution's thread waits for its trigger's time; it then has no batch and begins none."""
    return any(frame.getMethodName() == "waitTillTime" for frame in thread.getStackTrace())


def _read_logs(name: str, query: StreamingQuery) -> Stopped:
    try:
        execution: Any = query._jsq.streamingQuery()
        return Stopped(name, _latest(execution.offsetLog()), _latest(execution.commitLog()))
    except (Py4JError, OSError):
        return Stopped(name, None, None)


def _latest(log: Any) -> int:
    latest = log.getLatestBatchId()
    return int(latest.get()) if latest.isDefined() else -1
