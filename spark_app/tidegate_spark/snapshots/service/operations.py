"""Carries out one order about snapshots, once, in a driver or a pod. I/O by the repository."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.protocol import LINEAGE_PREFIX, DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    LONGEST_OFFSETS,
    AdoptOrder,
    ExportOrder,
    QueryPin,
    SnapshotOrder,
    SnapshotReport,
    SnapshotState,
    StateFacts,
    VerifyOrder,
)
from tidegate_spark.process.version import VERSION
from tidegate_spark.snapshots import catalog, collect, manifest, missing, reentry
from tidegate_spark.snapshots.catalog import Catalog, NotReadyError, Snapshot, State, UnknownSnapshotError
from tidegate_spark.snapshots.checkpoint import layout
from tidegate_spark.snapshots.checkpoint.reader import Layout
from tidegate_spark.snapshots.copying import USUAL, Copiers, Progress
from tidegate_spark.snapshots.lineages import lineage_mark, rehearsal_copy, upgrade_pin
from tidegate_spark.snapshots.manifest import Application, DamagedError, Manifest
from tidegate_spark.snapshots.messages import catalog_lost
from tidegate_spark.snapshots.repository import CatalogLostError, SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, damages
from tidegate_spark.snapshots.service import snapshot_messages as messages
from tidegate_spark.snapshots.service.order_errors import OrderFailedError, SnapshotGoneError
from tidegate_spark.snapshots.take import Request, take
from tidegate_spark.snapshots.verify import verify

CUT = "… (cut)"
READ_AT_ONCE = 4
"""Objects whose bytes go through this process at a time."""
PIN_RENEWED_AFTER_SECONDS = 60.0

log = logging.getLogger("tidegate")

Export = Callable[[SnapshotRepository, ExportOrder, Copiers], SnapshotReport]
"""Makes an export of what is in a repository, and reports its progress to the copiers."""


class NoExportsError(OrderFailedError):
    """The process makes no exports."""

    reason = Reason.EXPORT_FAILED


def export_nothing(repository: SnapshotRepository, order: ExportOrder, copiers: Copiers) -> SnapshotReport:
    """Make no export, in a process that has nothing for that."""
    raise NoExportsError(f"this process makes no exports, and so not {order.export}")


class Pin:
    """Keeps Spark from cleaning up state of a lineage; jvm/'s class of this name looks whether the object is there."""

    def __init__(self, repository: SnapshotRepository, lineage: int, clock: Callable[[], float]) -> None:
        """Prepare; ``clock`` measures what passes, and nobody sets it."""
        self._repository, self._key = repository, repository.key(LINEAGE_PREFIX, f"{lineage}.pin")
        self._clock, self._since = clock, 0.0

    def put(self) -> None:
        """Begin; raises what the store's client raises."""
        self._since = self._clock()
        self._repository.store.put(self._key, b"{}")

    def renew(self) -> None:
        """Go on: it ends by itself after ten minutes."""
        if self._clock() - self._since >= PIN_RENEWED_AFTER_SECONDS:
            self.put()

    def remove(self) -> None:
        """End; if that fails it ends by itself."""
        try:
            self._repository.store.delete([self._key])
        except Exception as error:  # whatever it is: it must not hide how the work ended
            log.warning("%s is left, for ten minutes: %s", self._key, error)


