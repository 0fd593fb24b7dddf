"""Carries out the built-in types of control messages in the driver. Talks to Spark."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.control_protocol import (
    CLEAR_CACHES,
    DUMP_STATE,
    PAUSE,
    PING,
    SET_LOG_LEVEL,
    SNAPSHOT,
    QueryAcknowledgement,
)
from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.secret_shapes import without_shapes
from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS, SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_spark.control.channels.cluster_requests import asked_id
from tidegate_spark.control.driver.log_level import LogLevel
from tidegate_spark.control.messages import messages
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.deadlines import Deadlines, OverdueError
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.offsets import AWAY_SECONDS, SELDOM_SECONDS, Positions
from tidegate_spark.control_log.reducer import State
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries import query_messages
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.service import SnapshotService

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate_spark.control.driver.pausing import Pauser

log = logging.getLogger("tidegate")


class SparkOperations:
    """The driver around the message service; see :class:`tidegate_spark.control.service.ports.DriverOperations`."""

    def __init__(  # noqa: PLR0913 - those beyond are by name
        self,
        progress: Progress,
        snapshots: SnapshotService,
        lineage: int,
        *,
        is_open: Callable[[], bool],
        inspection: Callable[[Entry], Callable[[], Entry] | None],
        message_seconds: float = 60.0,
        directory_of: Callable[[str], str] = checkpoint_directory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; there is no session yet, and no query. Spark's part of a message may take ``message_seconds``."""
        self._clock = clock
        self._open_since: float | None = None
        self._progress, self._snapshots, self.is_open, self.inspection = progress, snapshots, is_open, inspection
        self._deadlines = Deadlines(message_seconds)
        self.log_level = LogLevel()
        self._directory_of = directory_of
        self._positions = Positions(lineage, directory_of=directory_of)
        self.names: set[str] = set()
        """Of queries that ask what is in force, whether they run or not."""
        self._session: SparkSession | None = None
        self._pauser: Pauser | None = None
        self._paused = False

    def meet(self, session: SparkSession, pauser: Pauser) -> None:
        """Begin to have a session."""
        self._pauser = pauser
        pauser.want(self._paused)
        self._session = session
        self.log_level.meet(session)

    def asks(self, query: str) -> None:
        """Take note that a query asks what is in force, before it starts."""
        self.names.add(query)

    def asks_no_more(self, query: str) -> None:
        """Take note that a query of this name, which starts, does not."""
        self.names.discard(query)

    # --- what the message service asks ---

    def asking(self) -> frozenset[str]:
        """Return the queries that run and ask what is in force."""
        active = {query.name for query in self._progress.report().queries if query.active}
        return frozenset(active & self.names)

    def pause(self, wanted: bool) -> None:
        """Hold queries between two batches from now on, or let them go on."""
        self._paused = wanted
        if self._pauser is not None:
            self._pauser.want(wanted)

    def begin(self, state: State) -> None:
        """Do what is in force from before this process."""
        self.log_level.want(state.log_level)
        try:
            self._deadlines.run("setting the log level from before in Spark", self.log_level.notify)
        except Exception as error:  # whatever Spark says to it: what else is in force does not wait for that
            log.warning("control: set-log-level: %s", error, extra={"action": "control"})

    def batch_of(self, repository: SnapshotRepository, query: str, sequence: int) -> int | None:
        """Return the first committed batch of a query whose position is behind a message."""
        return self._positions.batch_of(repository, query, sequence)

    def oldest(self, repository: SnapshotRepository) -> int | None:
        """Return the oldest position that a batch of the lineage can still be asked for."""
        now = self._clock()
        if self._open_since is None and self.is_open():
            self._open_since = now
        is_settled = self._open_since is not None and now - self._open_since >= SELDOM_SECONDS
        here = frozenset(map(self._directory_of, tuple(self.names)))
        return self._positions.oldest(repository, here, AWAY_SECONDS if is_settled else math.inf)

    def awaits_batch(self, entry: Entry, account: Account, state: State) -> bool:
        """Return whether a message comes into force with a batch, and not with what the driver does for it."""
        if entry.type == PING:
            return not self.is_open() or bool(self.asking() - account.queries.keys())
        return entry.type in (SNAPSHOT, DUMP_STATE) and self._precedes_batches(account, state)

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        """Do the driver's part of a built-in message; return what came of it, None if it is not done yet."""
        if entry.type in (SNAPSHOT, DUMP_STATE):
            return self._take_snapshot(entry, account, state)
        if entry.type == PAUSE:
            return self._await_pause(repository, account, state)
        if entry.type == SET_LOG_LEVEL:
            # In the order of the log, whichever of their parts hangs or waits for a place.
            self.log_level.want(str(json.loads(entry.payload)["level"]).upper())
        try:
            what = f"Spark's part of {entry.type} (message {entry.sequence})"
            if not self._deadlines.run(what, lambda: self._notify_spark(entry)):
                return None
        except OverdueError as error:
            return failed(account, Reason.MESSAGE_TIMED_OUT, f"{error}.")
        except Exception as error:  # whatever Spark says to it
            return failed(account, Reason.SPARK_REFUSED, f"{type(error).__name__}: {error}")
        return dataclasses.replace(account, done=True)

    def _notify_spark(self, entry: Entry) -> bool:
        """Do what Spark is to do for a message, if anything; return whether there is a Spark to do it."""
        if entry.type == SET_LOG_LEVEL:
            return self.log_level.notify()
        if entry.type == CLEAR_CACHES:
            if self._session is None:
                return False
            self._session.catalog.clearCache()
        return True

    def _await_pause(self, repository: SnapshotRepository, account: Account, state: State) -> Account | None:
        if not state.paused:
            return dataclasses.replace(account, done=True, message=messages.RESUMED)
        held = self._pauser.held() if self._pauser is not None else None
        if held is None:
            return None
        if on := [query.name for query in self._progress.report().queries if query.active and query.continuous]:
            return failed(account, Reason.SPARK_REFUSED, query_messages.not_pausable(", ".join(map(repr, on))))
        # Spark reports a batch a moment after it is committed: the number could be one too low.
        batches = {name: self._positions.newest_batch(repository, name) for name in held}
        queries = {name: QueryAcknowledgement(batch, 1, 1) for name, batch in batches.items()}
        return dataclasses.replace(account, done=True, queries=queries)

    def _take_snapshot(self, entry: Entry, account: Account, state: State) -> Account | None:
        """Have a snapshot taken of exactly the batches with which the message came into force."""
        if self._precedes_batches(account, state):
            return None
        # A query that was held before the message came into force is in the snapshot with its newest batch.
        exact = {self._directory_of(name): said.batch for name, said in account.queries.items()}
        order = SnapshotOrder(snapshot_id(entry), manual=True, exact=exact)
        self._snapshots.give(SnapshotOrders(take=(order,)))
        report = next((report for report in self._snapshots.reports() if report.id == order.id), None)
        if report is None or report.state not in (SnapshotState.READY, SnapshotState.FAILED):
            return None
        if report.state is SnapshotState.FAILED:
            return failed(account, report.reason, report.message)
        results = {"snapshot": report.id, "manifest": report.manifest, "digest": report.digest}
        if entry.type == DUMP_STATE:
            results["format"] = str((_payload(entry) or {}).get("format", EXPORT_FORMATS[0]))
        return dataclasses.replace(account, done=True, results=results)

    def _precedes_batches(self, account: Account, state: State) -> bool:
        """Return whether there are to be batches first of which a snapshot is."""
        return not state.paused and (not self._queries_run() or bool(self.asking() - account.queries.keys()))

    def _queries_run(self) -> bool:
        """Return whether the program has started its queries: before, nobody asks who will take the message in."""
        return self.is_open() and any(query.active for query in self._progress.report().queries)


def snapshot_id(entry: Entry) -> str:
    """Return the id of the snapshot that a message asks for: the same one whenever it is asked."""
    if entry.origin:
        return f"control-{asked_id(entry)}"
    if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?", entry.id):
        return f"control-{entry.id}"
    return f"control-{hashlib.sha256(entry.id.encode()).hexdigest()[:32]}"


def failed(account: Account, reason: str, message: str) -> Account:
    """Return the account of a message whose driver's part came to nothing."""
    return dataclasses.replace(account, done=True, failed=True, reason=reason, message=without_shapes(message))


def _payload(entry: Entry) -> Any:
    return json.loads(entry.payload)
