"""The queue of orders about snapshots, with the progress of each. Thread safe, no I/O.

A repeated order is entered once. Disposing of a snapshot replaces taking it, never the reverse.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Union

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    AdoptOrder,
    ExportOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
    VerifyOrder,
    export_format,
)
from tidegate_spark.snapshots.catalog import is_id
from tidegate_spark.snapshots.service import snapshot_messages as messages
from tidegate_spark.snapshots.service.order_faults import Trouble

ENDED = frozenset(
    (
        SnapshotState.READY,
        SnapshotState.FAILED,
        SnapshotState.DISPOSED,
        SnapshotState.RELEASED,
        SnapshotState.VERIFIED,
        SnapshotState.EXPORTED,
    )
)
"""Nothing more comes of an order that is there."""
KEPT = 20
"""So many ended orders are kept beside those that were given last."""
LONGEST_PAUSE_SECONDS = 30.0
"""Between two attempts."""
NOT_BEGUN = messages.NOT_BEGUN


Errand = Union[AdoptOrder, VerifyOrder, ExportOrder]  # noqa: UP007 - evaluated here, and newer than the Python of Spark images


class Task(Enum):
    """What an order asks for."""

    TAKE = "take"
    DISPOSE = "dispose of"
    RELEASE = "release"
    ERRAND = "see to"


@dataclass(frozen=True)
class Job:
    """One order on its way."""

    number: int
    """In the order in which they came."""
    report: SnapshotReport
    task: Task
    order: SnapshotOrder | None = None
    """Of one that is to be taken, and of no other."""
    holders: tuple[str, ...] = ()
    """Who does not need it any more, whatever the catalog says."""
    errand: Errand | None = None
    """What else is asked for than to take one or to let it go."""
    due: float = 0.0
    """When the next attempt is to be; as all times here in seconds of one clock."""
    began: float | None = None
    """The first attempt."""
    tries: Mapping[Reason, int] = field(default_factory=dict)
    verdict: Trouble | None = None
    """Why it was given up; what was begun is still to be disposed of."""

    @property
    def id(self) -> str:
        """The snapshot's."""
        return self.report.id

    @property
    def is_exact(self) -> bool:
        """Whether a batch is wanted by its number."""
        return self.order is not None and bool(self.order.exact)

    @property
    def ended(self) -> bool:
        """Whether nothing more is done."""
        return self.report.state in ENDED


