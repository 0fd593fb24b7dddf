"""Makes the new lineage of a repartition from one that nobody writes any more. Does I/O.

The store copies the rollback snapshot, Spark repartitions the copy, and the state is read before and after. Only if
both are equal is the lineage declared whole. The old lineage is not changed.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate_spark.contract import repartition_messages as messages
from tidegate_spark.contract.object_paths import EMPTY_START, directory_of_query, left_after
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import (
    Repartition,
    RepartitionedQuery,
    find_obstacle,
    has_other_partitions,
    second_way,
)
from tidegate_spark.contract.snapshot_protocol import StateFacts
from tidegate_spark.exports import state_reader
from tidegate_spark.exports.tables import StoreMetadata
from tidegate_spark.process.faults.foreign_text import last_cause
from tidegate_spark.repartition import fingerprints
from tidegate_spark.repartition.errors import RepartitionError
from tidegate_spark.repartition.fingerprints import Contents
from tidegate_spark.snapshots import manifest, restore
from tidegate_spark.snapshots.checkpoint import layout as spark_layout
from tidegate_spark.snapshots.checkpoint.operator_files import STATE
from tidegate_spark.snapshots.checkpoint.query_logs import OFFSETS, newest_entry
from tidegate_spark.snapshots.checkpoint.reader import Layout
from tidegate_spark.snapshots.copying import USUAL, Copiers, Progress, in_parallel, list_keys
from tidegate_spark.snapshots.lineages import attempts, lineage_mark, upgrade_pin
from tidegate_spark.snapshots.manifest import Manifest, QueryAt
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, Target
from tidegate_spark.snapshots.service.operations import Carrier, state_facts
from tidegate_spark.storage import query_names
from tidegate_spark.storage.store import SnapshotError

log = logging.getLogger("tidegate")

_TRACKS_ROWS = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
"""Whether a store looks each key up before it is written, for its number of rows. Into an empty store that is a third
of the work for nothing: whoever loads such a state next counts its rows once (RocksDB.scala, SPARK-37224)."""


@dataclass
class Repartitioner:
    """Makes one lineage."""

    config: DriverConfig
    """Of the application, with the old lineage."""
    order: Repartition
    own: SnapshotRepository
    spark: Callable[[], SparkSession]
    """Starts Spark, or returns the session that runs; it reaches the storage."""
    spark_version: str
    check: Callable[[], None]
    """Raises if another one took the storage over."""
    report: Callable[[Progress], None] = lambda progress: None
    """Called with how many files are copied, of how many."""
    repartitioned: Callable[[int], None] = lambda rows: None
    """Called with how many rows are repartitioned and unchanged, after each query."""
    layout: Layout = spark_layout
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each part took."""
    _facts: dict[str, StateFacts] = field(default_factory=dict)
    _old_mark: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, RepartitionedQuery]:
        """Make the lineage; return its queries.

        Raises:
            RepartitionError: it cannot be made. What there is of it is nobody's.
            Exception: what the store's client raises, and what ``check`` does.
        """
        with self._timed("pin"):
            attempts.clear_earlier(self.own, self.order)
            # Of a number that nobody knew to be used: the status was lost.
            attempts.clear(self.own, self.order.lineage)
            self._refuse_used()
            made = self._pinned()
        log.info("the pin %s of lineage %d is whole", made.id, self.order.of_lineage, extra={"action": "repartition"})
        self._judge(made)
        with self._timed("copy"):
            self.check()
            attempts.begin(self.own, self.order)
            self._begin_lineage(made)
        log.info("lineage %d starts from a copy of it", self.order.lineage, extra={"action": "repartition"})
        done: dict[str, RepartitionedQuery] = {}
        for query, at in sorted(made.queries.items()):
            done[query] = self._repartition(query, at)
            self.repartitioned(sum(each.rows for each in done.values()))
        self.check()
        self._say_whole(made, done)
        return {made.queries[query].called(query): each for query, each in done.items()}

    def _refuse_used(self) -> None:
        """Refuse a number in which somebody ran: what says that it is being made would have all of it removed."""
        order = self.order
        there = next(iter(self.own.store.list(self.own.lineage_key(order.lineage) + "/")), None)
        if there is not None:
            message = messages.lineage_used(order.lineage, there.key)
            raise RepartitionError(Reason.STATE_UNREADABLE, message)

    # --- what it is made of ---

    def _pinned(self) -> Manifest:
        """Return the pin, completed if it was not; before, look whether each query ended at a batch's end."""
        order, config = self.order, dataclasses.replace(self.config, lineage=self.order.of_lineage)
        try:
            wanted = upgrade_pin.order_of(self.own, order.pin, order.of_lineage, order.image, self.layout)
            self._check_boundary(wanted.exact)
            self._old_mark = lineage_mark.read(self.own, order.of_lineage)
            carrier = Carrier(config, lambda: self.own, self.spark_version, self.layout)
            carrier.take(wanted, self.report)
            known = self.own.read()
            return manifest.read(self.own, order.pin, known)
        except SnapshotError as error:
            message = messages.not_pinned(order.of_lineage, str(error).rstrip("."))
            raise RepartitionError(Reason.STATE_UNREADABLE, message) from error

    def _check_boundary(self, batches: Mapping[str, int]) -> None:
        listings = self.own.checkpoints(self.order.of_lineage)
        started_empty = {directory_of_query(query) for query in listings if EMPTY_START in query}
        for query, listing in sorted(listings.items()):
            # A first batch counts, too: what it was to read is said there alone, and no new lineage has it.
            batch, newest = batches.get(query, -1), newest_entry(listing, OFFSETS)
            left = query in started_empty if batch < 0 else left_after(listing) >= batch
            # Nothing continues from the checkpoint of a query that starts empty, so nobody would run its last batch.
            if newest <= batch or EMPTY_START in query or left:
                continue
            begun = f"s3://{self.own.store.bucket}/{self._old_key(query, OFFSETS)}/{newest}"
            message = messages.batch_uncommitted(query_names.of_directory(self.own, query), newest, begun)
            raise RepartitionError(Reason.BATCH_UNCOMMITTED, message)

    def _old_key(self, query: str, folder: str) -> str:
        return self.own.lineage_key(self.order.of_lineage, query, folder)

    def _judge(self, made: Manifest) -> None:
        self._facts = {query: state_facts(at.facts) for query, at in made.queries.items()}
        obstacle = find_obstacle(self._facts, self.order.partitions, self.spark_version)
        if obstacle is not None:
            raise RepartitionError(obstacle.what, obstacle.message)

    def _begin_lineage(self, made: Manifest) -> None:
        origin, holder = Origin(self.own, made.id), attempts.holder_of(self.order.lineage)
        try:
            # Queries keep their ids: no number of a batch comes again.
            restore.restore(origin, Target(self.own, self.order.lineage), holder, Copiers(USUAL.number, self.report))
        except SnapshotError as error:
            message = messages.lineage_not_started(self.order.lineage, made.id, str(error).rstrip("."))
            raise RepartitionError(Reason.STATE_UNREADABLE, message) from error
        finally:
            restore.release(origin, holder)

    # --- one query ---

    def _repartition(self, query: str, at: QueryAt) -> RepartitionedQuery:
        facts = state_facts(at.facts)
        if not has_other_partitions(facts, self.order.partitions):
            return RepartitionedQuery(at.batch, partitions=facts.partitions)
        place = f"s3a://{self.own.store.bucket}/{self.own.lineage_key(self.order.lineage, query)}"
        with self._timed("start"):
            spark = self.spark()
        details = (query, facts.partitions, self.order.partitions)
        log.info("query %r: state from %d to %d partitions", *details, extra={"action": "repartition"})
        self.check()
        stores, before = self._repartitioned(spark, place, at, facts.partitions)
        self.check()
        with self._timed("verify"):
            self._remove_superseded(query, at.batch + 1)
            # The stores are the same ones. One that Spark lost cannot be read, which shows, too.
            after = self._read(session_for(spark, at), place, at.batch + 1, self.order.partitions, stores)
        wrong = fingerprints.difference(before, after)
        if wrong:
            message = messages.state_differs(at.called(query), wrong)
            raise RepartitionError(Reason.STATE_DIFFERS, message)
        log.info("query %r: %d rows, the same as before", query, after.rows, extra={"action": "repartition"})
        return RepartitionedQuery(at.batch, after.rows, facts.partitions)

    def _repartitioned(
        self, spark: SparkSession, place: str, at: QueryAt, partitions: int
    ) -> tuple[list[StoreMetadata], Contents]:
        """Have Spark repartition the state; return what it was, read meanwhile: both read the old batch alone."""

        def read() -> tuple[list[StoreMetadata], Contents]:
            session = session_for(spark, at)
            stores = self._asked(partial(state_reader.stores_of, session, place))
            return stores, self._read(session, place, at.batch, partitions, stores)

        with ThreadPoolExecutor(1, thread_name_prefix="fingerprints") as beside:
            reading = beside.submit(read)
            with self._timed("spark"):
                session = session_for(spark, at)
                self._asked(partial(_repartition, session, place, self.order.partitions))
            with self._timed("verify"):
                stores, before = reading.result()
        for store, rows in sorted(before.misplaced.items(), key=str):
            message = messages.misplaced(rows, store)
            raise RepartitionError(Reason.STATE_IN_ONE_PLACE, message)
        return stores, before

    def _read(
        self, session: SparkSession, place: str, batch: int, partitions: int, stores: list[StoreMetadata]
    ) -> Contents:
        session.conf.set("spark.sql.shuffle.partitions", "1")
        found: Contents = self._asked(partial(fingerprints.read_contents, session, place, batch, partitions, stores))
        return found

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception as error:
            if not isinstance(error, PySparkException) and not type(error).__module__.startswith("py4j"):
                raise
            # A storage that is away, or another one's by now, has Spark fail, too, and says less about the state.
            self.check()
            text = last_cause(error).rstrip(".")
            # What the operator could not know of before, such as a variable of a type that Spark does not take along.
            message = f"Spark cannot repartition the state: {text}.{second_way(self._facts, self.order.partitions)}"
            raise RepartitionError(Reason.SPARK_FAILED, message) from error

    def _remove_superseded(self, query: str, batch: int) -> None:
        """Remove what only batches before ``batch`` need of the state.

        Spark's reader takes each directory for a partition, so with fewer partitions it could not read the rest. That a
        snapshot can be taken of what is left is found out on the way.
        """
        root = self.own.lineage_key(self.order.lineage, query) + "/"
        listing = {key[len(root) :]: entry for key, entry in list_keys(self.own.store, root).items()}
        each = partial(in_parallel, USUAL)
        try:
            read, read_head = self.own.reader(listing), self.own.head_reader(listing)
            needed = self.layout.needed_files(listing, read, batch, each, read_head)
        except SnapshotError as error:
            message = messages.no_whole_checkpoint(query, error)
            raise RepartitionError(Reason.STATE_DIFFERS, message) from error
        kept = {file.path for file in needed.files}
        self.own.store.delete(
            [entry.key for path, entry in listing.items() if path.startswith(f"{STATE}/") and path not in kept]
        )

    # --- the end ---

    def _say_whole(self, made: Manifest, done: Mapping[str, RepartitionedQuery]) -> None:
        extra = {query: each.batch + 1 for query, each in done.items() if self._is_repartitioned(made, query)}
        last = {query: at.batch for query, at in made.queries.items()}
        mark = {
            "snapshot": made.id,
            "origin": self.config.storage.uri,
            "batches": {query: extra.get(query, each.batch) for query, each in done.items()},
            **lineage_mark.after_repartition(self._old_mark, last, extra),
            # The pin goes with the next upgrade; what it follows is for people.
            "parent": made.parent,
            "released": True,
        }
        # That it is being made is still said: until a driver runs in it, it is nobody's (see attempts).
        lineage_mark.put(self.own, self.order.lineage, mark)

    def _is_repartitioned(self, made: Manifest, query: str) -> bool:
        return has_other_partitions(state_facts(made.queries[query].facts), self.order.partitions)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[part] = round(self.seconds.get(part, 0.0) + time.monotonic() - began, 3)


def session_for(spark: SparkSession, at: QueryAt) -> SparkSession:
    """Return a session of its own in which a query's state is repartitioned and read."""
    session = state_reader.session_at(spark, at)
    session.conf.set(_TRACKS_ROWS, "false")
    return session


def _repartition(session: SparkSession, place: str, partitions: int) -> None:
    session._streamingCheckpointManager.repartition(place, partitions)
