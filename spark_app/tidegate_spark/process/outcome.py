"""The cause of a driver's end, as a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_spark.contract.reasons import Reason


@dataclass(frozen=True)
class Outcome:
    """Why the driver ends."""

    reason: Reason
    message: str
    exception: str = ""
    own_storage: bool = False
    """Of a store's fault: the application's own storage had it, whether or not it still does."""
    adopt: tuple[int, int] = (0, 0)
    """Epoch and lineage that the storage knows, if they are not this driver's."""
    adopt_opening: bool = False
    """As in :class:`tidegate_spark.contract.protocol.Termination`."""
    adopt_found: bool = False
    """Likewise."""
    adopted_from: str = ""
    """Likewise."""
    if_cut: str = ""
    """Of an end that is none if a query is left inside a batch: the message of the failure that it is then."""
