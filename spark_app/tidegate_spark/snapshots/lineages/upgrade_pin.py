"""Notes the last batches of the previous version, and orders a snapshot of them. I/O by the repository.

They are noted once, before the new version commits anything, so every later process finds the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tidegate_spark.contract.json_form import check_format
from tidegate_spark.contract.object_paths import left_after, of_queries_that_continue
from tidegate_spark.contract.protocol import UPGRADE_PREFIX
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder
from tidegate_spark.snapshots.checkpoint import layout as spark_layout
from tidegate_spark.snapshots.checkpoint.reader import Layout
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.store import SnapshotError, naming_newer

LOCATIONS, NAMED = "locations", "named"
"""Query -> digest of its location, of the previous version's unnamed queries, and of those that its script names."""


class StateMissingError(SnapshotError):
    """The lineage that is to be gone on with holds no committed batch."""


def order_of(
    repository: SnapshotRepository, name: str, lineage: int, image: str = "", layout: Layout = spark_layout
) -> SnapshotOrder:
    """Return the order for a pin: of exactly the batches that ``lineage`` ended with when this was called first.

    Only a process that has the fence, and has started no query yet, may call it.

    Args:
        repository: the application's.
        name: the pin's id.
        lineage: what the previous version ran in.
        image: that version's, for the manifest.
        layout: how checkpoints are to be read.

    Raises:
        StateMissingError: nothing was ever committed there.
        SnapshotError: what was written down, or noted of the queries' locations, says nothing.
    """
    key = _key(repository, name)
    found = repository.store.get(key)
    if found is None:
        batches = _committed(repository, lineage, layout)
        if not batches:
            raise StateMissingError(f"lineage {lineage} holds no committed batch")
        kinds = {LOCATIONS: locations_now(repository, lineage, batches), NAMED: named_now(repository, lineage)}
        noted = {"lineage": lineage, "batches": batches, **{kind: of for kind, of in kinds.items() if of}}
        body = json.dumps(noted, sort_keys=True).encode()
        repository.store.put_if(key, body, None)
        found = repository.store.get(key)
    # Queries that only the new version has are no part of what it can be rolled back to.
    return SnapshotOrder(name, exact=_read(key, found, lineage), alone=True, holders=(name,), image=image)


def locations(repository: SnapshotRepository, name: str, kind: str = LOCATIONS) -> dict[str, str] | None:
    """Return which location each query had in the previous version, query -> digest, None: of no upgrade's pin.

    Args:
        repository: the application's.
        name: the pin's id.
        kind: :data:`LOCATIONS` of the unnamed queries, or :data:`NAMED`.

    Raises:
        NewerStorageError: a newer Tidegate wrote it down.
        SnapshotError: what was written down says nothing.
        Exception: as the client does.
    """
    key = _key(repository, name)
    found = repository.store.get(key)
    if found is None:
        return None
    try:
        content = json.loads(found[0])
        with naming_newer(key):
            check_format(content)
        noted = content.get(kind, {})
    except (ValueError, AttributeError) as error:
        raise SnapshotError(f"{key} does not say what an upgrade began with") from error
    if not isinstance(noted, dict) or not all(isinstance(digest, str) for digest in noted.values()):
        raise SnapshotError(f"{key} does not say which locations queries had")
    return dict(noted)


def locations_now(repository: SnapshotRepository, lineage: int, batches: Mapping[str, int]) -> dict[str, str]:
    """Return which location each unnamed query of a lineage had at its batch, with or without one: query -> digest.

    Args:
        repository: the application's.
        lineage: its.
        batches: the queries' that have one.

    Raises:
        DamagedNotesError, NewerStorageError: what is noted cannot be read.
        Exception: as the client does.
    """
    notes = location_notes.read(repository, lineage)[0]
    in_force = notes.in_force(lambda query: batches.get(query, -1))
    # What only moved is state from before locations were noted, and is to be that after a rollback, too.
    return {name: digest for name, digest in in_force.items() if name in notes.queries}


def named_now(repository: SnapshotRepository, lineage: int) -> dict[str, str]:
    """Return which location each query of a lineage has that the script names, name -> digest; raises likewise."""
    return {query.name: query.location for query in location_notes.read(repository, lineage)[0].named}


def is_noted(repository: SnapshotRepository, name: str) -> bool:
    """Return whether a pin's batches are written down, which ends when it is disposed of; raises as the client does."""
    return repository.store.get(_key(repository, name)) is not None


def noted(repository: SnapshotRepository, name: str) -> frozenset[str]:
    """Return the directories of the queries whose batches are written down for a pin.

    Raises:
        NewerStorageError: a newer Tidegate wrote them down; which they are is not known here.
        Exception: as the client does.
    """
    key = _key(repository, name)
    found = repository.store.get(key)
    if found is None:
        return frozenset()
    content = json.loads(found[0])
    with naming_newer(key):
        check_format(content)
    batches = content.get("batches")
    return frozenset(batches) if isinstance(batches, dict) else frozenset()


def forget(repository: SnapshotRepository, name: str) -> None:
    """Remove what was written down for a pin that is disposed of; there need not be anything."""
    repository.store.delete([_key(repository, name)])


def _key(repository: SnapshotRepository, name: str) -> str:
    return repository.key(UPGRADE_PREFIX, f"{name}.json")


def _committed(repository: SnapshotRepository, lineage: int, layout: Layout) -> dict[str, int]:
    listings = repository.checkpoints(lineage)
    newest = {query: layout.newest_committed(listing) for query, listing in sorted(listings.items())}
    left = {query: left_after(listing) for query, listing in listings.items()}
    return of_queries_that_continue({query: batch for query, batch in newest.items() if batch is not None}, left)


def _read(key: str, found: tuple[bytes, str] | None, lineage: int) -> dict[str, int]:
    try:
        noted = json.loads(found[0]) if found is not None else None
        if noted is not None:
            with naming_newer(key):
                check_format(noted)
    except (ValueError, AttributeError):
        noted = None
    batches = noted.get("batches") if isinstance(noted, dict) else None
    if not isinstance(noted, dict) or not isinstance(batches, dict) or noted.get("lineage") != lineage:
        raise SnapshotError(f"{key} does not say what lineage {lineage} ended with")
    return {str(query): int(batch) for query, batch in batches.items()}
