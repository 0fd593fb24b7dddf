"""Which large applications are kept whole, within a bound for all of them. In memory; no I/O.

Ordinary applications do not count, so large ones never displace them. Each namespace has a share of the whole, and the
older application comes first.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.bounded_json import decoded_size
from tidegate.cache.app_versions import HeldMetadata
from tidegate.cache.known_apps import KnownApp, UnreadableApp, is_same_spec, too_large
from tidegate.engine.resource_key import Key

MIB = 1024 * 1024
LARGE = 128 * 1024
"""Bytes in memory from which an application is a large one: ten times what one of a hundred lines of YAML needs."""
MOST_OF_NAMESPACE = 16 * 1024 * 1024
"""Bytes for the large ones of a namespace, which is ten as long as Kubernetes stores them."""
MOST_OF_ALL = 64 * 1024 * 1024
"""Bytes for all large ones: a quarter of what the chart allows the operator."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"
"""As the API server writes times."""


@dataclass(frozen=True, slots=True)
class LargeApp:
    """One version of an application, without anything that is long."""

    uid: str
    key: Key
    created: str
    """As the API server writes it, which sorts by time."""
    size: int
    """Bytes that it needs in memory."""


@dataclass(slots=True)
class LargeApps:
    """Knows all large ones by their sizes; asked from the threads that decode, too."""

    most_of_namespace: int = MOST_OF_NAMESPACE
    most_of_all: int = MOST_OF_ALL
    """Bytes; more than the defaults only where the operator is given more memory."""
    _apps: dict[str, LargeApp] = field(default_factory=dict)
    _whole: frozenset[str] = frozenset()
    _changed: dict[str, Key] = field(default_factory=dict)
    """Those of which it may be otherwise by now than the index keeps them, until :meth:`make_way` has looked."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, app: LargeApp) -> bool:
        """Take in a version of an application; return whether it is to be kept whole."""
        with self._lock:
            if app.size > LARGE:
                self._apps[app.uid] = app
                self._settle()
            elif app.uid in self._apps:
                self._remove(app.uid)
                self._changed[app.uid] = app.key
            return self._keeps(app.uid)

    def admits_version(self, metadata: HeldMetadata, size: int) -> bool:
        """Take in a version that is read from JSON; return whether it is to be kept whole."""
        return self.admits(LargeApp(metadata.uid, metadata.key, metadata.creation_timestamp, size))

    def has_room_for(self, app: StreamingApp, known: KnownApp | UnreadableApp | None) -> bool:
        """Return whether an application that an answer brought is to be kept; what watches bring was asked before."""
        metadata = app.metadata
        if isinstance(known, KnownApp) and is_same_spec(metadata, known.metadata):
            return True
        created = metadata.creation_timestamp.strftime(_TIME) if metadata.creation_timestamp is not None else ""
        size = decoded_size(msgspec.json.encode(app))
        return self.admits(LargeApp(metadata.uid, (metadata.namespace, metadata.name), created, size))

    @property
    def has_changes(self) -> bool:
        """Whether :meth:`make_way` has anything to do."""
        return bool(self._changed)

    def forget(self, uid: str) -> None:
        """Note that an application is gone."""
        with self._lock:
            self._remove(uid)
            self._changed.pop(uid, None)

    def make_way(self, apps: dict[Key, KnownApp | UnreadableApp], taken_in: Collection[Key] = ()) -> set[Key]:
        """Keep of those that others leave no room for what is said of them; have those read that have room again.

        A version is read, in a thread, before it is taken in, and what is decided then may be otherwise when it is. So
        what decides is what the index has now, beside those that are to be kept whole now, and nobody's earlier answer.

        Args:
            apps: all that are known; those are replaced of which this changes what is kept.
            taken_in: those of which a version was just taken in.

        Returns:
            The applications to look at.
        """
        with self._lock:
            keys = {*self._changed.values(), *taken_in}
            self._changed = {}
            found = [(key, apps[key]) for key in keys if key in apps]
            kept = {known.metadata.uid for _, known in found if self._keeps(known.metadata.uid)}
        woken: set[Key] = set()
        for key, known in found:
            is_kept = known.metadata.uid in kept
            if isinstance(known, KnownApp) and not is_kept:
                apps[key] = too_large(known.app)
            elif isinstance(known, UnreadableApp) and is_kept and known.left_out and not known.again:
                unversioned = msgspec.structs.replace(known.metadata, resource_version="")
                apps[key] = dataclasses.replace(known, metadata=unversioned, again=True)
            else:
                continue
            woken.add(key)
        return woken

    def _keeps(self, uid: str) -> bool:
        return uid not in self._apps or uid in self._whole

    def _remove(self, uid: str) -> None:
        if self._apps.pop(uid, None) is not None:
            self._whole -= {uid}
            self._settle()

    def _settle(self) -> None:
        before, whole = self._whole, set[str]()
        taken: dict[str, int] = {}
        left = self.most_of_all
        for app in sorted(self._apps.values(), key=lambda app: (app.created, app.uid)):
            mine = taken.get(app.key[0], 0) + app.size
            if mine <= self.most_of_namespace and app.size <= left:
                whole.add(app.uid)
                taken[app.key[0]], left = mine, left - app.size
        self._whole = frozenset(whole)
        self._changed |= {uid: self._apps[uid].key for uid in before ^ whole}
