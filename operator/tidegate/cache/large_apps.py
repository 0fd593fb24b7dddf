"""Which large applications are kept whole, within a bound for all of them. In memory; no I/O.

Ordinary applications do not count, so large ones never displace them. Each namespace has a share of the whole, and the
older application comes first.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass, field

import msgspec

from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.bounded_json import decoded_size
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
    _dropped: dict[str, Key] = field(default_factory=dict)
    _regained: dict[str, Key] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, app: LargeApp) -> bool:
        """Take in a version of an application; return whether it is to be kept whole."""
        with self._lock:
            if app.size <= LARGE:
                self._forget(app.uid)
                return True
            self._apps[app.uid] = app
            self._settle()
            self._regained.pop(app.uid, None)  # whoever asks has it in hands
            return app.uid in self._whole

    def has_room_for(self, app: StreamingApp, known: KnownApp | UnreadableApp | None) -> bool:
        """Return whether an application that an answer told of is to be kept; what watches bring was asked before."""
        metadata = app.metadata
        if isinstance(known, KnownApp) and is_same_spec(metadata, known.metadata):
            return True
        created = metadata.creation_timestamp.strftime(_TIME) if metadata.creation_timestamp is not None else ""
        size = decoded_size(msgspec.json.encode(app))
        return self.admits(LargeApp(metadata.uid, (metadata.namespace, metadata.name), created, size))

    @property
    def has_changes(self) -> bool:
        """Whether :meth:`take_changes` has anything to tell."""
        return bool(self._dropped or self._regained)

    def forget(self, uid: str) -> None:
        """Note that an application is gone."""
        with self._lock:
            self._forget(uid)

    def take_changes(self) -> tuple[dict[str, Key], dict[str, Key]]:
        """Return which became too many by news of others, and for which there is room again, since this was asked."""
        with self._lock:
            changes = self._dropped, self._regained
            self._dropped, self._regained = {}, {}
            return changes

    def make_way(self, apps: dict[Key, KnownApp | UnreadableApp]) -> set[Key]:
        """Keep of those that others leave no room for what is said of them; have those read that have room again.

        Args:
            apps: all that are known; those are replaced of which this changes what is kept.

        Returns:
            The applications to look at.
        """
        dropped, regained = self.take_changes()
        woken: set[Key] = set()
        for uid, key in (*dropped.items(), *regained.items()):
            known = apps.get(key)
            if known is None or known.metadata.uid != uid or isinstance(known, KnownApp) is (uid in regained):
                continue
            if isinstance(known, KnownApp):
                apps[key] = too_large(known.app)
            else:
                unversioned = msgspec.structs.replace(known.metadata, resource_version="")
                apps[key] = dataclasses.replace(known, metadata=unversioned, again=True)
            woken.add(key)
        return woken

    def _forget(self, uid: str) -> None:
        self._dropped.pop(uid, None)
        self._regained.pop(uid, None)
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
        for uid in before - whole:
            self._regained.pop(uid, None)
            self._dropped[uid] = self._apps[uid].key
        for uid in whole - before:
            self._dropped.pop(uid, None)
            self._regained[uid] = self._apps[uid].key
