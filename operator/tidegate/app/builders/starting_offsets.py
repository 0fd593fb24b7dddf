"""Finds offsets in a spec from which no driver could start. No I/O.

The CRD refuses most of them, but it cannot parse JSON.
"""

from __future__ import annotations

from tidegate.api.values.errors import SpecError
from tidegate_spark.contract.protocol import topic_offsets

FIELD = "spec.startFrom.startingOffsets"


def refuse_unreadable_offsets(text: str) -> None:
    """Raise if offsets of topics cannot be read; nothing to be read is as good.

    Raises:
        SpecError: they cannot.
    """
    try:
        topic_offsets(text)
    except ValueError as error:
        raise SpecError(FIELD, str(error)) from error
