"""Messages of a purge about snapshots. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MOST_NAMED = 5


def catalog_contended(catalog: str) -> str:
    return f"{catalog} kept changing. Nothing is deleted."


def newer_catalog(catalog: str, error: Exception) -> str:
    return f"{catalog}: {error}. Nothing is deleted."


def catalog_unreadable(catalog: str, error: Exception) -> str:
    return f"{catalog}: {error}. Who needs a snapshot is not known; nothing is deleted."


def catalog_missing(catalog: str, manifest: str) -> str:
    return f"{catalog} is missing, and there is {manifest}: who needs it is not known. Nothing is deleted."


def held_by_others(uri: str, held: Mapping[str, Sequence[str]]) -> str:
    """Return the text; ``held`` are the ids of snapshots, and who needs each."""
    named = "; ".join(f"snapshot {name} by {', '.join(holders)}" for name, holders in list(held.items())[:_MOST_NAMED])
    more = f"; and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
    return f"Others need snapshots in {uri}: {named}{more}. Nothing is deleted until they do not."
