"""Resource versions as numbers, and what it means that they went back. No I/O.

The API server's versions only grow, for everybody and for ever, but for one thing: etcd was restored from an older
backup. Then nothing that a process knows can be compared with what there is. A watch from a version that is still to
come is accepted and says nothing; afterwards it goes on as if nothing had been missed. Objects that are back have older
versions than those that were seen, and some that were seen to end are there again.
"""

from __future__ import annotations

from tidegate.kube import messages


class RestoredError(Exception):
    """The API server's objects were restored from a backup: the process ends, and the next one reads all of them."""


_MOST_DIGITS = 64
"""Of a version; those of API servers have twenty at most. A status, which others may write, can have any."""


def version_number(resource_version: str) -> int:
    """Return a resource version as a number: it is one since Kubernetes 1.35, and was in fact before; else 0."""
    is_number = resource_version.isdecimal() and len(resource_version) <= _MOST_DIGITS
    return int(resource_version) if is_number else 0


class NewestVersion:
    """The newest version that was seen of one collection."""

    def __init__(self) -> None:
        """Start with none."""
        self._seen = 0

    def note(self, resource_version: str) -> None:
        """Note a version that was seen; an older one changes nothing."""
        self._seen = max(self._seen, version_number(resource_version))

    def is_back(self, resource_version: str) -> bool:
        """Return whether a version that the API server is at now, or an object, is older than what was seen of it."""
        return 0 < version_number(resource_version) < self._seen

    def require_order(self, path: str, resource_version: str) -> None:
        """Take in the version that a whole collection is at now.

        Raises:
            RestoredError: it was at a later one before.
        """
        if self.is_back(resource_version):
            raise RestoredError(messages.went_back(path, resource_version, self._seen))
        self.note(resource_version)
