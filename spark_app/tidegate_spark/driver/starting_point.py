"""Fills a lineage from a snapshot, of this application or another one. I/O by the repositories.

A rollback snapshot that is not complete is completed first, from its old lineage. A mark beside the lineage says that
it was filled: without it no query starts, and with it nothing is filled again.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.json_form import from_stored
from tidegate_spark.contract.protocol import (
    APP_FILE,
    LINEAGE_PREFIX,
    OPENS_EMPTY,
    DriverConfig,
    Fault,
    StartFrom,
    to_json,
    topic_offsets,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control_log import snapshot_state
from tidegate_spark.driver.launch_state import as_fault, reason_of
from tidegate_spark.driver.origin_credentials import credentials_of_origin, is_apart
from tidegate_spark.process import start_messages as messages
from tidegate_spark.queries.sinks import output_registry
from tidegate_spark.snapshots import restore
from tidegate_spark.snapshots.checkpoint import layout as spark_layout
from tidegate_spark.snapshots.checkpoint.reader import Layout
from tidegate_spark.snapshots.copying import USUAL, Copiers, Progress
from tidegate_spark.snapshots.lineages import attempts, lineage_mark, upgrade_pin
from tidegate_spark.snapshots.manifest import Manifest
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.snapshots.repository import CatalogContendedError, SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, Target
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.claim.claimed import Claim, Known
from tidegate_spark.storage.claim.claiming import BehindError
from tidegate_spark.storage.s3_client import Credentials, FaultError
from tidegate_spark.storage.store import SnapshotError, naming_newer

LOG_SECONDS = 10.0
"""Between two lines about how far it is."""
LONGEST_RELEASE_PAUSE = 600.0

log = logging.getLogger("tidegate")


class StoppedError(Exception):
    """The driver was asked to stop meanwhile; the next one goes on."""


@dataclass(frozen=True)
class Filler:
    """Fills one lineage."""

    config: DriverConfig
    start_from: StartFrom
    own: SnapshotRepository
    origin: SnapshotRepository
    stopping: threading.Event
    notice: Callable[[str, str], None]
    """Gives the user a notice once: reason and message."""
    copiers: Copiers = USUAL
    layout: Layout = spark_layout
    spark_version: str = ""
    forgotten: bool = False
    """Whether the operator knows no more what the lineage is to start from, so that the storage has said it."""
    release_pause: float = 30.0
    """Seconds until the snapshot is released once more, if that failed; they grow."""

    def fill(self) -> None:
        """Fill the lineage, if it was not filled before. Try once; what was done is not done again.

        Raises:
            FaultError: SNAPSHOT_UNUSABLE if it cannot be, a storage's fault if that does not answer.
            BehindError: it was filled, and not with this.
            StoppedError: the driver is to stop.
        """
        try:
            self._fill_or_go_back(what_there_is(self.own, self.start_from))
        except CatalogContendedError as error:
            raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, f"{error}.")) from error
        except SnapshotError as error:
            why = messages.cannot_start_from(self._words, self._snapshot, self._asked, str(error).rstrip("."))
            message = messages.nothing_started(why)
            raise FaultError(Fault(reason_of(error, Reason.SNAPSHOT_UNUSABLE), message)) from error
        except (FaultError, StoppedError):
            raise
        except Exception as error:
            fault = self._fault_of(error)
            if fault is None:
                raise
            raise FaultError(fault) from error

    # --- the work ---

    def _fill_or_go_back(self, start_from: StartFrom) -> None:
        """Fill the lineage; without offsets that fit no topic, if nobody knows any more that they were asked for."""
        try:
            dataclasses.replace(self, start_from=start_from)._fill()
        except restore.UnreadTopicError as error:
            if not self.forgotten or not start_from.lineage:
                raise
            log.warning("%s is filled as for a rollback: %s", self._words, error, extra={"action": "fill"})
            dataclasses.replace(self, start_from=dataclasses.replace(start_from, offsets=""))._fill()

    def _fill(self) -> None:
        # Of a number that nobody knew to be used: the status was lost.
        attempts.clear(self.own, self.config.lineage)
        mark = lineage_mark.read(self.own, self.config.lineage)
        if not mark:
            mark = self._filled()
        elif mark["snapshot"] not in self._expected:
            known = Known(self.config.epoch, self.config.lineage, otherwise=True)
            raise BehindError(f"{self.config.storage.uri}/{LINEAGE_PREFIX}", self.config, known)
        self._release(mark)

    @property
    def _expected(self) -> frozenset[str]:
        """Ids of the snapshots of which the lineage may have been filled."""
        return frozenset({self.start_from.snapshot, *(earlier.snapshot for earlier in self.start_from.otherwise)})

    @property
    def _asked(self) -> str:
        if self.config.rehearsal is not None:
            return ""
        if self._is_rollback:
            return ", to which an upgrade is rolled back"
        return f" ({self._field})"

    @property
    def _is_rollback(self) -> bool:
        return self.start_from.lineage > 0 and not self.start_from.offsets

    @property
    def _field(self) -> str:
        """The field of the spec by which this is no rollback."""
        return "spec.upgrade.startingOffsets" if self.start_from.lineage else "spec.startFrom"

    @property
    def _words(self) -> str:
        return f"Lineage {self.config.lineage} of {self.config.namespace}/{self.config.app}"

    @property
    def _snapshot(self) -> str:
        return f"snapshot {self.start_from.snapshot} of {self.start_from.storage.uri}"

    def _filled(self) -> dict[str, Any]:
        log.info("%s is filled from %s", self._words, self._snapshot, extra={"action": "fill"})
        began = logged = time.monotonic()

        def report(progress: Progress) -> None:
            nonlocal logged
            if self.stopping.is_set():
                raise StoppedError
            if time.monotonic() - logged >= LOG_SECONDS:
                logged = time.monotonic()
                details = (progress.files, progress.of_files, progress.bytes, progress.of_bytes)
                log.info("filling: %d of %d files, %d of %d bytes", *details, extra={"action": "fill"})

        if self.start_from.lineage:
            # The next driver may not know it: the operator's record can be lost, and the fence is taken.
            self.own.store.put(_intent_key(self.own, self.config.lineage), to_json(self.start_from).encode())
            self._complete(report)
        offsets = topic_offsets(self.start_from.offsets)
        origin, target = self._origin, Target(self.own, self.config.lineage, self.start_from.fork, offsets)
        copiers = Copiers(self.copiers.number, report)
        made = restore.restore(origin, target, self.start_from.holder, copiers)
        snapshot_state.start_from(self.own, made.control, self.config.lineage, own=self._is_own)
        if not self.start_from.lineage and self.config.rehearsal is None:
            output_registry.take_along(self.origin, self.own)
        batches = {name: query.batch for name, query in sorted(made.queries.items())}
        mark = {
            "snapshot": made.id,
            "origin": self.start_from.storage.uri,
            "batches": batches,
            # The pin of an upgrade goes with the next one; what it follows is for people.
            "parent": made.parent if self.start_from.lineage else lineage_mark.name_of_foreign(made),
            "released": False,
        }
        self._put_mark(mark)
        seconds = time.monotonic() - began
        log.info("filled in %.1f s: %d files, batches %s", seconds, len(made.files), batches, extra={"action": "fill"})
        self._publish_start(made)
        return mark

    @property
    def _is_own(self) -> bool:
        """Whether the snapshot is of this application, in its own place.

        A rollback's always is, also where ``spec.storage.endpoint`` was edited since it was recorded.
        """
        is_own_pin = self.start_from.lineage > 0
        return is_own_pin or self.start_from.storage.is_same_place(self.config.storage)

    def _complete(self, report: Callable[[Progress], None]) -> None:
        """Finish the pin; one that is complete is just found."""
        of, lineage = self.start_from, self.start_from.lineage
        order = upgrade_pin.order_of(self.own, of.snapshot, lineage, of.image, self.layout)
        config = dataclasses.replace(self.config, lineage=lineage)
        carrier = Carrier(config, lambda: self.own, self.spark_version, self.layout, copiers=self.copiers)
        carrier.take(order, report)

    def _put_mark(self, mark: dict[str, Any]) -> None:
        lineage_mark.put(self.own, self.config.lineage, mark)

    @property
    def _origin(self) -> Origin:
        return Origin(self.origin, self.start_from.snapshot)

    def _publish_start(self, made: Manifest) -> None:
        queries = {query.called(name): query for name, query in sorted(made.queries.items())}
        after = ", ".join(f"{name!r} after batch {query.batch}" for name, query in queries.items())
        topics = ", ".join(map(repr, sorted(topic_offsets(self.start_from.offsets))))
        field = self._field if self.start_from.lineage else f"{self._field}.startingOffsets"
        self.notice(Reason.STARTED_FROM_SNAPSHOT, messages.started_from(self._snapshot, after, topics, field))
        for name, query in queries.items():
            partitions = query.facts.get("partitions")
            if query.facts.get("stateless") or not partitions or partitions == self.config.state_partitions:
                continue
            message = messages.partitions_kept(name, partitions, self.config.state_partitions)
            self.notice(Reason.STATE_PARTITIONS_KEPT, message)

    def _release(self, mark: dict[str, Any]) -> None:
        """Release the snapshot, of which the lineage has everything; a failed release is retried later."""
        if mark.get("released"):
            return
        if self._is_released():
            self._put_mark({**mark, "released": True})
        else:
            threading.Thread(target=self._release_later, name="release", daemon=True).start()

    def _release_later(self) -> None:
        pause = self.release_pause
        # The mark is left to the next start, which finds nothing to release.
        while not self.stopping.wait(pause) and not self._is_released():
            pause = min(2 * pause, LONGEST_RELEASE_PAUSE)

    def _is_released(self) -> bool:
        try:
            restore.release(self._origin, self.start_from.holder)
        except Exception as error:  # whatever it is: nothing here depends on it
            log.warning("%s is not released: %s", self._snapshot, error, extra={"action": "fill"})
            return False
        return True

    def _fault_of(self, error: Exception) -> Fault | None:
        """Return whose fault an exception of the store's client is, None if no storage's."""
        secret = self.config.credentials_secret
        try:
            self.origin.read()
        except Exception as of_origin:
            reached_by = self.start_from.credentials_secret or secret
            fault = store.fault_of(of_origin, self.start_from.storage, reached_by)
            if fault is not None:
                whose = "to which is rolled back" if self._is_rollback else f"in {self._field}"
                return Fault(fault.reason, messages.origin_not_reached(whose, fault.message))
        return store.fault_of(error, self.config.storage, secret)


def what_there_is(own: SnapshotRepository, start_from: StartFrom) -> StartFrom:
    """Return what a lineage is to start from: instead of the end of a lineage that was never filled, its own start.

    A rollback may be followed by another version before a process of it began. That version's own rollback would start
    from the end of a lineage in which there never was anything, or only half of it.

    Args:
        own: the application's.
        start_from: what the operator says, which does not know of each lineage whether it was filled.

    Raises:
        SnapshotError: what should say that a lineage was filled says nothing.
    """
    of = start_from
    for earlier in start_from.otherwise:
        if lineage_mark.read(own, of.lineage):
            break
        details = (of.lineage, of.snapshot, earlier.snapshot)
        log.info("lineage %d was never filled: instead of its pin %s it is %s", *details, extra={"action": "fill"})
        of = dataclasses.replace(of, snapshot=earlier.snapshot, holder=earlier.holder, lineage=earlier.lineage)
    return of


def fill_lineage(
    config: DriverConfig,
    credentials: Credentials | None,
    stopping: threading.Event,
    notice: Callable[[str, str], None],
    spark_version: str = "",
) -> None:
    """Let the lineage of ``config`` start from the snapshot that it names, or that the storage does. Try once.

    Raises:
        FaultError, StoppedError: see :meth:`Filler.fill`.
    """
    forgotten = config.start_from is None
    start_from = config.start_from or find_left_to_fill(config, credentials)
    if start_from is None:
        return
    config, own = dataclasses.replace(config, start_from=start_from), reach_repository(config.storage, credentials)
    try:
        reaching = credentials_of_origin(start_from, credentials)
    except FaultError:
        if not _was_filled(own, config):
            raise
        # Nothing is needed of the snapshot any more, and its Secret may go.
        return
    origin = reach_repository(start_from.storage, reaching, apart=is_apart(credentials, reaching))
    filler = Filler(config, start_from, own, origin, stopping, notice, spark_version=spark_version)
    dataclasses.replace(filler, forgotten=forgotten).fill()


def _was_filled(own: SnapshotRepository, config: DriverConfig) -> bool:
    try:
        return lineage_mark.is_there(own, config.lineage)
    except Exception as error:
        raise as_fault(config, error) from error


def _intent_key(own: SnapshotRepository, lineage: int) -> str:
    return own.key(LINEAGE_PREFIX, f"{lineage}.begin")


def start_empty(own: SnapshotRepository, lineage: int) -> bool:
    """Note beside a lineage that it starts empty; return whether an attempt at a repartition had left something.

    A copy of the storage that lacks the launch in its claim shows so that somebody ran here, in a later history.
    Only a process that has the fence, and has started no query yet, may call it.
    """
    had_left = attempts.clear(own, lineage)
    own.store.put(own.key(LINEAGE_PREFIX, f"{lineage}.empty"), b"{}")
    return had_left


def left_to_fill(own: SnapshotRepository, lineage: int) -> StartFrom | None:
    """Return what a lineage is to start with and was not filled with, None if there is no such thing.

    By the claim, which says so with the number itself, or else by what a rollback wrote down when it began to fill it.
    Only a process that has the fence, is to run in the lineage, and has started no query yet, may call it.

    Raises:
        SnapshotError: what is there says nothing.
    """
    if not attempts.take_over(own, lineage):
        raise SnapshotError(f"lineage {lineage} was to get state of other partitions, and was not finished")
    claimed = own.store.get(own.key(APP_FILE))
    opened = from_stored(Claim, claimed[0]).opened if claimed is not None else None
    begins = opened.startFrom if opened is not None and opened.lineage == lineage else None
    found = own.store.get(_intent_key(own, lineage)) if begins is None else None
    if (begins is None and found is None) or lineage_mark.is_there(own, lineage):
        return None
    if found is None:
        return begins
    try:
        with naming_newer(_intent_key(own, lineage)):
            return from_stored(StartFrom, found[0])
    except ValueError as error:
        raise SnapshotError(f"{_intent_key(own, lineage)} does not name what the lineage starts from") from error


def find_left_to_fill(config: DriverConfig, credentials: Credentials | None) -> StartFrom | None:
    """Return what :func:`left_to_fill` does, of the lineage of ``config``. Try once.

    Raises:
        FaultError: SNAPSHOT_UNUSABLE, or what is wrong with the storage.
    """
    own = reach_repository(config.storage, credentials)
    try:
        if config.opening == OPENS_EMPTY:
            start_empty(own, config.lineage)
        return left_to_fill(own, config.lineage)
    except SnapshotError as error:
        reason = reason_of(error, Reason.SNAPSHOT_UNUSABLE)
        raise FaultError(Fault(reason, messages.nothing_started_after(error))) from error
    except Exception as error:
        raise as_fault(config, error) from error
