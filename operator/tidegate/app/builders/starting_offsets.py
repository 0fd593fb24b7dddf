"""Offsets of a spec that no driver could start from. No I/O.

The CRD refuses most of them when a resource is applied; JSON it cannot read.
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
