"""The index of StreamSnapshots, with the applications that each concerns. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import (
    ANNOTATION_KEEP,
    SnapshotPhase,
    StreamSnapshot,
    is_ready,
    is_scheduled,
    is_to_be_exported,
    is_to_be_verified,
    owner_uid,
    retention_of,
)
from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.kinds.open_resources import OpenResources
from tidegate.cache.kinds.resource_cache import UnreadableResource, WatchedResources
from tidegate.engine.resource_key import Key, discard
from tidegate.snapshots.builders.stream_snapshot import keep_text
from tidegate.snapshots.history import History, is_whole
from tidegate.snapshots.observation import SnapshotMemory

Stored = StreamSnapshot | UnreadableResource
LATELY = 100
"""Snapshots that may become final before the one that was the newest is judged again."""


class SnapshotIndex(WatchedResources[StreamSnapshot]):
    """The StreamSnapshots by key, by the application they are of, and by those that start from them."""

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all."""
        super().__init__(namespaces)
        self.memories: dict[Key, SnapshotMemory] = {}
        self._beginnings: dict[Key, Key] = {}
        self._forks: dict[Key, set[Key]] = {}
        self._released: set[Key] = set()
        """Those from which an application starts no more, and which were not asked for since."""
        self._keeps: dict[Key, tuple[str, str]] = {}
        """Uid of an application, and what its scheduled snapshots are to have noted on them."""
        self.waiting = OpenResources()
        """Those that were accepted, and are neither complete nor given up; imported ones name no application."""
        self.history = History()
        """Those that are final."""

    def memory(self, key: Key) -> SnapshotMemory:
        """Return what this process remembers of a snapshot."""
        return self.memories.get(key, SnapshotMemory())

    def refused_writes(self, app: Key) -> dict[str, str]:
        """Return which snapshots of an application the API server does not let be changed, and what is said of it."""
        messages = ((key[1], self.memory(key).write_refused[1]) for key in sorted(self._of_app.get(app, ())))
        return {name: message for name, message in messages if message}

    def remove(self, key: Key, uid: str) -> bool:
        """Forget one that is gone, and take in no late news of it; returns whether it was known."""
        if not super().remove(key, uid):
            return False
        self.memories.pop(key, None)
        self._released.discard(key)
        return True

    def put(self, resource: Stored) -> bool:
        """Take in a version, as :meth:`WatchedResources.put` does."""
        taken = super().put(resource)
        if taken and isinstance(resource, StreamSnapshot):
            self.history.add(resource)
            if _is_accepted(resource):
                self.waiting.add(resource.app_key)
        return taken

    def _take_out(self, key: Key) -> None:
        known = self._known.get(key)
        if known is not None:
            self.history.take(known)
            if _is_accepted(known):
                self.waiting.take(known.app_key)
        super()._take_out(key)

    # --- what they have to do with applications ---

    def note_name(self, app: Key) -> None:
        """Note that there is an application of this name."""
        self.waiting.note_app(app)

    def note_app(self, app: StreamingApp) -> None:
        """Note which snapshot an application starts from, if it does, and how long its own scheduled ones stay."""
        key = (app.metadata.namespace, app.metadata.name)
        self._keeps[key] = (app.metadata.uid, keep_text(app))
        if app.spec.start_from is None or not app.spec.start_from.snapshot_name:
            self._forget_beginning(key)
            return
        origin = (key[0], app.spec.start_from.snapshot_name)
        if self._beginnings.get(key) != origin:
            self._forget_beginning(key)
            self._beginnings[key] = origin
            self._forks.setdefault(origin, set()).add(key)

    def forget_app(self, app: Key) -> None:
        """Forget an application that is gone."""
        self.waiting.forget_app(app)
        self._keeps.pop(app, None)
        self._forget_beginning(app)

    def _forget_beginning(self, key: Key) -> None:
        origin = self._beginnings.pop(key, None)
        if origin is not None:
            discard(self._forks, origin, key)
            if origin in self._known:
                self._released.add(origin)

    def take_released(self) -> set[Key]:
        """Return the snapshots from which an application starts no more, each once: its retention kept them for it."""
        released, self._released = self._released, set()
        return released

    def forks(self, key: Key) -> list[Key]:
        """Return the applications that start from a snapshot, whether they have begun or not."""
        return sorted(self._forks.get(key, ()))

    def waiting_for(self, app: Key, damaged: Collection[str] = (), purged: str = "") -> set[Key]:
        """Return the snapshots for which it matters what an application does.

        Args:
            app: namespace and name.
            damaged: ids that it reports as damaged.
            purged: its uid if its storage was purged, empty if it was not.
        """
        of_it = {
            key
            for key in self._of_app.get(app, ())
            if self._is_concerned(self._known[key], app)
            or snapshot_id(self._known[key].metadata) in damaged
            or (purged and is_ready(self._known[key]) and owner_uid(self._known[key]) == purged)
        }
        origin = self._beginnings.get(app)
        known = self._known.get(origin) if origin is not None else None
        return of_it | ({known.key} if known is not None and not known.is_final else set())

    def _is_concerned(self, snapshot: StreamSnapshot, app: Key) -> bool:
        if not snapshot.is_final or is_to_be_verified(snapshot) or is_to_be_exported(snapshot):
            return True
        keep = self._keeps.get(app)
        if not is_scheduled(snapshot):
            return False
        if keep is None:
            return retention_of(snapshot).with_app
        return keep[0] == owner_uid(snapshot) and keep[1] != snapshot.metadata.annotations.get(ANNOTATION_KEEP)

    def beside(self, snapshot: StreamSnapshot) -> list[Key]:
        """Return the scheduled snapshots that may have to go because this one is complete, or has failed."""
        if not snapshot.is_final:
            return []
        return [s.key for s in self.of_app(snapshot.app_key) if s.is_final and is_scheduled(s) and self._may_go(s)]

    def _may_go(self, snapshot: StreamSnapshot) -> bool:
        """Return whether a scheduled snapshot may have to go for a later one, and not by the passing of time alone."""
        later, most = self.history.later(snapshot), retention_of(snapshot).max_count
        if snapshot.status.phase is SnapshotPhase.FAILED or (most is not None and later.whole_scheduled >= most):
            return True
        # While it was the newest, or the newest that was known to be whole, it stayed whatever the limits.
        return 0 < later.whole <= LATELY or 0 < later.known_whole <= LATELY

    def newest_ready(self, app: StreamingApp) -> StreamSnapshot | None:
        """Return the newest complete snapshot of this very application that is not damaged, None if there is none."""
        key, uid = (app.metadata.namespace, app.metadata.name), app.metadata.uid
        of_it = [self._known[found] for found in self._of_app.get(key, ())]
        ready = [s for s in of_it if is_whole(s) and s.status.app and s.status.app.uid == uid]
        return max(ready, key=_time_and_id, default=None)


def _is_accepted(snapshot: StreamSnapshot) -> bool:
    """Return whether it was once decided on, and is on its way: else it may still be refused.

    Not one that is being deleted, which may take as long as its storage is away.
    """
    going = snapshot.metadata.deletion_timestamp is not None
    return bool(snapshot.status.conditions) and not snapshot.is_final and not going


def _time_and_id(snapshot: StreamSnapshot) -> tuple[float, str]:
    at = snapshot.status.ready_time
    return (at.timestamp() if at else 0.0, snapshot.status.snapshot_id)
