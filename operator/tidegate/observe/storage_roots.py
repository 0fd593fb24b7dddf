"""Finds applications of one namespace whose storage overlaps: the same place, or one inside the other. No I/O.

Of one namespace alone: a spec may name any place, also one that its author cannot reach, and must not hold back what
belongs to others. Between namespaces a claim in the storage decides, which the driver finds (``claiming.claim``).

Costs a look-up for each part of a path, however many applications there are.
"""

from __future__ import annotations

from tidegate.model.spec_hash import store_of
from tidegate.model.streaming_app import StreamingApp
from tidegate.workqueue import Key
from tidegate_spark.protocol import application_uri, store_identity

Root = tuple[str, ...]
"""The namespace, the store, the bucket, then the parts of the prefix."""
_SHORTEST = 3
"""Parts of the place of a whole bucket."""


class StorageRoots:
    """Which application keeps its data where, or may have to go back to."""

    def __init__(self) -> None:
        """Start empty."""
        self._roots: dict[Key, tuple[Root, ...]] = {}
        self._at: dict[Root, set[Key]] = {}
        self._within: dict[Root, set[Key]] = {}

    def put(self, app: StreamingApp) -> None:
        """Note where an application keeps its data."""
        key, roots = (app.metadata.namespace, app.metadata.name), roots_of(app)
        if self._roots.get(key) == roots:
            return
        self.remove(key)
        self._roots[key] = roots
        for root in roots:
            self._at.setdefault(root, set()).add(key)
            for length in range(_SHORTEST, len(root) + 1):
                self._within.setdefault(root[:length], set()).add(key)

    def remove(self, key: Key) -> None:
        """Forget an application."""
        for root in self._roots.pop(key, ()):
            _discard(self._at, root, key)
            for length in range(_SHORTEST, len(root) + 1):
                _discard(self._within, root[:length], key)

    def waiting_for(self, key: Key) -> set[Key]:
        """Return the applications that one may hold back, by each of its places."""
        found = (self._overlapping(root) for root in self._roots.get(key, ()))
        return set[Key]().union(*found) - {key}

    def overlapping(self, key: Key) -> set[Key]:
        """Return the other applications that are in the place that an application's spec names, around it, or inside.

        Of the others, the places that they may go back to count, too.
        """
        return self._overlapping(self._roots[key][0]) - {key} if key in self._roots else set()

    def _overlapping(self, root: Root) -> set[Key]:
        found = set(self._within.get(root, ()))
        for length in range(_SHORTEST, len(root)):
            found |= self._at.get(root[:length], set())
        return found


def roots_of(app: StreamingApp) -> tuple[Root, ...]:
    """Return the place of an application's data and, if it is in another store, that of the version that is stable.

    An upgrade to another store may be rolled back: who had begun in the old one meanwhile would be in the way.
    """
    spec, stable = app.spec.storage, app.status.last_stable
    stores = [(spec.endpoint, spec.region)]
    if stable is not None and (store := store_of(stable)) is not None:
        stores.append(store)
    return tuple(dict.fromkeys(_root(app, *store) for store in stores))


def _root(app: StreamingApp, endpoint: str, region: str) -> Root:
    place = application_uri(app.spec.storage.uri, app.metadata.namespace, app.metadata.name)
    parts = [part for part in place.partition("://")[2].split("/") if part]
    return (app.metadata.namespace, store_identity(endpoint, region), *parts)


def _discard(index: dict[Root, set[Key]], root: Root, key: Key) -> None:
    keys = index.get(root)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del index[root]
