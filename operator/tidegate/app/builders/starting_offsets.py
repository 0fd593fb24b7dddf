"""Finds offsets in a spec from which no driver could start. No I/O.

The CRD refuses most of them, but it cannot parse JSON.
"""

from __future__ import annotations

from tidegate.api.values.errors import SpecError
from tidegate_spark.contract.protocol import topic_offsets

OF_SNAPSHOT, OF_UPGRADE = "spec.startFrom.startingOffsets", "spec.upgrade.startingOffsets.offsets"


def refuse_unreadable_offsets(text: str, field: str) -> None:
    """Raise if offsets of topics in ``field`` cannot be read; nothing to be read is as good.

    Raises:
        SpecError: they cannot.
    """
    try:
        topic_offsets(text)
    except ValueError as error:
        raise SpecError(field, str(error)) from error
