"""Kubernetes quantities as numbers. No I/O."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from tidegate.api.values import messages
from tidegate.api.values.errors import SpecError

Quantity = str | int
"""A Kubernetes quantity as the API server stores it: ``2``, ``"500m"``, ``"2Gi"``."""


_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal(1).scaleb(-9),
    "u": Decimal(1).scaleb(-6),
    "m": Decimal(1).scaleb(-3),
    "k": Decimal(1).scaleb(3),
    "M": Decimal(1).scaleb(6),
    "G": Decimal(1).scaleb(9),
    "T": Decimal(1).scaleb(12),
    "P": Decimal(1).scaleb(15),
    "E": Decimal(1).scaleb(18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(r"\+?(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
MEBIBYTE = 2**20
_LONGEST = 64
"""Characters: the API server's own quantities have less than 25."""


def parse_quantity(field: str, value: str | int) -> Decimal:
    """Return the number that a Kubernetes quantity stands for, such as 0.5 for ``500m``.

    Args:
        field: path of the field, for the error.
        value: the quantity as stored.

    Raises:
        SpecError: the value is no quantity, or negative.
    """
    text = str(value)
    number = _number_of(text) if len(text) <= _LONGEST else None
    if number is None:
        raise SpecError(field, messages.no_quantity(text[:_LONGEST]))
    return number


@lru_cache(1024)
def _number_of(text: str) -> Decimal | None:
    # All pods of all applications have few different ones, and each is read whenever a pod is built.
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    if exponent is not None:
        return Decimal(number).scaleb(int(exponent))
    return Decimal(number) * _SUFFIXES[suffix or ""]


def mebibytes(field: str, value: str | int) -> int:
    """Return a quantity of bytes in MiB, rounded down.

    Raises:
        SpecError: the value is no quantity.
    """
    return int(parse_quantity(field, value) / MEBIBYTE)