class OrderQueue:
    """All of them."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._count = 0

    def give(self, orders: SnapshotOrders, now: float) -> None:
        """Enter what is not known yet.

        Raises:
            ValueError: an order is none that can be carried out, nothing is entered then.
        """
        check_orders(orders)
        with self._lock:
            for order in orders.take:
                if order.id not in self._jobs:
                    self._enter(order.id, now, Task.TAKE, order=order)
            errands: list[Errand] = [*orders.adopt, *orders.verify, *orders.export]
            for errand in errands:
                if errand.id not in self._jobs:
                    self._enter(errand.id, now, Task.ERRAND, errand=errand)
            ends = self._enter_ends(orders, now)
            self._forget({*(order.id for order in orders.take), *ends})

    def _enter_ends(self, orders: SnapshotOrders, now: float) -> set[str]:
        """Enter what is to be disposed of or let go; return all of it, known or not."""
        released: dict[str, tuple[str, ...]] = {}
        for release in orders.release:
            released[release.id] = (*released.get(release.id, ()), release.holder)
        ends = {*orders.dispose, *released}
        for name in orders.dispose:
            known, holders = self._jobs.get(name), released.pop(name, ())
            if known is None or known.task is not Task.DISPOSE or not set(holders) <= set(known.holders):
                self._enter(name, now, Task.DISPOSE, holders=holders)
        for name, holders in released.items():
            if name not in self._jobs:
                self._enter(name, now, Task.RELEASE, holders=holders)
        return ends

    def _enter(  # noqa: PLR0913 - one for each kind of order
        self,
        name: str,
        now: float,
        task: Task,
        *,
        order: SnapshotOrder | None = None,
        holders: tuple[str, ...] = (),
        errand: Errand | None = None,
    ) -> None:
        self._count += 1
        report = SnapshotReport(name, SnapshotState.WAITING, message=NOT_BEGUN)
        # Moved to the end, if it exists.
        self._jobs.pop(name, None)
        self._jobs[name] = Job(self._count, report, task, order, holders, errand, now)

    def _forget(self, given: Iterable[str]) -> None:
        ended = [name for name, job in self._jobs.items() if job.ended and name not in given]
        for name in ended[:-KEPT]:
            del self._jobs[name]

    def next(self, now: float) -> Job | None:
        """Return what is to be done first, at its time; None if all have ended."""
        with self._lock:
            waiting = [job for job in self._jobs.values() if not job.ended]
        # Exact batches first: Spark may clean them up.
        due = [job for job in waiting if job.due <= now and job.is_exact]
        return min(due or waiting, key=lambda job: (job.due, job.number), default=None)

    def has_urgent(self, beside: Job | None = None) -> bool:
        """Return whether an order is open for a batch that must be this one, and so perishes; not ``beside``."""
        with self._lock:
            open_ones = [job for job in self._jobs.values() if job.is_exact and not job.ended and job.verdict is None]
            return any(beside is None or job.number != beside.number for job in open_ones)

    def has_urgent_due(self, now: float) -> bool:
        """Return whether such an order could be begun now."""
        job = self.next(now)
        return job is not None and job.is_exact and job.due <= now

    def is_wanted(self, job: Job) -> bool:
        """Return whether a job is still to be done: it may have given way to another one."""
        with self._lock:
            known = self._jobs.get(job.id)
            return known is not None and known.number == job.number

    def put(self, job: Job) -> None:
        """Enter how far a job is, if it is still to be done."""
        with self._lock:
            known = self._jobs.get(job.id)
            if known is not None and known.number == job.number:
                self._jobs[job.id] = job

    def reports(self) -> tuple[SnapshotReport, ...]:
        """Return how far each is, the oldest first."""
        with self._lock:
            return tuple(job.report for job in self._jobs.values())


def check_orders(orders: SnapshotOrders) -> None:
    """Check that orders can be meant.

    Raises:
        ValueError: naming what is wrong.
    """
    names = [*(order.id for order in orders.take), *orders.dispose]
    names += [order.id for order in orders.release]
    names += [*(order.id for order in orders.adopt), *(order.id for order in orders.verify)]
    names += [order.id for order in orders.export]
    for name in names:
        if not is_id(name):
            raise ValueError(f"{name!r} is no id of a snapshot: up to 63 of a-z and 0-9, and - between them")
    for export in orders.export:
        try:
            export_format(export.format)
        except ValueError as error:
            raise ValueError(f"export {export.export}: {error}") from None
    for order in orders.take:
        for query, batch in order.exact.items():
            if batch < 0:
                raise ValueError(f"snapshot {order.id}: there is no batch {batch} of query {query}")


# --- what becomes of a job; pure -------------------------------------------------------------------------------------


def begun(job: Job, now: float) -> Job:
    """Return the job at the beginning of an attempt."""
    return dataclasses.replace(job, began=now if job.began is None else job.began)


def put_off(job: Job, trouble: Trouble, now: float) -> Job:
    """Return the job after an attempt that failed: to be done again, or to be given up; disposing is never given up."""
    tries = {**job.tries, trouble.reason: job.tries.get(trouble.reason, 0) + 1}
    pause = min(LONGEST_PAUSE_SECONDS, 2.0 ** min(sum(tries.values()) - 1, 10))
    state = SnapshotState.HELD if trouble.reason is Reason.HELD else SnapshotState.WAITING
    report = dataclasses.replace(job.report, state=state, reason=trouble.reason, message=trouble.message)
    later = dataclasses.replace(job, tries=tries, due=now + pause, report=_timed(report, job, now))
    if job.task in (Task.DISPOSE, Task.RELEASE) or job.verdict is not None or tries[trouble.reason] < trouble.tries:
        return later
    return dataclasses.replace(later, verdict=trouble, due=job.due)


def failed(job: Job, verdict: Trouble, now: float) -> Job:
    """Return the job that is given up for good."""
    report = dataclasses.replace(job.report, state=SnapshotState.FAILED, reason=verdict.reason, message=verdict.message)
    return dataclasses.replace(job, report=_timed(report, job, now))


def at(job: Job, report: SnapshotReport, now: float) -> Job:
    """Return the job when it has come so far."""
    return dataclasses.replace(job, report=_timed(report, job, now))


def _timed(report: SnapshotReport, job: Job, now: float) -> SnapshotReport:
    return dataclasses.replace(report, seconds=now - (now if job.began is None else job.began))