@dataclass
class Carrier:
    """One application's snapshots, for whoever works on them; one order at a time."""

    config: DriverConfig
    connect: Callable[[], SnapshotRepository]
    """Reaches the storage; called for each attempt, since credentials may be renewed."""
    spark_version: str = ""
    layout: Layout = layout
    clock: Callable[[], float] = time.time
    copiers: Copiers = USUAL
    before_taking: Callable[[], None] = lambda: None
    """Raises if nothing may be taken there."""
    make_export: Export = export_nothing
    newest: float | None = None
    """When the newest complete snapshot was begun, as far as it is known; seconds since the epoch.

    An upgrade's own do not count: nobody can find them. Nor do damaged ones: nobody can start from them.
    """

    steady: Callable[[], float] = time.monotonic
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Id of each complete snapshot that lacks files -> what it lacks, as of the last look."""
    _inspected: str | None = None
    """ETag of the catalog as of the last look, not the catalog itself: with many snapshots that has hundreds of MiB."""

    def check(self) -> None:
        """Find out which is the newest, and which lack files, if the catalog is another one than at the last look.

        What is published and not in the catalog is entered again. As long as something is damaged, it is looked for at
        each call: somebody may restore it.

        Raises:
            Exception: what the store's client raises.
        """
        repository = self.connect()
        # Of before the looks: what is changed meanwhile is looked at again.
        found = repository.store.head(repository.catalog_key)
        version = found.etag if found is not None else ""
        if version == self._inspected and not self.damaged:
            return
        # One catalog at a time in memory.
        created = _created(reentry.enter_published(repository))
        self.damaged = missing.find(repository)
        self._inspected = version
        self._learn(created)

    def pin(self) -> None:
        """Have Spark leave state alone from now on, for ten minutes; raises what the store's client raises."""
        Pin(self.connect(), self.config.lineage, self.steady).put()

    def unpin(self) -> None:
        """Let Spark clean state up again; raises what the store's client raises if that cannot be reached."""
        Pin(self.connect(), self.config.lineage, self.steady).remove()

    def take(
        self,
        order: SnapshotOrder,
        report_progress: Callable[[Progress], None],
        pin: bool = False,
        is_pin_needed: Callable[[], bool] = lambda: False,
    ) -> SnapshotReport:
        """Take a snapshot; return the report of a complete one.

        Args:
            order: which.
            report_progress: called with its progress; what it raises ends the work, which can be begun again.
            pin: whether Spark is not to clean state up meanwhile, nor until the next attempt.
            is_pin_needed: asked at the end whether it is still not to, for another one's sake.

        Raises:
            Exception: see :func:`tidegate_spark.snapshots.take.take`.
        """
        self.before_taking()
        repository = self.connect()
        if not pin:
            return self._take(repository, order, report_progress)
        pinned = Pin(repository, self.config.lineage, self.steady)
        pinned.put()

        def renew_and_report(progress: Progress) -> None:
            pinned.renew()
            report_progress(progress)

        # Where this fails the pin stays: what it is for would be gone by the next attempt.
        report = self._take(repository, order, renew_and_report)
        if not is_pin_needed():
            pinned.remove()
        return report

    def _take(
        self, repository: SnapshotRepository, order: SnapshotOrder, report: Callable[[Progress], None]
    ) -> SnapshotReport:
        copiers = dataclasses.replace(self.copiers, report=report)
        request = self._request(order, lineage_mark.parent_of_first(repository, self.config.lineage))
        made = take(repository, self.layout, request, self.clock(), copiers)
        known = repository.read()
        self._learn(_created(known))
        return report_of(repository, made, known.snapshots.get(order.id))

    def adopt(self, order: AdoptOrder) -> SnapshotReport:
        """Hold a snapshot that is in the storage, whoever's it is; return the report of it.

        Raises:
            DamagedError: it is not whole, and is not held.
            Exception: see :func:`tidegate_spark.snapshots.manifest.read`, and what the store's client raises.
        """
        repository = self.connect()
        known = reentry.hold(repository, order.snapshot, order.holder)
        wrong = damages(Origin(repository, order.snapshot))
        if wrong:
            self.release(order.snapshot, (order.holder,))
            raise DamagedError(f"snapshot {order.snapshot} is not whole: {wrong[0]}", len(wrong))
        made = manifest.read(repository, order.snapshot, known)
        report = report_of(repository, made, known.snapshots.get(order.snapshot))
        return dataclasses.replace(report, id=order.id, spec=made.spec)

    def verify(self, order: VerifyOrder, report: Callable[[Progress], None]) -> SnapshotReport:
        """Read a snapshot back; return what is to be said of one that is whole.

        Raises:
            DamagedError: it is not.
            SnapshotGoneError: it is not there any more.
            Exception: see :func:`tidegate_spark.snapshots.verify.verify`.
        """
        repository = self.connect()
        reentry.enter_published(repository, order.snapshot)
        readers = dataclasses.replace(self.copiers, number=min(self.copiers.number, READ_AT_ONCE), report=report)
        with _complete_before(repository, order.snapshot):
            found = verify(Origin(repository, order.snapshot), self.layout, readers)
        if found.problems:
            message = f"snapshot {order.snapshot} is not whole: {found.problems[0]}"
            raise DamagedError(message, len(found.problems))
        unread = found.unread[0] if found.unread else ""
        message = messages.read_back(found.files, found.bytes, unread, found.unproven)
        return SnapshotReport(order.id, SnapshotState.VERIFIED, message=message, files=found.files, bytes=found.bytes)

    def export(self, order: ExportOrder, report: Callable[[Progress], None]) -> SnapshotReport:
        """Write state of a snapshot as plain files, with a Spark of this process's own; return the report of it.

        Raises:
            OrderFailedError: it cannot be made.
            Exception: what the store's client raises.
        """
        repository = self.connect()
        reentry.enter_published(repository, order.snapshot)
        with _complete_before(repository, order.snapshot):
            return self.make_export(repository, order, dataclasses.replace(self.copiers, report=report))

    def dispose(self, name: str) -> None:
        """Remove a snapshot, complete or not, and whatever else nothing needs; one that is not there is fine.

        An upgrade's pin is held under its own id: whoever orders that it goes is who held it.

        Raises:
            HeldError: somebody needs it.
            Exception: what the store's client raises; to be done again.
        """
        repository = self.connect()
        known = reentry.change(repository, lambda it: catalog.dispose(catalog.release(it, name, name), name))
        self._learn(_created(known))
        upgrade_pin.forget(repository, name)
        rehearsal_copy.forget(repository, name)
        collect.collect(repository, self.clock())

    def release(self, name: str, holders: Iterable[str]) -> None:
        """Release a snapshot for those who do not come back for it; it need not be there, nor be held.

        Raises:
            Exception: what the store's client raises; to be done again.
        """

        def transition(known: Catalog) -> Catalog:
            for holder in holders:
                known = catalog.release(known, name, holder)
            return known

        self.connect().change(transition)

    def abandon(self, order: SnapshotOrder) -> None:
        """Remove what was begun of a snapshot that is given up; one that is complete by now stays.

        Raises:
            Exception: what the store's client raises; to be done again.
        """
        repository = self.connect()
        if repository.store.get(repository.manifest_key(order.id)) is not None:
            return  # it is complete, or was before the catalog was put back
        known = reentry.change(repository, lambda it: abandoned(it, order))
        snapshot = known.snapshots.get(order.id)
        if snapshot is not None and snapshot.state is State.DELETING:
            collect.collect(repository, self.clock())

    def _request(self, order: SnapshotOrder, parent: str) -> Request:
        config = self.config
        return Request(
            order.id,
            Application(config.namespace, config.app, config.uid, config.lineage, config.epoch),
            exact=order.exact,
            alone=order.alone,
            parent=parent,
            manual=order.manual,
            holders=frozenset(order.holders),
            image=order.image,
            spark_version=self.spark_version,
            tidegate_version=VERSION,
            spec_hash=order.spec_hash,
            spec=order.spec,
        )

    def _learn(self, created: Mapping[str, float]) -> None:
        self.newest = max((at for name, at in created.items() if name not in self.damaged), default=None)


