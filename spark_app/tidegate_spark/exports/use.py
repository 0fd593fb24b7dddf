"""Which parts of its export the script uses, or says that it does not use. In memory; no I/O.

State without offsets counts records twice or never, and offsets without state forget what was counted. So both are
required, unless the script says that it starts without one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate_spark.exports.manifest import ExportManifest


class Part(Enum):
    """What a new query starts with."""

    STATE = "state"
    OFFSETS = "offsets"


@dataclass
class Uses:
    """What the script has done so far."""

    asked: set[Part] = field(default_factory=set)
    waived: set[Part] = field(default_factory=set)
    there: set[Part] = field(default_factory=set)
    """What the exports have that were asked for something."""

    def forgotten(self) -> set[Part]:
        """Return what a query must not begin without; where nothing was asked for, what there is is not known."""
        wanted = self.there if self.asked else set(Part)
        return wanted - self.asked - self.waived


_uses = Uses()


def note(part: Part, made: ExportManifest) -> None:
    """Remember that a part of an export was asked for."""
    _uses.asked.add(part)
    _uses.there.update(parts_of(made))


def seen() -> Uses:
    """Return what was done so far."""
    return _uses


def without_state() -> None:
    """Say that queries begin without the exported state (``spec.startFrom.exportedState``), and that this is meant.

    To be called before the first query starts, in place of ``initial_state`` and ``exported_state``.
    """
    _uses.waived.add(Part.STATE)


def without_offsets() -> None:
    """Say that the queries begin elsewhere than the export's sources went on, and that this is meant.

    To be called before the first query starts, in place of ``starting_offsets``.
    """
    _uses.waived.add(Part.OFFSETS)


def parts_of(made: ExportManifest) -> set[Part]:
    """Return what an export has that a query can start from: sources that were none of Kafka's begin by other means."""
    from tidegate_spark.exports import source_offsets  # noqa: PLC0415 - every driver loads this module, few use it

    found = {Part.STATE} if made.tables else set()
    if any(source_offsets.is_kafkas(logged) for query in made.queries.values() for logged in query.offsets.values()):
        found.add(Part.OFFSETS)
    return found
