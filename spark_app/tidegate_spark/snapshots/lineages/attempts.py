"""Lineages that a repartition is making, and the removal of unfinished ones. I/O by the repository.

An object marks a lineage as being made, from before its first file until a driver is about to run in it. Each attempt
has its own lineage, so what a former attempt left can be removed, even if it is whole: nobody read its pod's result.
"""

from __future__ import annotations

import re

from tidegate_spark.contract.json_form import NewerFormatError, from_stored, to_json
from tidegate_spark.contract.repartition_protocol import REPARTITION_PREFIX, Repartition
from tidegate_spark.snapshots import restore
from tidegate_spark.snapshots.lineages import lineage_mark
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin
from tidegate_spark.storage.store import SnapshotError

_PASSES = 5
"""A pod that is being killed may put a last object there after it was looked."""
_BATCH = re.compile(r"(?P<query>[^/]+)/(offsets|commits)/(?P<batch>\d+)", re.ASCII)
_NUMBER = re.compile(r"(\d+)\.json", re.ASCII)


def begin(own: SnapshotRepository, order: Repartition) -> None:
    """Say that a lineage is being made; raises what the store's client raises."""
    own.store.put(_key(own, order.lineage), to_json(order).encode())


def finish(own: SnapshotRepository, lineage: int) -> None:
    """Say so no more: a driver is to run in it, or it is gone; raises what the store's client raises."""
    own.store.delete([_key(own, lineage)])


def holder_of(lineage: int) -> str:
    """Return as whom the attempt at a lineage holds the snapshot that it is made of."""
    return f"repartition-{lineage}"


def take_over(own: SnapshotRepository, lineage: int) -> bool:
    """Say of a lineage that nobody makes it any more, because this process is to run in it.

    Before its first query: whoever removes what attempts have left must never meet a batch of its own there.

    Returns:
        Whether it may run in it; not in one that is not whole.

    Raises:
        Exception: what the store's client raises; to be done again.
    """
    if own.store.get(_key(own, lineage)) is None:
        return True
    if not lineage_mark.is_there(own, lineage):
        return False
    finish(own, lineage)
    return True


def clear(own: SnapshotRepository, lineage: int) -> bool:
    """Remove a lineage in which no driver came to run; one that nobody makes, or that has batches of its own, stays.

    Returns whether it was removed.

    What it was made of is released, too: who was killed inside the copy did not come to that, and nobody could dispose
    of the snapshot.

    Raises:
        Exception: what the store's client raises; to be done again.
    """
    found = own.store.get(_key(own, lineage))
    if found is None:
        return False
    try:
        restore.release(Origin(own, from_stored(Repartition, found[0]).pin), holder_of(lineage))
    except NewerFormatError:
        return False  # whoever wrote it knows what is to become of the lineage
    except ValueError:
        pass  # it says nothing, and so does not of what it was made
    goes = not _has_own_batches(own, lineage)
    if goes:
        # Its mark first: half of a lineage must never look like a whole one.
        lineage_mark.remove(own, lineage)
        empty(own, own.lineage_key(lineage) + "/")
    finish(own, lineage)
    return goes


def clear_earlier(own: SnapshotRepository, order: Repartition) -> None:
    """Remove what attempts before this one have left, but never what is repartitioned; raises likewise.

    Later ones stay: their numbers are higher, and it may be this one that was taken for lost and goes on.
    """
    for number in begun(own):
        if number < order.lineage and number != order.of_lineage:
            clear(own, number)


def begun(own: SnapshotRepository) -> list[int]:
    """Return the lineages of which it is said that they are being made; raises what the store's client raises."""
    root = own.key(REPARTITION_PREFIX) + "/"
    found = (_NUMBER.fullmatch(entry.key[len(root) :]) for entry in list(own.store.list(root)))
    return sorted(int(match[1]) for match in found if match is not None)


def _has_own_batches(own: SnapshotRepository, lineage: int) -> bool:
    """Return whether there is a batch in a lineage that its mark does not have.

    Then a driver was launched in it after all, whatever a store says about an object that was deleted.
    """
    try:
        made = lineage_mark.read(own, lineage)
        batches = {str(query): int(batch) for query, batch in made.get("batches", {}).items()}
    except (SnapshotError, TypeError, ValueError, AttributeError):
        return True  # nobody knows
    if not made:
        return False  # nothing is launched without it
    root = own.lineage_key(lineage) + "/"
    found = (_BATCH.fullmatch(entry.key[len(root) :]) for entry in own.store.list(root))
    return any(int(match["batch"]) > batches.get(match["query"], -1) for match in found if match is not None)


def empty(own: SnapshotRepository, root: str) -> None:
    """Remove everything below a key, and what comes there meanwhile: who is being killed may put a last object."""
    for _ in range(_PASSES):
        # Backwards: stores that keep objects as files have the directories empty by the time they come to them.
        keys = sorted((entry.key for entry in own.store.list(root)), reverse=True)
        if not keys:
            return
        own.store.delete(keys)


def _key(own: SnapshotRepository, lineage: int) -> str:
    return own.key(REPARTITION_PREFIX, f"{lineage}.json")
