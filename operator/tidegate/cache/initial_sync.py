"""Whether everything is known that existed when the operator started. In memory; no I/O.

What several applications share is decided by all of them: which of two has a place in the storage. And without its
pods an application looks as if its driver were lost. So nothing may be decided before the first list of both is in the
index.

Pods come as a list. Applications come from kopf one by one, and kopf does not tell which is the last of its list;
a list of their metadata, taken beside it, tells which have to come.
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
        self._awaited: dict[str, set[str]] = {}
        self.complete = asyncio.Event()
        """Set once nothing is missing, and for ever."""

    @property
    def missing(self) -> str:
        """What is missing, for a person; empty if nothing is."""
        if self.complete.is_set():
            return ""
        if self._without_pods:
            return messages.PODS_UNLISTED
        if self._without_apps:
            return messages.APPLICATIONS_UNLISTED
        return messages.applications_unread(sum(map(len, self._awaited.values())))

    def note_pods(self, namespace: str) -> None:
        """Note that the pods of a namespace are known."""
        self._without_pods.discard(namespace)
        self._check()

    def note_apps(self, namespace: str, unknown: Collection[str]) -> None:
        """Note which of the applications that a whole list of a namespace names are not known; by uid."""
        if self.complete.is_set():
            return
        self._without_apps.discard(namespace)
        self._awaited[namespace] = set(unknown)
        self._check()

    def note_app(self, uid: str) -> None:
        """Note that an application is known, or gone."""
        if self.complete.is_set():
            return
        for uids in self._awaited.values():
            uids.discard(uid)
        self._check()

    def _check(self) -> None:
        if not (self._without_pods or self._without_apps or any(self._awaited.values())):
            self._awaited.clear()
            self.complete.set()
