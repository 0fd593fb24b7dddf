"""The StreamSnapshot controller: its watch and its queue. Does I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.api.stream_snapshot import SNAPSHOT_KIND, StreamSnapshot, decode_snapshot
from tidegate.cache import messages
from tidegate.cache.index import Index
from tidegate.cache.kinds.watch_resources import follow
from tidegate.engine.controller import Running
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue
from tidegate.kube.client import KubeClient
from tidegate.kube.watch import EventCounter
from tidegate.snapshots.index import SnapshotIndex, Stored
from tidegate.snapshots.observe import uid_of_purged
from tidegate.snapshots.pods_at_work import SnapshotPods
from tidegate_spark.contract.reasons import Reason


@dataclass(slots=True)
class SnapshotController:
    """Brings StreamSnapshots into the index and wakes them, and the applications to which they matter."""

    client: KubeClient
    metrics: EventCounter
    index: Index
    queue: WorkQueue
    pods: SnapshotPods
    """Asked how far they are."""
    wake_app: Callable[[Key], None]
    beside: tuple[Running, ...] = ()
    """What else the leader runs, for pods like those of snapshots."""

    name = "snapshots"

    @property
    def complete(self) -> asyncio.Event:
        """Set once all are known that were there at the start."""
        return self.index.of(SnapshotIndex).complete

    @property
    def missing(self) -> str:
        """What is not known yet, for a person; empty if nothing is."""
        return "" if self.index.of(SnapshotIndex).complete.is_set() else messages.SNAPSHOTS_UNLISTED

    async def watch(self, namespace: str) -> None:
        """Keep the index's snapshots up to date, for ever."""
        index = self.index.of(SnapshotIndex)
        await follow(
            self.client,
            self.metrics,
            SNAPSHOT_KIND,
            namespace,
            index,
            decode_snapshot,
            self._wake,
            self._wake_beside_changed,
        )

    def running(self, concurrency: int) -> list[Running]:
        """Return what the leader runs."""
        # A quarter of the workers: a reconcile is short, and there are fewer unfinished snapshots than applications.
        return [
            (max(1, concurrency // 4), "snapshots worker", self.queue.run_worker),
            (1, "snapshots timers", self.queue.run_timers),
            (1, "snapshots pods", self.pods.run),
            *self.beside,
        ]

    def wake_for(self, app: Key) -> None:
        """Have the snapshots looked at for which it matters what an application does."""
        known = self.index.reports.get(app)
        reported = known.report.snapshots if known is not None else ()
        damaged = {report.id for report in reported if report.reason is Reason.SNAPSHOT_DAMAGED}
        snapshots = self.index.of(SnapshotIndex)
        purged = uid_of_purged(self.index, app)
        for key in sorted(snapshots.waiting_for(app, damaged, purged) | snapshots.take_released()):
            self.queue.wake(key)

    def _wake(self, snapshot: Stored) -> None:
        self.queue.wake(snapshot.key)
        of_app = (snapshot.app_key,) if isinstance(snapshot, StreamSnapshot) else ()
        for app in (*of_app, *self.index.of(SnapshotIndex).forks(snapshot.key)):
            self.wake_app(app)

    def _wake_beside_changed(self, changed: Sequence[Stored]) -> None:
        # All of an application are looked through for it, of which a list may have thousands: once for each.
        final = {s.app_key: s for s in changed if isinstance(s, StreamSnapshot) and s.is_final}
        for snapshot in final.values():
            self.wake_beside(snapshot)

    def wake_beside(self, snapshot: StreamSnapshot) -> None:
        """Have those looked at that may have to go because of a snapshot."""
        for key in self.index.of(SnapshotIndex).beside(snapshot):
            self.queue.wake(key)
