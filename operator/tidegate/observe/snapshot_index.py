"""What the watch and our own writes told of StreamSnapshots, and which applications have to do with each. No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.model.stream_snapshot import (
    ANNOTATION_KEEP,
    SnapshotPhase,
    StreamSnapshot,
    is_scheduled,
    is_to_be_exported,
    is_to_be_verified,
    owner_uid,
    retention_of,
)
from tidegate.model.streaming_app import Metadata, StreamingApp
from tidegate.observe.snapshot_observation import SnapshotMemory
from tidegate.observe.versions import Departed, version_number
from tidegate.resources.stream_snapshot import keep_text
from tidegate.workqueue import Key


@dataclass(frozen=True, slots=True)
class UnreadableSnapshot:
    """A stored resource that does not fit the model, as :class:`tidegate.observe.index.UnreadableApp`."""

    metadata: Metadata
    problem: str
    """Names the field."""
    ready: Mapping[str, Any] = field(default_factory=dict)
    """Its condition Ready, as stored."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name


Stored = StreamSnapshot | UnreadableSnapshot


class SnapshotIndex:
    """The StreamSnapshots by key, by the application they are of, and by those that begin with them."""

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all."""
        self.complete = asyncio.Event()
        """Set once every namespace was listed, and for ever."""
        self.memories: dict[Key, SnapshotMemory] = {}
        self._unlisted = set(namespaces)
        self._known: dict[Key, StreamSnapshot] = {}
        self._unreadable: dict[Key, UnreadableSnapshot] = {}
        self._of_app: dict[Key, set[Key]] = {}
        self._beginnings: dict[Key, Key] = {}
        self._forks: dict[Key, set[Key]] = {}
        self._keeps: dict[Key, tuple[str, str]] = {}
        """Uid of an application, and what its scheduled snapshots are to have noted on them."""
        self._gone = Departed()

    def get(self, key: Key) -> StreamSnapshot | None:
        """Return a snapshot, None if it is not there, or can not be read."""
        return self._known.get(key)

    def unreadable(self, key: Key) -> UnreadableSnapshot | None:
        """Return one that can not be read, None if it can, or is not there."""
        return self._unreadable.get(key)

    def keys(self) -> list[Key]:
        """Return all snapshots."""
        return list(self._known)

    def memory(self, key: Key) -> SnapshotMemory:
        """Return what this process remembers of a snapshot."""
        return self.memories.get(key, SnapshotMemory())

    def put(self, snapshot: Stored) -> bool:
        """Take in a version; returns whether it is news: not if it is known, or older, or known to be gone."""
        key, known = snapshot.key, self._stored(snapshot.key)
        if snapshot.metadata.uid in self._gone:
            return False
        if known is not None:
            if version_number(snapshot.metadata.resource_version) <= version_number(known.metadata.resource_version):
                return False
            if known.metadata.uid != snapshot.metadata.uid:
                self.remove(key, known.metadata.uid)
            else:
                self._take_out(known)
        if isinstance(snapshot, UnreadableSnapshot):
            self._unreadable[key] = snapshot
        else:
            self._known[key] = snapshot
            self._of_app.setdefault(snapshot.app_key, set()).add(key)
        return True

    def remove(self, key: Key, uid: str) -> bool:
        """Forget one that is gone, and take in no late news of it; returns whether it was known."""
        self._gone.note(uid)
        known = self._stored(key)
        if known is None or known.metadata.uid != uid:
            return False
        self._take_out(known)
        self.memories.pop(key, None)
        return True

    def _stored(self, key: Key) -> Stored | None:
        return self._known.get(key) or self._unreadable.get(key)

    def _take_out(self, known: Stored) -> None:
        self._unreadable.pop(known.key, None)
        if self._known.pop(known.key, None) is not None and isinstance(known, StreamSnapshot):
            _discard(self._of_app, known.app_key, known.key)

    def replace(self, snapshots: Iterable[Stored], namespace: str, version: str) -> list[Stored]:
        """Take in a whole list; returns the snapshots that changed, came or went, as far as each is known.

        Args:
            snapshots: all there are.
            namespace: where; empty for all namespaces.
            version: the list's resource version: what is known in a later version came after it, and stays.
        """
        listed = {snapshot.key: snapshot for snapshot in snapshots}
        stored: list[Stored] = [*self._known.values(), *self._unreadable.values()]
        gone = [
            known
            for key, known in ((known.key, known) for known in stored)
            if (key not in listed or listed[key].metadata.uid != known.metadata.uid)
            and namespace in ("", key[0])
            and version_number(known.metadata.resource_version) <= version_number(version)
        ]
        changed: list[Stored] = [known for known in gone if self.remove(known.key, known.metadata.uid)]
        changed += [snapshot for snapshot in listed.values() if self.put(snapshot)]
        self._unlisted.discard(namespace)
        if not self._unlisted:
            self.complete.set()
        return changed

    # --- what they have to do with applications ---

    def note_app(self, app: StreamingApp) -> None:
        """Note which snapshot an application begins with, if it does, and how long its own scheduled ones stay."""
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

    def forget_app(self, key: Key) -> None:
        """Forget an application that is gone."""
        self._keeps.pop(key, None)
        self._forget_beginning(key)

    def _forget_beginning(self, key: Key) -> None:
        origin = self._beginnings.pop(key, None)
        if origin is not None:
            _discard(self._forks, origin, key)

    def forks(self, key: Key) -> list[Key]:
        """Return the applications that begin with a snapshot, whether they have begun or not."""
        return sorted(self._forks.get(key, ()))

    def waiting_for(self, app: Key) -> set[Key]:
        """Return the snapshots for which it matters what an application does."""
        of_it = {key for key in self._of_app.get(app, ()) if self._is_concerned(self._known[key], app)}
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
        return [s.key for s in self.of_app(snapshot.app_key) if s.is_final and is_scheduled(s)]

    def of_app(self, app: Key) -> tuple[StreamSnapshot, ...]:
        """Return the snapshots that refer to an application of this name, by name."""
        return tuple(self._known[key] for key in sorted(self._of_app.get(app, ())))

    def newest_ready(self, app: StreamingApp) -> StreamSnapshot | None:
        """Return the newest complete snapshot of this very application, None if there is none."""
        key, uid = (app.metadata.namespace, app.metadata.name), app.metadata.uid
        of_it = [self._known[found] for found in self._of_app.get(key, ())]
        ready = [s for s in of_it if s.status.phase is SnapshotPhase.READY and s.status.app and s.status.app.uid == uid]
        return max(ready, key=_time_and_id, default=None)


def _time_and_id(snapshot: StreamSnapshot) -> tuple[float, str]:
    at = snapshot.status.ready_at
    return (at.timestamp() if at else 0.0, snapshot.status.snapshot_id)


def _discard(groups: dict[Key, set[Key]], group: Key, key: Key) -> None:
    members = groups.get(group)
    if members is not None:
        members.discard(key)
        if not members:
            del groups[group]
