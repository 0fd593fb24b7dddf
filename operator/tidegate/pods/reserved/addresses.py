"""Refuses addresses with ``.`` or ``..``, which readers resolve differently. No I/O.

The CRD refuses them too; this catches what an older CRD let pass.
"""

from __future__ import annotations

from tidegate.api.values.errors import SpecError
from tidegate.pods import messages
from tidegate_spark.contract.protocol import has_detour


def refuse_detours(uri: str, field: str) -> None:
    """Raise if an address has a segment ``.`` or ``..``.

    Args:
        uri: the address; empty if the spec names none.
        field: its path in the spec.

    Raises:
        SpecError: it has one.
    """
    if has_detour(uri):
        raise SpecError(field, messages.NO_DETOUR)
