"""A cache of the resources of one kind, filled by a watch and by our own writes. No I/O.

Each kind's index inherits from it and adds its own keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from tidegate.api.streaming_app import Metadata
from tidegate.cache.kinds.feature_index import FeatureIndex
from tidegate.cache.kinds.versions import Departed
from tidegate.engine.resource_key import Key, discard
from tidegate.kube.history import version_number


class Watchable(Protocol):
    """A resource that says of which application it is."""

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""

    @property
    def key(self) -> Key:
        """Namespace and name."""

    @property
    def app_key(self) -> Key:
        """Namespace and name of the application."""


@dataclass(frozen=True, slots=True)
class UnreadableResource:
    """A stored resource that does not fit the model, as :class:`tidegate.cache.known_apps.UnreadableApp`."""

    metadata: Metadata
    problem: str
    """Names the field."""
    ready: Mapping[str, Any] = field(default_factory=dict)
    """Its condition Ready, as stored."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name


R = TypeVar("R", bound=Watchable)


class WatchedResources(FeatureIndex, Generic[R]):
    """The resources of one kind by key, and by the application they are of."""

    def __init__(self, namespaces: Collection[str] = ("",)) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all."""
        self.complete = asyncio.Event()
        """Set once every namespace was listed, and for ever."""
        self._unlisted = set(namespaces)
        self._known: dict[Key, R] = {}
        self._unreadable: dict[Key, UnreadableResource] = {}
        self._of_app: dict[Key, set[Key]] = {}
        self._gone = Departed()

    def get(self, key: Key) -> R | None:
        """Return one, None if it is not there, or cannot be read."""
        return self._known.get(key)

    def unreadable(self, key: Key) -> UnreadableResource | None:
        """Return one that cannot be read, None if it can, or is not there."""
        return self._unreadable.get(key)

    def unreadable_in(self, namespace: str) -> list[UnreadableResource]:
        """Return all of a namespace that cannot be read, by name."""
        return [known for key, known in sorted(self._unreadable.items()) if key[0] == namespace]

    def keys(self) -> list[Key]:
        """Return all that can be read."""
        return list(self._known)

    def of_app(self, app: Key) -> tuple[R, ...]:
        """Return those that refer to an application of this name, by their own names."""
        return tuple(self._known[key] for key in sorted(self._of_app.get(app, ())))

    def put(self, resource: R | UnreadableResource) -> bool:
        """Take in a version; returns whether it is news: not if it is known, or older, or known to be gone."""
        key, known = resource.key, self._stored(resource.key)
        if resource.metadata.uid in self._gone:
            return False
        if known is not None:
            if version_number(resource.metadata.resource_version) <= version_number(known.metadata.resource_version):
                return False
            if known.metadata.uid != resource.metadata.uid:
                self.remove(key, known.metadata.uid)
            else:
                self._take_out(key)
        if isinstance(resource, UnreadableResource):
            self._unreadable[key] = resource
        else:
            self._known[key] = resource
            self._of_app.setdefault(resource.app_key, set()).add(key)
        return True

    def remove(self, key: Key, uid: str) -> bool:
        """Forget one that is gone, and take in no late news of it; returns whether it was known."""
        self._gone.note(uid)
        known = self._stored(key)
        if known is None or known.metadata.uid != uid:
            return False
        self._take_out(key)
        return True

    def replace(
        self, resources: Iterable[R | UnreadableResource], namespace: str, version: str
    ) -> list[R | UnreadableResource]:
        """Take in a whole list; returns what changed, came or went, as far as each is known.

        Args:
            resources: all there are.
            namespace: where; empty for all namespaces.
            version: the list's resource version: what is known in a later version came after it, and stays.
        """
        listed = {resource.key: resource for resource in resources}
        stored: list[R | UnreadableResource] = [*self._known.values(), *self._unreadable.values()]
        gone = [
            known
            for key, known in ((known.key, known) for known in stored)
            if (key not in listed or listed[key].metadata.uid != known.metadata.uid)
            and namespace in ("", key[0])
            and version_number(known.metadata.resource_version) <= version_number(version)
        ]
        changed = [known for known in gone if self.remove(known.key, known.metadata.uid)]
        changed += [resource for resource in listed.values() if self.put(resource)]
        self._unlisted.discard(namespace)
        if not self._unlisted:
            self.complete.set()
        return changed

    def _stored(self, key: Key) -> R | UnreadableResource | None:
        return self._known.get(key) or self._unreadable.get(key)

    def _take_out(self, key: Key) -> None:
        self._unreadable.pop(key, None)
        known = self._known.pop(key, None)
        if known is not None:
            discard(self._of_app, known.app_key, key)
