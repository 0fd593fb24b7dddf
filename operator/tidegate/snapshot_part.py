"""The part of the operator's process that looks after StreamSnapshots: their watch, their queue. Does I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import structlog

from tidegate.kube.client import KubeClient
from tidegate.kube.paths import collection
from tidegate.kube.watch import Listed, Removed, Watch
from tidegate.metrics.figures import Figures
from tidegate.model.errors import UnreadableAppError
from tidegate.model.stream_snapshot import SNAPSHOT_KIND, SNAPSHOT_PLURAL, StreamSnapshot, decode_snapshot
from tidegate.observe.index import Index
from tidegate.observe.snapshot_pods import SnapshotPods
from tidegate.workqueue import Key, WorkQueue

log = structlog.get_logger()


@dataclass(slots=True)
class SnapshotPart:
    """Brings StreamSnapshots into the index and wakes them, and the applications to which they matter."""

    client: KubeClient
    figures: Figures
    index: Index
    queue: WorkQueue
    pods: SnapshotPods
    """Asked how far they are."""
    wake_app: Callable[[Key], None]

    @property
    def missing(self) -> str:
        """What is not known yet, for a person; empty if nothing is."""
        return "" if self.index.snapshots.complete.is_set() else "snapshots are not listed yet"

    async def watch(self, namespace: str) -> None:
        """Keep the index's snapshots up to date, for ever."""
        # Raw, because one that can not be read must not keep the others out.
        watch = Watch(self.client, collection(SNAPSHOT_KIND, namespace), "", msgspec.Raw)
        async for change in watch.changes():
            self.figures.count_event(SNAPSHOT_PLURAL)
            if isinstance(change, Listed):
                readable = [found for found in map(_read, change.items) if found is not None]
                for changed in self.index.snapshots.replace(readable, namespace, change.version):
                    self._wake(changed)
                continue
            snapshot = _read(change.item)
            if snapshot is None:
                continue
            if isinstance(change, Removed):
                news = self.index.snapshots.remove(snapshot.key, snapshot.metadata.uid)
            else:
                news = self.index.snapshots.put(snapshot)
            if news:
                self._wake(snapshot)

    def wake_for(self, app: Key) -> None:
        """Have the snapshots looked at for which it matters what an application does."""
        for key in self.index.snapshots.waiting_for(app):
            self.queue.wake(key)

    def _wake(self, snapshot: StreamSnapshot) -> None:
        self.queue.wake(snapshot.key)
        for app in (snapshot.app_key, *self.index.snapshots.forks(snapshot.key)):
            self.wake_app(app)


def _read(body: msgspec.Raw) -> StreamSnapshot | None:
    try:
        return decode_snapshot(body)
    except UnreadableAppError as error:
        # The CRD's schema refuses what does not fit: this one was stored under another version of it.
        log.error("a StreamSnapshot can not be read; nothing is done about it", problem=str(error))
        return None
