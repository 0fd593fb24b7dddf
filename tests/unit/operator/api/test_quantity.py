"""Kubernetes quantities as numbers."""

from decimal import Decimal

import pytest

from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import mebibytes, parse_quantity


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (1, "1"),
        ("1", "1"),
        ("+1", "1"),
        ("1.", "1"),
        (".5", "0.5"),
        ("500m", "0.5"),
        ("2k", "2000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1000000000000000000"),
        ("12e-1", "1.2"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("100n", "0.0000001"),
    ],
)
def test_a_quantity_is_a_number(written: str | int, number: str) -> None:
    assert parse_quantity("spec.x", written) == Decimal(number)


@pytest.mark.parametrize("written", ["", "-1", "two", "2GB", "2gi", "1 Gi", "1e", "0x10", "∞", "1e9999"])
def test_what_is_no_quantity_is_an_error_that_names_field_and_remedy(written: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.x: .* is no quantity; write something like"):
        parse_quantity("spec.x", written)


@pytest.mark.parametrize(
    ("written", "mib"), [("2Gi", 2048), ("2G", 1907), ("1048575", 0), (1048576, 1), ("1Ti", 1048576)]
)
def test_bytes_are_counted_in_whole_mebibytes(written: str | int, mib: int) -> None:
    assert mebibytes("spec.x", written) == mib
