"""What the runtime's own code needs of a library that says which lineages are made, and removes what is left of them.

Objects are the simulated store's. Snapshots have no holders there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate_spark import storage
from tidegate_spark.protocol import LINEAGE_PREFIX, Storage


@dataclass(frozen=True)
class Listed:
    """One object."""

    key: str


class LineageLibrary:
    """A library and its store at once."""

    def __init__(self, client: Any, place: Storage) -> None:
        self._client, self._place = client, place
        self.store = self

    def key(self, *parts: str) -> str:
        """Return the key of an object of the application."""
        return self._place.key(*parts)

    def lineage_key(self, lineage: int, *parts: str) -> str:
        """Return the key of an object of a lineage."""
        return self._place.key(LINEAGE_PREFIX, str(lineage), *parts)

    def newest_batch(self, lineage: int, query: str, log: str) -> int:
        """Return the newest batch in a log of a query, -1 if there is none."""
        where = self.lineage_key(lineage, query, log) + "/"
        return max((int(each.key.removeprefix(where)) for each in self.list(where)), default=-1)

    def change(self, change: Callable[[Any], Any]) -> None:
        """Release a snapshot."""

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return content and ETag."""
        return storage.read_object(self._client, self._place, key)

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        self._client.put_object(Bucket=self._place.bucket, Key=key, Body=body)

    def list(self, prefix: str) -> list[Listed]:
        """Return all objects below a prefix."""
        found = self._client.list_objects_v2(Bucket=self._place.bucket, Prefix=prefix).get("Contents", [])
        return [Listed(each["Key"]) for each in found]

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, one after the other."""
        for key in keys:
            self._client.delete_object(Bucket=self._place.bucket, Key=key)
