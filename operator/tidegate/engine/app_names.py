"""Limits the application names that get metric series: people may name any number that do not exist. No I/O."""

from __future__ import annotations

from collections import Counter

Key = tuple[str, str]
"""Namespace and name."""
MOST_NAMES = 2000
"""Names of applications in one namespace that have series of a kind of resource; more than a namespace has in use."""


class AppNames:
    """Counts what is shown by the application that it names."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._shown: dict[str, Counter[str]] = {}

    def admits(self, app: Key) -> bool:
        """Return whether there are series of this application, or there is room for them."""
        names = self._shown.get(app[0], Counter[str]())
        return app[1] in names or len(names) < MOST_NAMES

    def add(self, app: Key) -> None:
        """Note that something of an application is shown."""
        self._shown.setdefault(app[0], Counter())[app[1]] += 1

    def take(self, app: Key) -> bool:
        """Note that something that was added is shown no more; returns whether it was the application's last."""
        names = self._shown[app[0]]
        names[app[1]] -= 1
        if names[app[1]]:
            return False
        del names[app[1]]
        if not names:
            del self._shown[app[0]]
        return True
