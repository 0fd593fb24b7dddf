"""Errors of a repartition. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason


class RepartitionError(Exception):
    """The lineage is not made; what is wrong, as a reason and as a message."""

    def __init__(self, what: Reason, message: str) -> None:
        """Carry both."""
        super().__init__(message)
        self.what = what
