"""A stored form that is nested too deep is damaged, and ends nobody who reads it."""

import pytest

from tidegate_spark.contract.json_form import from_json, from_stored
from tidegate_spark.contract.protocol import AgentReport
from tidegate_testing.hostile import nested


@pytest.mark.parametrize("read", [from_json, from_stored])
def test_a_form_that_is_nested_too_deep_is_a_value_error(read: object) -> None:
    with pytest.raises(ValueError, match="nested deeper"):
        read(AgentReport, '{"app":' + nested(100_000) + "}")  # type: ignore[operator] # one of the two
