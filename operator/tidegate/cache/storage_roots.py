"""Finds applications of one namespace whose storage overlaps: the same place, or one inside the other. No I/O.

Between namespaces only a claim in the storage counts (``claiming.claim``): a spec may name any place and proves
nothing. Within one, the application that was launched in a place has it. A look-up costs one step per part of a path.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.api.lost_status import has_launched
from tidegate.api.spec_hash import spec_hash, store_of
from tidegate.api.streaming_app import StreamingApp
from tidegate.engine.resource_key import Key, discard
from tidegate_spark.contract.protocol import application_uri, store_identity

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

    def put(self, app: StreamingApp) -> set[Key]:
        """Note where an application keeps its data; returns those that it may have held back, and does no more."""
        key, roots = (app.metadata.namespace, app.metadata.name), roots_of(app)
        known = self._roots.get(key, ())
        if known == roots:
            return set()
        left = (self._overlapping(root) for root in known if root not in roots)
        freed = set[Key]().union(*left) - {key}
        self.remove(key)
        self._roots[key] = roots
        for root in roots:
            self._at.setdefault(root, set()).add(key)
            for length in range(_SHORTEST, len(root) + 1):
                self._within.setdefault(root[:length], set()).add(key)
        return freed

    def remove(self, key: Key) -> None:
        """Forget an application."""
        for root in self._roots.pop(key, ()):
            discard(self._at, root, key)
            for length in range(_SHORTEST, len(root) + 1):
                discard(self._within, root[:length], key)

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
    """Return the place that an application's spec names and, if they are in other stores, those that it holds."""
    return tuple(dict.fromkeys((_wanted(app), *held_by(app))))


def held_by(app: StreamingApp, *, launched: bool = False) -> tuple[Root, ...]:
    """Return the places that are an application's: where it was launched last, and where its stable version was.

    An upgrade to another store may be rolled back: who had begun in the old one meanwhile would be in the way.

    Args:
        app: the application.
        launched: whether it is known to be launched, or about to be, whatever its status says.
    """
    status, stable = app.status, app.status.last_stable
    held = [_place(app, status.store)] if status.store else []
    if launched or (has_launched(status) and not status.store and (stable is None or _runs_as_its_spec_says(app))):
        held.append(_wanted(app))
    if stable is not None and (store := store_of(stable)) is not None:
        held.append(_place(app, store_identity(*store)))
    return tuple(dict.fromkeys(held))


def _runs_as_its_spec_says(app: StreamingApp) -> bool:
    # Launched by an operator that did not record the place: an edited spec has the new one.
    return app.status.applied_spec_hash == spec_hash(app)


def holds_back(app: StreamingApp, held: Iterable[Root]) -> bool:
    """Return whether one of some places is the one that an application's spec names, around it, or inside."""
    wanted = _wanted(app)
    return any(root[: len(wanted)] == wanted[: len(root)] for root in held)


def _wanted(app: StreamingApp) -> Root:
    return _place(app, store_identity(app.spec.storage.endpoint, app.spec.storage.region))


def _place(app: StreamingApp, store: str) -> Root:
    place = application_uri(app.spec.storage.uri, app.metadata.namespace, app.metadata.name)
    parts = [part for part in place.partition("://")[2].split("/") if part]
    return (app.metadata.namespace, store, *parts)
