"""Stored forms as somebody leaves them who may write to the bucket: refused with one of the known errors, or read.

Whatever else a reader raised would end the process or the thread that reads, for all that it serves.
"""

import json

import pytest

from tests.unit.stored_forms import (
    test_control_forms,
    test_lineage_forms,
    test_order_forms,
    test_report_forms,
    test_snapshot_forms,
)
from tidegate_spark.control_log.entries import ControlLogError
from tidegate_spark.exports.errors import ExportError
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import SnapshotError
from tidegate_testing.hostile import hostile_documents
from tidegate_testing.stored_forms import Form, each, stored

FORMS = [
    form
    for module in (test_control_forms, test_lineage_forms, test_order_forms, test_report_forms, test_snapshot_forms)
    for form in module.FORMS
]
REFUSALS = (ValueError, ControlLogError, ExportError, FaultError, SnapshotError)
"""What readers are documented to raise. Each is reported where it occurs, with the object's name."""
SEEDS = [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(12)]
"""Of a hundred documents of each form. One is in the gate."""
LONGEST_MESSAGE = 2_000
"""Characters: a value of a megabyte is not shown in full."""


@pytest.mark.parametrize("seed", SEEDS)
@each(FORMS)
def test_a_hostile_form_is_refused_or_read(form: Form, seed: int) -> None:
    for body in hostile_documents(json.loads(stored(form.name)), 100, seed):
        try:
            form.read(body)
        except REFUSALS as error:
            assert str(error) == str(error)[:LONGEST_MESSAGE]  # noqa: PT017 - both ways are right
