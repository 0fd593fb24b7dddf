"""Which location the script gave each unnamed query of a lineage: ``names/unnamed-<lineage>.json``. I/O by the port.

Unnamed queries are told apart by their ``checkpointLocation`` alone. It may hold a secret, so a digest of it is noted,
and never the location. The note goes with the state: a snapshot has it, and a lineage that starts from one gets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.object_paths import NAMES_PREFIX
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.store import naming_newer

LOCATION = "location"
"""The fact of a snapshot that is the digest of a query's location."""


@dataclass(frozen=True)
class LocationNotes:
    """What is noted of one lineage."""

    queries: dict[str, str] = field(default_factory=dict)
    """Name -> digest of its location."""


def notes_key(objects: AppObjects, lineage: int) -> str:
    """Return the key of a lineage's notes."""
    return objects.key(NAMES_PREFIX, f"unnamed-{lineage}.json")


def read(objects: AppObjects, lineage: int) -> dict[str, str]:
    """Return query -> digest of its location, nothing if nothing is noted.

    Raises:
        NewerStorageError: a newer Tidegate wrote it.
        ValueError: it is damaged.
        Exception: what the store's client raises.
    """
    key = notes_key(objects, lineage)
    found = objects.store.get(key)
    if found is None:
        return {}
    with naming_newer(key):
        return from_stored(LocationNotes, found[0]).queries


def write(objects: AppObjects, lineage: int, queries: Mapping[str, str]) -> None:
    """Note the queries of a lineage instead of what is noted; raises what the store's client raises."""
    if queries:
        objects.store.put(notes_key(objects, lineage), to_json(LocationNotes(dict(queries))).encode())
    elif objects.store.get(notes_key(objects, lineage)) is not None:
        # Of a lineage of the same number that was given up.
        objects.store.delete([notes_key(objects, lineage)])
