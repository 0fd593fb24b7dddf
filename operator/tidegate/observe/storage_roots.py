"""Finds applications of one namespace whose storage overlaps: the same place, or one inside the other. No I/O.

Of one namespace alone: a spec may name any place, also one that its author cannot reach, and must not hold back what
belongs to others. Between namespaces a claim in the storage decides, which the driver finds (``claiming.claim``).

Costs a look-up for each part of a path, however many applications there are.
"""

from __future__ import annotations

from tidegate.model.streaming_app import StreamingApp
from tidegate.workqueue import Key
from tidegate_spark.protocol import application_uri, store_identity

Root = tuple[str, ...]
"""The namespace, the store, the bucket, then the parts of the prefix."""
_SHORTEST = 3
"""Parts of the place of a whole bucket."""


class StorageRoots:
    """Which application keeps its data where."""

    def __init__(self) -> None:
        """Start empty."""
        self._roots: dict[Key, Root] = {}
        self._at: dict[Root, set[Key]] = {}
        self._within: dict[Root, set[Key]] = {}

    def put(self, app: StreamingApp) -> None:
        """Note where an application keeps its data."""
        key, root = (app.metadata.namespace, app.metadata.name), root_of(app)
        if self._roots.get(key) == root:
            return
        self.remove(key)
        self._roots[key] = root
        self._at.setdefault(root, set()).add(key)
        for length in range(_SHORTEST, len(root) + 1):
            self._within.setdefault(root[:length], set()).add(key)

    def remove(self, key: Key) -> None:
        """Forget an application."""
        root = self._roots.pop(key, None)
        if root is None:
            return
        _discard(self._at, root, key)
        for length in range(_SHORTEST, len(root) + 1):
            _discard(self._within, root[:length], key)

    def overlapping(self, key: Key) -> set[Key]:
        """Return the other applications of the namespace that are in the same place, around it, or inside it."""
        root = self._roots.get(key)
        if root is None:
            return set()
        found = set(self._within.get(root, ()))
        for length in range(_SHORTEST, len(root)):
            found |= self._at.get(root[:length], set())
        return found - {key}


def root_of(app: StreamingApp) -> Root:
    """Return the place of an application's data."""
    storage = app.spec.storage
    uri = application_uri(storage.uri, app.metadata.namespace, app.metadata.name)
    parts = [part for part in uri.partition("://")[2].split("/") if part]
    return (app.metadata.namespace, store_identity(storage.endpoint, storage.region), *parts)


def _discard(index: dict[Root, set[Key]], root: Root, key: Key) -> None:
    keys = index.get(root)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del index[root]
