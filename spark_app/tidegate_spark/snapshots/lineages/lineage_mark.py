"""The mark of a lineage, ``lineages/<n>.json``: what it was filled with. I/O by the repository."""

from __future__ import annotations

import json
from typing import Any

from tidegate_spark.contract.json_form import check_format
from tidegate_spark.contract.protocol import LINEAGE_PREFIX
from tidegate_spark.snapshots.manifest import Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.store import SnapshotError, naming_newer

WITHOUT_OUTPUT = "withoutOutput"
"""Of a lineage whose state was repartitioned: query -> the batch that this was, which put nothing out."""


def read(own: SnapshotRepository, lineage: int) -> dict[str, Any]:
    """Return what says that the lineage was filled, nothing if nothing does.

    Args:
        own: the application's.
        lineage: its number.

    Raises:
        SnapshotError: what is there says nothing, or a newer Tidegate wrote it.
    """
    key = _key(own, lineage)
    found = own.store.get(key)
    if found is None:
        return {}
    try:
        mark = json.loads(found[0])
        with naming_newer(key):
            check_format(mark)
    except (ValueError, AttributeError):
        mark = None
    if not isinstance(mark, dict) or not mark.get("snapshot"):
        raise SnapshotError(f"{key} does not say what the lineage was filled with")
    return mark


def put(own: SnapshotRepository, lineage: int, mark: dict[str, Any]) -> None:
    """Say that the lineage was filled; raises what the store's client raises."""
    own.store.put(_key(own, lineage), json.dumps(mark, sort_keys=True).encode())


def remove(own: SnapshotRepository, lineage: int) -> None:
    """Say so no more; it need not have been said. Raises what the store's client raises."""
    own.store.delete([_key(own, lineage)])


def is_there(own: SnapshotRepository, lineage: int) -> bool:
    """Return whether anything says so; raises what the store's client raises."""
    return own.store.get(_key(own, lineage)) is not None


def parent_of_first(own: SnapshotRepository, lineage: int) -> str:
    """Return what the lineage's first snapshot follows, empty if that is nothing, or is not said.

    Raises:
        Exception: what the store's client raises; to be done again.
    """
    try:
        parent = read(own, lineage).get("parent", "")
    except SnapshotError:
        # A place in the tree is no reason to go without a snapshot; the next start says what is wrong.
        return ""
    return parent if isinstance(parent, str) else ""


def name_of_foreign(made: Manifest) -> str:
    """Return how a snapshot of another application, or of another place, is named where ids of the own ones stand."""
    return f"{made.application.namespace}/{made.application.name}/{made.id}"


def _key(own: SnapshotRepository, lineage: int) -> str:
    return own.key(LINEAGE_PREFIX, f"{lineage}.json")
