"""The mark of a lineage, ``lineages/<n>.json``: what it was filled with. I/O by the repository."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidegate_spark.contract.json_form import check_format
from tidegate_spark.contract.protocol import LINEAGE_PREFIX
from tidegate_spark.snapshots.manifest import Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.store import SnapshotError, naming_newer

WITHOUT_OUTPUT = "withoutOutput"
"""Of a lineage whose state was repartitioned: query -> the batch that this was, which put nothing out."""

WITHOUT_OUTPUT_SINCE = "withoutOutputSince"
"""Query -> the first of several such batches in a row, which earlier lineages left: no driver ran in between."""


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


def without_output(mark: Mapping[str, Any]) -> dict[str, range]:
    """Return query -> its batches that put nothing out, of which the lineage's first driver is to note each. Pure."""
    last, since = (_batches(mark, name) for name in (WITHOUT_OUTPUT, WITHOUT_OUTPUT_SINCE))
    return {query: range(since.get(query, batch), batch + 1) for query, batch in last.items()}


def after_repartition(
    old: Mapping[str, Any], batches: Mapping[str, int], repartitioned: Mapping[str, int]
) -> dict[str, Any]:
    """Return what the mark of a repartitioned lineage says of batches without output. Pure.

    Where nothing ran since the repartition before, its batch has not been noted in the query's sink either, and without
    that one a log of files would have a gap.

    Args:
        old: the mark of the lineage that was repartitioned.
        batches: query -> its last batch there.
        repartitioned: query -> the batch in which its state was repartitioned now.
    """
    spans = {query: range(batch, batch + 1) for query, batch in repartitioned.items()}
    for query, earlier in without_output(old).items():
        if batches.get(query) == earlier[-1]:
            spans[query] = range(earlier[0], repartitioned.get(query, earlier[-1]) + 1)
    several = {query: span[0] for query, span in spans.items() if len(span) > 1}
    said: dict[str, Any] = {WITHOUT_OUTPUT: {query: span[-1] for query, span in spans.items()}}
    return {**said, WITHOUT_OUTPUT_SINCE: several} if several else said


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


def _batches(mark: Mapping[str, Any], name: str) -> dict[str, int]:
    found = mark.get(name)
    return {str(query): int(batch) for query, batch in found.items()} if isinstance(found, dict) else {}


def _key(own: SnapshotRepository, lineage: int) -> str:
    return own.key(LINEAGE_PREFIX, f"{lineage}.json")
