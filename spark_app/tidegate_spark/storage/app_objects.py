"""The objects of one application, by keys below its prefix. No I/O of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_spark.contract.protocol import LINEAGE_PREFIX
from tidegate_spark.storage.store import ObjectStore


@dataclass(frozen=True)
class AppObjects:
    """Everything below one application's prefix of a bucket."""

    store: ObjectStore
    prefix: str
    """Without slashes at its ends, as :attr:`tidegate_spark.contract.protocol.Storage.prefix`."""

    def key(self, *parts: str) -> str:
        """Return the key of ``parts`` below the application's prefix."""
        return "/".join(part for part in (self.prefix, *parts) if part)

    def below(self, key: str) -> str:
        """Return ``key`` relative to the application's prefix."""
        return key[len(self.prefix) + 1 :] if self.prefix else key

    def lineage_key(self, lineage: int, *parts: str) -> str:
        """Return a key in a lineage."""
        return self.key(LINEAGE_PREFIX, str(lineage), *parts)
