"""What the runtime's own code needs of a library that says which lineages are made, and removes what is left of them.

Objects are the simulated store's. Its catalog is the runtime's own: what is published stands in it from before, since
a purge deletes nothing of an application whose catalog does not name its snapshots.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.object_paths import MANIFEST_FILE, SNAPSHOT_PREFIX
from tidegate_spark.contract.protocol import LINEAGE_PREFIX, Storage
from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import Catalog, Snapshot, State
from tidegate_spark.snapshots.catalog_json import decode, encode
from tidegate_spark.snapshots.repository import CATALOG_FILE
from tidegate_spark.storage import s3_client


@dataclass(frozen=True)
class Listed:
    """One object."""

    key: str


class LineageRepository:
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

    def change(self, transition: Callable[[Catalog], Catalog]) -> None:
        """Change the catalog; nobody gets in between."""
        key = self.key(SNAPSHOT_PREFIX, CATALOG_FILE)
        found = self.get(key)
        before = decode(found[0]) if found is not None else Catalog()
        after = transition(before)
        if after != before:
            self.put(key, encode(dataclasses.replace(after, serial=before.serial + 1)))

    def publish(self, name: str, batch: int) -> None:
        """Have a snapshot, with its entry in the catalog before its manifest."""
        self.change(lambda known: catalog.begin(known, name, Snapshot(State.TAKING, 0.0)))
        self.put(self.key(SNAPSHOT_PREFIX, name, MANIFEST_FILE), json.dumps({"batch": batch}).encode())

    def retire(self, name: str) -> None:
        """Remove a snapshot, and its entry last; it need not be there."""
        self.delete([self.key(SNAPSHOT_PREFIX, name, MANIFEST_FILE)])
        self.change(lambda known: catalog.forget(catalog.dispose(known, name), [name], 0.0))

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return content and ETag."""
        return s3_client.read_object(self._client, self._place, key)

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