def _created(known: Catalog) -> dict[str, float]:
    """Return when each complete snapshot was begun that is not an upgrade's own. Pure."""
    ready = ((name, known.snapshots[name]) for name in known.ready())
    return {name: it.created for name, it in ready if not catalog.is_an_upgrades_own(name, it)}


@contextlib.contextmanager
def _complete_before(repository: SnapshotRepository, name: str) -> Iterator[None]:
    """Judge it where the catalog does not have a snapshot as complete that was: waiting would have no end.

    Raises:
        SnapshotGoneError: it was deleted, or nothing is left that names its files.
        DamagedError: its manifest is there, and not all files.
        CatalogLostError: its manifest is there, and no catalog.
    """
    try:
        yield
    except (UnknownSnapshotError, NotReadyError) as error:
        known = repository.read()
        going = not catalog.may_be_entered(known, name)
        if going or repository.store.get(repository.manifest_key(name)) is None:
            raise SnapshotGoneError(messages.gone(name, repository.store.bucket, repository.prefix)) from error
        if not known.serial:
            raise CatalogLostError(catalog_lost(repository.catalog_key)) from error
        raise DamagedError(f"snapshot {name} was complete before, and is not whole any more", 1) from error


def abandoned(known: Catalog, order: SnapshotOrder) -> Catalog:
    """Return the catalog without a snapshot that was being taken; nobody else can hold one of those. Pure."""
    snapshot = known.snapshots.get(order.id)
    if snapshot is None or snapshot.state is not State.TAKING:
        return known
    for holder in snapshot.holders:
        known = catalog.release(known, order.id, holder)
    return catalog.dispose(known, order.id)


