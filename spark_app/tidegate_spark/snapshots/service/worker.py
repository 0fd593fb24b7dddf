"""Carries out orders about snapshots one after the other, with retries. I/O by the operations.

What may pass is retried with back-off; what cannot is given up, and its beginnings are removed. A process that ends
leaves everything as it is, and the next one gets the order again.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    AdoptOrder,
    ExportOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
    VerifyOrder,
)
from tidegate_spark.snapshots.copying import Progress
from tidegate_spark.snapshots.service import queue as book
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_spark.snapshots.service.order_faults import Trouble, trouble_of
from tidegate_spark.snapshots.service.queue import Job, OrderQueue, Task
from tidegate_spark.snapshots.service.snapshot_messages import RESTORE_FILES

LOG_SECONDS = 10.0
"""Between two lines about how far a copy is."""
POLL_SECONDS, POLL_SECONDS_DAMAGED = 300.0, 60.0
"""Between two looks whether the catalog changed; and of what is damaged, whether somebody restored it."""
MOST_DAMAGED = 100
"""Reported at a time; which cannot be had any more a person finds out with the first of them."""

log = logging.getLogger("tidegate")


class EndedError(Exception):
    """The work is not wanted any more: the process ends, or the snapshot is to be disposed of."""


class Observer(Protocol):
    """Called with the results of orders, for metrics."""

    def copied(self, size: int) -> None:
        """Take note of bytes that were copied."""

    def ended(self, report: SnapshotReport) -> None:
        """Take note of an order that has ended."""

    def newest(self, created: float | None) -> None:
        """Take note of when the newest snapshot was begun, None if there is none."""


class Nobody:
    """Listens to nothing."""

    def copied(self, size: int) -> None:
        """Do nothing."""

    def ended(self, report: SnapshotReport) -> None:
        """Do nothing."""

    def newest(self, created: float | None) -> None:
        """Do nothing."""


class SnapshotWorker:
    """The orders of one process and who carries them out."""

    def __init__(
        self,
        carrier: Carrier,
        runs: bool,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is done before :meth:`run` or :meth:`attempt_next`.

        Args:
            carrier: does the work.
            runs: whether the application runs, and may commit a first batch.
            observer: called with the results of orders.
            clock: for pauses and durations.
        """
        self._carrier, self._runs, self._observer, self._clock = carrier, runs, observer or Nobody(), clock
        self._store, self._wake, self._stopping = OrderQueue(), threading.Event(), threading.Event()
        self._copied = Progress()
        self._logged, self._looked = 0.0, float("-inf")

    # --- from outside ---

    def give(self, orders: SnapshotOrders) -> None:
        """Take orders in; returns at once.

        Raises:
            ValueError: they cannot be meant.
        """
        self._store.give(orders, self._clock())
        self._wake.set()
        if self._runs and any(order.exact for order in orders.take) and self._store.has_urgent():
            # Not when its turn comes: with few batches retained, the batch would be gone by then.
            threading.Thread(target=self._pin, name="snapshot-pin", daemon=True).start()

    def _pin(self) -> None:
        try:
            self._carrier.pin()
        except Exception as error:  # whatever it is: the attempt itself shows it
            log.warning("Spark may clean up a batch that is to be kept: %s", error, extra={"action": "snapshot"})

    def stop(self) -> None:
        """End the work that is under way at its next step, and begin none."""
        self._stopping.set()
        self._wake.set()

    @property
    def is_stopping(self) -> bool:
        """Whether no work is begun any more."""
        return self._stopping.is_set()

    def reports(self) -> tuple[SnapshotReport, ...]:
        """Return how far each order is; before them, which complete snapshots were found to lack files.

        ``seconds`` of those is how long ago that was.
        """
        damaged, ago = self._carrier.damaged, self._clock() - self._looked
        orders = [it for it in self._store.reports() if it.id not in damaged or it.state is not SnapshotState.READY]
        ordered = {it.id for it in orders}
        found = [
            SnapshotReport(
                name, SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED, f"{message} {RESTORE_FILES}", seconds=ago
            )
            for name, message in list(damaged.items())[:MOST_DAMAGED]
            if name not in ordered
        ]
        return (*found, *orders)

    # --- the work ---

    def run(self) -> None:
        """Carry orders out until :meth:`stop`."""
        while not self._stopping.is_set():
            self._wake.clear()
            self.check()
            pause = self.attempt_next()
            if pause != 0:
                self._wake.wait(POLL_SECONDS if pause is None else min(pause, POLL_SECONDS))

    def check(self) -> None:
        """Look after the snapshots that there are, unless that was done a short while ago."""
        now = self._clock()
        if now - self._looked < (POLL_SECONDS_DAMAGED if self._carrier.damaged else POLL_SECONDS):
            return
        self._looked = now
        try:
            self._carrier.check()
        except Exception as error:  # whatever it is: the next order shows it, or it passes
            log.info("the snapshots that there are could not be listed: %s", error, extra={"action": "snapshot"})
        self._observer.newest(self._carrier.newest)

    def attempt_next(self) -> float | None:
        """Make the attempt that is due; return the seconds until the next one is, None if every order has ended."""
        job = self._store.next(self._clock())
        if job is not None and job.due <= self._clock():
            self._attempt(job)
            job = self._store.next(self._clock())
        return None if job is None else max(0.0, job.due - self._clock())

    def _attempt(self, job: Job) -> None:
        job = book.begun(job, self._clock())
        try:
            after = self._after(job)
        except EndedError:
            log.info("snapshot %s: stopped; what was copied stays of use", job.id, extra={"action": "snapshot"})
            return
        except Exception as error:
            after = self._after_failure(job, error)
        self._show(after)
        if after.ended:
            self._observer.ended(after.report)
        self._observer.newest(self._carrier.newest)

    def _after(self, job: Job) -> Job:
        """Return what became of a job; raises what keeps it from being done."""
        if job.holders:
            self._carrier.release(job.id, job.holders)
        if job.verdict is not None:
            if job.order is not None:
                self._carrier.abandon(job.order)
                if self._runs and not self._store.has_urgent(job):
                    self._carrier.unpin()
            return book.failed(job, job.verdict, self._clock())
        return book.at(job, self._carry_out(job), self._clock())

    def _carry_out(self, job: Job) -> SnapshotReport:
        if job.order is not None:
            return self._take(job, job.order)
        if isinstance(job.errand, AdoptOrder):
            return self._carrier.adopt(job.errand)
        if isinstance(job.errand, VerifyOrder):
            return self._carrier.verify(job.errand, self._reporter(job))
        if isinstance(job.errand, ExportOrder):
            return self._carrier.export(job.errand, self._reporter(job))
        if job.task is Task.RELEASE:
            return SnapshotReport(job.id, SnapshotState.RELEASED)
        self._carrier.dispose(job.id)
        return SnapshotReport(job.id, SnapshotState.DISPOSED)

    def _take(self, job: Job, order: SnapshotOrder) -> SnapshotReport:
        report = self._reporter(job)
        # Otherwise a newer batch will do, and needs no pin.
        pin = self._runs and (job.is_exact or Reason.CLEANED_TOO_FAST in job.tries)
        return self._carrier.take(order, report, pin, lambda: self._store.has_urgent(job))

    def _reporter(self, job: Job) -> Callable[[Progress], None]:
        """Return what a job, which begins now, reports its progress to."""
        self._copied, self._logged = Progress(), self._clock()
        copying = SnapshotReport(job.id, SnapshotState.COPYING)
        self._store.put(dataclasses.replace(job, report=copying))

        def report(progress: Progress) -> None:
            self._go_on(job, copying, progress)

        return report

    def _go_on(self, job: Job, copying: SnapshotReport, progress: Progress) -> None:
        """Show how far a copy is; raise EndedError if it is not wanted any more."""
        again = progress.files <= self._copied.files
        self._observer.copied(progress.bytes - (0 if again else self._copied.bytes))
        self._copied = progress
        now = self._clock()
        perishes = not job.is_exact and self._store.has_urgent_due(now)
        if self._stopping.is_set() or not self._store.is_wanted(job) or perishes:
            raise EndedError
        self._store.put(book.at(job, dataclasses.replace(copying, **vars(progress)), now))
        if now - self._logged >= LOG_SECONDS:
            self._logged = now
            details = (job.id, progress.files, progress.of_files, progress.bytes, progress.of_bytes)
            log.info("snapshot %s: %d of %d files, %d of %d bytes", *details, extra={"action": "snapshot"})

    def _after_failure(self, job: Job, error: Exception) -> Job:
        config, now = self._carrier.config, self._clock()
        trouble = trouble_of(error, config.storage, config.credentials_secret, runs=self._runs)
        if trouble.reason not in job.tries:
            _log_trouble(job, trouble, error)
        return book.put_off(job, trouble, now)

    def _show(self, job: Job) -> None:
        self._store.put(job)
        report = job.report
        if job.ended:
            batches = {name: pin.batch for name, pin in report.queries.items()}
            details = (
                job.id,
                report.state.value,
                report.seconds,
                report.files,
                report.bytes,
                report.new_bytes,
                batches,
            )
            extra = {"action": "snapshot", "reason": report.reason}
            log.info(
                "snapshot %s: %s after %.1f s, %d files, %d bytes, %d of them new, batches %s", *details, extra=extra
            )


def _log_trouble(job: Job, trouble: Trouble, error: Exception) -> None:
    extra = {"action": "snapshot", "reason": trouble.reason}
    unforeseen = error if trouble.reason is Reason.INTERNAL_ERROR else None
    log.warning("snapshot %s: %s", job.id, trouble.message, extra=extra, exc_info=unforeseen)
