"""Counts the accepted resources of a kind that wait, by the application that they name. In memory; no I/O.

Applications that do not exist are counted by namespace, because anybody may name any number of them.
"""

from __future__ import annotations

from dataclasses import dataclass

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class OpenCount:
    """Accepted resources of which something is still to come."""

    number: int = 0
    size: int = 0
    """Bytes of what they hold."""

    def __add__(self, other: OpenCount) -> OpenCount:
        """Return both together."""
        return OpenCount(self.number + other.number, self.size + other.size)

    def __sub__(self, other: OpenCount) -> OpenCount:
        """Return what is left without the other."""
        return OpenCount(self.number - other.number, self.size - other.size)


_NONE = OpenCount()


class OpenResources:
    """Knows the sums at any time without looking at each resource: there may be thousands, and each is decided on."""

    def __init__(self) -> None:
        """Start with no resource and no application."""
        self._apps: set[Key] = set()
        self._of_app: dict[Key, OpenCount] = {}
        self._without_app: dict[str, OpenCount] = {}

    def add(self, app: Key, size: int = 0) -> None:
        """Count one that names an application."""
        self._change(app, OpenCount(1, size))

    def take(self, app: Key, size: int = 0) -> None:
        """Count one that was added, and of which nothing more comes, no more."""
        self._change(app, OpenCount(-1, -size))

    def note_app(self, app: Key) -> None:
        """Note that there is an application of a name, whichever it is."""
        if app not in self._apps:
            self._apps.add(app)
            self._sum(app[0], _NONE - self.of_app(app))

    def forget_app(self, app: Key) -> None:
        """Note that there is none."""
        if app in self._apps:
            self._apps.discard(app)
            self._sum(app[0], self.of_app(app))

    def of_app(self, app: Key) -> OpenCount:
        """Return those that name an application, whether it is there or not."""
        return self._of_app.get(app, _NONE)

    def without_app(self, namespace: str) -> OpenCount:
        """Return those of a namespace that name applications that are not there."""
        return self._without_app.get(namespace, _NONE)

    def _change(self, app: Key, by: OpenCount) -> None:
        self._of_app[app] = self.of_app(app) + by
        if not self._of_app[app].number:
            del self._of_app[app]
        if app not in self._apps:
            self._sum(app[0], by)

    def _sum(self, namespace: str, by: OpenCount) -> None:
        self._without_app[namespace] = self.without_app(namespace) + by
        if not self._without_app[namespace].number:
            del self._without_app[namespace]