def report_of(repository: SnapshotRepository, made: Manifest, known: Snapshot | None) -> SnapshotReport:
    """Return the report of a complete snapshot; the digest is the catalog's as long as that knows it. Pure."""
    sizes = {file.key: file.size for file in made.files}
    return SnapshotReport(
        id=made.id,
        state=SnapshotState.READY,
        files=len(sizes),
        bytes=sum(sizes.values()),
        of_files=len(sizes),
        of_bytes=sum(sizes.values()),
        new_bytes=made.new_bytes(),
        created=made.created,
        lineage=made.application.lineage,
        parent=made.parent,
        digest=known.digest if known is not None and known.digest else manifest.digest(made.body()),
        manifest=f"s3://{repository.store.bucket}/{repository.manifest_key(made.id)}",
        spark_version=made.spark_version,
        image=made.image,
        app=f"{made.application.namespace}/{made.application.name}",
        app_uid=made.application.uid,
        spec_hash=made.spec_hash,
        queries=pins_of(made.queries),
    )


def pins_of(queries: Mapping[str, manifest.QueryAt]) -> dict[str, QueryPin]:
    """Return each query's batch, and its sources' offsets as far as a report has room for them. Pure."""
    return {
        query.called(name): QueryPin(query.batch, shown_offsets(query.offsets), state_facts(query.facts))
        for name, query in queries.items()
    }


def state_facts(facts: Mapping[str, Any]) -> StateFacts:
    """Return what is reported of a query's state, of what its manifest has; of an older one that is less. Pure."""
    operators = [each for each in facts.get("operators") or [] if isinstance(each, dict)]
    planned = int(facts.get("partitions") or 0)
    return StateFacts(
        provider=str(facts.get("provider") or ""),
        partitions=planned,
        operators=tuple(str(each.get("name")) for each in operators),
        # With a single partition this says nothing.
        one_place=any(each.get("onePlace") or each.get("partitions", planned) != planned for each in operators),
    )


def shown_offsets(text: str) -> str:
    """Return the sources' lines of ``offsets/<batch>``, cut if they are too long: version and settings go first."""
    sources = "\n".join(text.split("\n")[2:])
    return sources if len(sources) <= LONGEST_OFFSETS else sources[: LONGEST_OFFSETS - len(CUT)] + CUT
