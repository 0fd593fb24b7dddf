"""Lineages that are being made of others: which there are, and how one goes that was not finished. I/O by the library.

An object says of a lineage that it is being made, from before its first file until it is whole. Each attempt has a
lineage of its own, so what another one has left is nobody's.
"""

from __future__ import annotations

import contextlib
import re

from tidegate_spark import lineage_mark
from tidegate_spark.protocol import from_json, to_json
from tidegate_spark.repartition_protocol import REPARTITION_PREFIX, Repartition
from tidegate_spark.snapshots import restore
from tidegate_spark.snapshots.library import Library
from tidegate_spark.snapshots.restore import Origin

_PASSES = 5
"""A pod that is being killed may put a last object there after it was looked."""
_NUMBER = re.compile(r"(\d+)\.json", re.ASCII)


def begin(own: Library, order: Repartition) -> None:
    """Say that a lineage is being made; raises what the store's client raises."""
    own.store.put(_key(own, order.lineage), to_json(order).encode())


def finish(own: Library, lineage: int) -> None:
    """Say so no more: it is whole, or gone; raises what the store's client raises."""
    own.store.delete([_key(own, lineage)])


def holder_of(lineage: int) -> str:
    """Return as whom the attempt at a lineage holds the snapshot that it is made of."""
    return f"repartition-{lineage}"


def is_unfinished(own: Library, lineage: int) -> bool:
    """Return whether somebody began to make a lineage and nobody said that it is whole; raises likewise."""
    return own.store.get(_key(own, lineage)) is not None and not lineage_mark.is_there(own, lineage)


def clear(own: Library, lineage: int) -> None:
    """Remove a lineage that was not finished; one that is whole, or that nobody made, stays as it is.

    What it was made of is let go of, too: who was killed inside the copy did not come to that, and nobody could dispose
    of the snapshot.

    Raises:
        Exception: what the store's client raises; to be done again.
    """
    found = own.store.get(_key(own, lineage))
    if found is None:
        return
    with contextlib.suppress(ValueError):  # it says nothing, and so does not of what it was made
        restore.release(Origin(own, from_json(Repartition, found[0]).pin), holder_of(lineage))
    if not lineage_mark.is_there(own, lineage):
        _empty(own, own.lineage_key(lineage) + "/")
    finish(own, lineage)


def clear_earlier(own: Library, lineage: int) -> None:
    """Remove what attempts before the one at ``lineage`` have left; raises likewise.

    Later ones stay: their numbers are higher, and it may be this one that was taken for lost and goes on.
    """
    for number in begun(own):
        if number < lineage:
            clear(own, number)


def begun(own: Library) -> list[int]:
    """Return the lineages of which it is said that they are being made; raises what the store's client raises."""
    root = own.key(REPARTITION_PREFIX) + "/"
    found = (_NUMBER.fullmatch(entry.key[len(root) :]) for entry in list(own.store.list(root)))
    return sorted(int(match[1]) for match in found if match is not None)


def _empty(own: Library, root: str) -> None:
    for _ in range(_PASSES):
        # Backwards: stores that keep objects as files have the directories empty by the time they come to them.
        keys = sorted((entry.key for entry in own.store.list(root)), reverse=True)
        if not keys:
            return
        own.store.delete(keys)


def _key(own: Library, lineage: int) -> str:
    return own.key(REPARTITION_PREFIX, f"{lineage}.json")
