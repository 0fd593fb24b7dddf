"""Whether all applications and pods are known that existed when the operator started. In memory; no I/O.

What several applications share is decided by all of them: which of two has a place in the storage. And without its
pods an application looks as if its driver were lost. So nothing may be decided before the first list of both is in the
index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from tidegate.cache import messages


class InitialSync:
    """What of the first lists is not known yet."""

    def __init__(self, namespaces: Collection[str]) -> None:
        """Wait for the lists of these namespaces; an empty name stands for all there are."""
        self._without_pods = set(namespaces)
        self._without_apps = set(namespaces)
        self.complete = asyncio.Event()
        """Set once nothing is missing, and for ever."""

    @property
    def missing(self) -> str:
        """What is missing, for a person; empty if nothing is."""
        if self.complete.is_set():
            return ""
        if self._without_pods:
            return messages.PODS_UNLISTED
        return messages.APPLICATIONS_UNLISTED

    def note_pods(self, namespace: str) -> None:
        """Note that the pods of a namespace are known."""
        self._without_pods.discard(namespace)
        self._check()

    def note_apps(self, namespace: str) -> None:
        """Note that the applications of a namespace are known."""
        self._without_apps.discard(namespace)
        self._check()

    def _check(self) -> None:
        if not (self._without_pods or self._without_apps):
            self.complete.set()
